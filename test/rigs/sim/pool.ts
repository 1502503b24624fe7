import { Worker } from "node:worker_threads";
import type { RunResult } from "./run.ts";

export interface Job {
  seed: number;
  steps: number;
}

export interface PoolOptions {
  threads: number;
  bug?: string | undefined;
  /** The next seed, or undefined when there is none. */
  next: () => Job | undefined;
  /** False: enough was seen. */
  onResult: (result: RunResult) => boolean;
}

/** Runs seeds on several threads until there are no more, or enough was seen. */
export async function runAll({ threads, bug, next, onResult }: PoolOptions): Promise<void> {
  let isOver = false;
  const lane = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: { bug } });
      const go = (): void => {
        const job = isOver ? undefined : next();
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
        if (job !== undefined) return worker.postMessage(job);
        void worker.terminate().then(() => resolve());
      };
      worker.on("error", (error) => {
        isOver = true;
        reject(error instanceof Error ? error : new Error(String(error)));
      });
      worker.on("message", (result: RunResult) => {
        if (!onResult(result)) isOver = true;
        go();
      });
      worker.once("online", go);
    });
  await Promise.all(Array.from({ length: threads }, lane));
}
