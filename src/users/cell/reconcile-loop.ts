import { MAX_TIMER_MS } from "../client/attempt-abort.ts";
import { callHook } from "../client/hooks.ts";
import { invalidArgument } from "./errors.ts";
import { ReconcileAborted, type ReconcileOptions, type ReconcileResult } from "./reconcile.ts";

export interface ReconcileLoopOptions extends Omit<Partial<ReconcileOptions>, "full"> {
  /**
   * Time between the starts of two runs: 60 s by default, varied at random by a tenth, so that cells spread
   * out.
   */
  everyMs?: number;
  /**
   * Time between two full runs: 10 min by default. The first run is full. It decides how long the rows of
   * committed leases can remain after a crash.
   */
  fullEveryMs?: number;
  /** Whether to tell the coordinator after every run how it went, for operators: true by default. */
  reportStatus?: boolean;
  /** Called after every run. */
  onRun?: (run: { full: boolean; result: ReconcileResult | undefined; error: unknown }) => void;
}

const EVERY_MS = 60_000;
const FULL_EVERY_MS = 600_000;

/** Reconciles periodically until stopped. Several processes are safe: they only repeat some work. */
export class ReconcileLoop {
  readonly #reconcile: (options: Partial<ReconcileOptions>) => Promise<ReconcileResult>;
  readonly #options: ReconcileLoopOptions;
  readonly #stopped: () => Promise<void>;
  readonly #done: Promise<void>;
  #wake: () => void = () => {};
  #isStopped = false;
  #fullAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    reconcile: (options: Partial<ReconcileOptions>) => Promise<ReconcileResult>,
    options: ReconcileLoopOptions = {},
    stopped = async (): Promise<void> => {},
  ) {
    this.#reconcile = reconcile;
    this.#options = options;
    this.#stopped = stopped;
    const { everyMs = EVERY_MS, fullEveryMs = FULL_EVERY_MS } = options;
    if (!(everyMs >= 0 && everyMs <= MAX_TIMER_MS))
      throw invalidArgument("everyMs", `must be from 0 to ${MAX_TIMER_MS} ms`);
    if (!(fullEveryMs >= 0)) throw invalidArgument("fullEveryMs", "must be 0 or more");
    this.#done = this.#loop();
  }

  /** Stops, and resolves when the current run has ended and the cell's history of its ledger is saved. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#wake();
    await this.#done;
    await this.#stopped();
  }

  async #loop(): Promise<void> {
    const { everyMs = EVERY_MS } = this.#options;
    while (!this.#isStopped) {
      const started = performance.now();
      await this.#run();
      const nextMs = everyMs * (0.9 + Math.random() / 5);
      const waitMs = nextMs - (performance.now() - started);
      await this.#sleep(Math.min(MAX_TIMER_MS, Math.max(0, waitMs)));
    }
  }

  async #run(): Promise<void> {
    const { everyMs: _, fullEveryMs = FULL_EVERY_MS, onRun, ...options } = this.#options;
    const full = performance.now() - this.#fullAtMs >= fullEveryMs;
    let result: ReconcileResult | undefined;
    let failure: unknown;
    try {
      result = await this.#reconcile({ ...options, full });
      // Only after success: a full run that was aborted is repeated at the next start.
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
