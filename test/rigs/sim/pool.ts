import { Worker } from "node:worker_threads";
import { simulatorWith } from "./bundle.ts";
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
  /** Returns false when no further seed needs to run. */
  onResult: (result: RunResult) => boolean;
}

/** A thread that has loaded a simulator. It runs one job at a time. */
class SimThread {
  readonly #worker: Worker;
  #resolve: (result: RunResult) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(simulator: string) {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: { simulator } });
    this.#worker.on("message", (result: RunResult) => this.#resolve(result));
    this.#worker.on("error", (error) =>
      this.#reject(error instanceof Error ? error : new Error(String(error))),
    );
  }

  run(job: Job): Promise<RunResult> {
    return new Promise((resolve, reject) => {
      [this.#resolve, this.#reject] = [resolve, reject];
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      this.#worker.postMessage(job);
    });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Runs seeds on several threads until none is left or `onResult` returns false. */
export async function runAll({ threads, bug, next, onResult }: PoolOptions): Promise<void> {
  const simulator = await simulatorWith(bug);
  let isOver = false;
  const work = async (): Promise<void> => {
    const thread = new SimThread(simulator);
    try {
      while (!isOver) {
        const job = next();
        if (job === undefined) break;
        if (!onResult(await thread.run(job))) isOver = true;
      }
    } catch (error) {
      isOver = true;
      throw error;
    } finally {
      await thread.end();
    }
  };
  await Promise.all(Array.from({ length: threads }, work));
}

/** Runs each job with its own bug, and so with a simulator and a thread of its own. */
export async function runPlanted(
  jobs: readonly (Job & { bug: string })[],
  threads: number,
): Promise<{ bug: string; result: RunResult }[]> {
  const results: { bug: string; result: RunResult }[] = [];
  const waiting = [...jobs];
  const work = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const { bug, seed, steps } = job;
      const thread = new SimThread(await simulatorWith(bug));
      try {
        results.push({ bug, result: await thread.run({ seed, steps }) });
      } finally {
        await thread.end();
      }
    }
  };
  await Promise.all(Array.from({ length: threads }, work));
  return results;
}
