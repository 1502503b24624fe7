import { callHook } from "../client/hooks.ts";
import { ReconcileAborted, type ReconcileOptions, type ReconcileResult } from "./reconcile.ts";

export interface ReconcileLoopOptions extends Omit<Partial<ReconcileOptions>, "full"> {
  /** Between the starts of two runs: 60 s by default, less or more by a random tenth, so that cells do not march in step. */
  everyMs?: number;
  /** Between two full runs: 1 h by default. The first run is full. */
  fullEveryMs?: number;
  /** After every run. */
  onRun?: (run: { full: boolean; result: ReconcileResult | undefined; error: unknown }) => void;
}

/** Reconciles until it is stopped. Several at once, in several processes, are safe: they only do some work twice. */
export class ReconcileLoop {
  readonly #reconcile: (options: Partial<ReconcileOptions>) => Promise<ReconcileResult>;
  readonly #options: ReconcileLoopOptions;
  readonly #done: Promise<void>;
  #wake: () => void = () => {};
  #isStopped = false;
  #fullAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    reconcile: (options: Partial<ReconcileOptions>) => Promise<ReconcileResult>,
    options: ReconcileLoopOptions = {},
  ) {
    this.#reconcile = reconcile;
    this.#options = options;
    this.#done = this.#loop();
  }

  /** Resolves when the run that is under way, if any, has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#wake();
    await this.#done;
  }

  async #loop(): Promise<void> {
    const { everyMs = 60_000 } = this.#options;
    while (!this.#isStopped) {
      const started = performance.now();
      await this.#run();
      const nextMs = everyMs * (0.9 + Math.random() / 5);
      await this.#sleep(Math.max(0, nextMs - (performance.now() - started)));
    }
  }

  async #run(): Promise<void> {
    const { everyMs: _, fullEveryMs = 3_600_000, onRun, ...options } = this.#options;
    const full = performance.now() - this.#fullAtMs >= fullEveryMs;
    let result: ReconcileResult | undefined;
    let failure: unknown;
    try {
      result = await this.#reconcile({ ...options, full });
      // Only what ended well: a full run that was aborted is made again at once.
      if (full) this.#fullAtMs = performance.now();
    } catch (error) {
      failure = error;
      if (error instanceof ReconcileAborted) ({ result } = error);
    }
    callHook(onRun, { full, result, error: failure });
  }

  #sleep(ms: number): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resume) => {
      const timer = setTimeout(resume, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resume();
      };
    });
  }
}
