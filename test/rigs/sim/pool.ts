import { Worker } from "node:worker_threads";
import { bundleSimulator } from "./bundle.ts";
import type { RunOptions, RunResult } from "./run.ts";

export type Job = Pick<RunOptions, "bug" | "seed" | "steps" | "mostSteps">;

export interface Jobs {
  /** The next run, or undefined when there is none. */
  next: () => Job | undefined;
  /** Returns false when no further run is needed. */
  onResult: (result: RunResult, job: Job) => boolean;
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
}

/**
 * Threads that run seeds. They end with the process. Each starts with its first job, because Node can hang if
 * the process ends while a thread is starting.
 */
export class Pool {
  readonly #threads: (SimThread | undefined)[];
  readonly #simulator: string;

  private constructor(threads: number, simulator: string) {
    this.#threads = Array.from({ length: threads });
    this.#simulator = simulator;
  }

  static async start(threads: number): Promise<Pool> {
    return new Pool(threads, await bundleSimulator());
  }

  /** Runs jobs until none is left or `onResult` returns false. */
  async runAll({ next, onResult }: Jobs): Promise<void> {
    let isOver = false;
    const work = async (index: number): Promise<void> => {
      while (!isOver) {
        const job = next();
        if (job === undefined) return;
        const thread = (this.#threads[index] ??= new SimThread(this.#simulator));
        if (!onResult(await thread.run(job), job)) isOver = true;
      }
    };
    await Promise.all(this.#threads.keys().map(work));
  }
}
