import { sha256 } from "@noble/hashes/sha2.js";
import { MAX_TIMER_MS, pause } from "../../client/attempt-abort.ts";
import { callHook } from "../../client/hooks.ts";
import { invalidArgument } from "../errors.ts";
import { settingsOf, type VerifyOptions } from "./options.ts";
import type { VerificationReport, VerificationStatus } from "./report.ts";
import { VerificationAborted } from "./verify.ts";

export interface VerificationLoopOptions extends Omit<VerifyOptions, "signal" | "startOver"> {
  /** Between the starts of two verifications: 8 h by default. Cells start at times of their own, spread over it. */
  everyMs?: number;
  /** Of runs that compare everything instead of digests: each 21st by default, about one a week. 0: none. */
  wholeEvery?: number;
  /** Before a run that could not go on is tried again: 60 s by default, more or less by a half. */
  retryMs?: number;
  /** After every run. */
  onRun?: (run: { report: VerificationReport | undefined; error: unknown }) => void;
}

const EVERY_MS = 28_800_000;
const RETRY_MS = 60_000;
const WHOLE_EVERY = 21;

/** Until the next time. */
const ENDS: ReadonlySet<VerificationStatus> = new Set(["done", "needs_approval", "not_due"] as const);

/** Where in the period a cell starts: the same in every process of the cell, and spread over all cells. */
export function startOffsetMs(cell: string, everyMs: number): number {
  const digest = sha256(new TextEncoder().encode(`verification of cell ${cell}`));
  return Math.floor((new DataView(digest.buffer, digest.byteOffset).getUint32(0) / 2 ** 32) * everyMs);
}

/** The next moment at which a cell starts. Times are milliseconds since 1970. */
export function nextStartMs(cell: string, everyMs: number, nowMs: number): number {
  const offset = startOffsetMs(cell, everyMs);
  return Math.ceil((nowMs + 1 - offset) / everyMs) * everyMs + offset;
}

/** Verifies a few times a day until it is stopped. Several processes of a cell are safe: the coordinator gives a cell one slot. */
export class VerificationLoop {
  readonly #cell: string;
  readonly #verify: (options: VerifyOptions) => Promise<VerificationReport>;
  readonly #options: VerificationLoopOptions;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(
    cell: string,
    run: (options: VerifyOptions) => Promise<VerificationReport>,
    options: VerificationLoopOptions = {},
  ) {
    this.#cell = cell;
    this.#verify = run;
    this.#options = options;
    const { everyMs = EVERY_MS } = options;
    if (!(everyMs >= 1_000 && everyMs <= MAX_TIMER_MS))
      throw invalidArgument("everyMs", `must be from 1,000 to ${MAX_TIMER_MS}`);
    const { retryMs = RETRY_MS, wholeEvery = WHOLE_EVERY } = options;
    if (!(retryMs >= 1 && retryMs <= MAX_TIMER_MS))
      throw invalidArgument("retryMs", `must be from 1 to ${MAX_TIMER_MS}`);
    if (!(Number.isSafeInteger(wholeEvery) && wholeEvery >= 0))
      throw invalidArgument("wholeEvery", "must be a whole number from 0 on");
    // Before the first run, which may be hours away.
    settingsOf(options);
    this.#done = this.#loop();
  }

  /** Resolves when the run that is under way, if any, has ended; it ends after the stretch that it is at, and goes on the next time. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #loop(): Promise<void> {
    const { everyMs = EVERY_MS } = this.#options;
    for (;;) {
      const startMs = nextStartMs(this.#cell, everyMs, Date.now());
      await pause(startMs - Date.now(), [this.#stop.signal]);
      if (this.#stop.signal.aborted) return;
      await this.#verification(Math.floor(startMs / everyMs), everyMs);
    }
  }

  /** In as many runs as it takes. `period`: the same in every process, and after every start of one. */
  async #verification(period: number, periodMs: number): Promise<void> {
    const {
      everyMs: _,
      wholeEvery = WHOLE_EVERY,
      retryMs = RETRY_MS,
      onRun,
      digests,
      ...options
    } = this.#options;
    const isWhole = wholeEvery > 0 && period % wholeEvery === 0;
    // Another process may have done it meanwhile.
    const unlessDoneWithinMs = periodMs / 2;
    while (!this.#stop.signal.aborted) {
      let report: VerificationReport | undefined;
      let failure: unknown;
      try {
        report = await this.#verify({
          unlessDoneWithinMs,
          ...options,
          digests: isWhole ? false : digests,
          signal: this.#stop.signal,
        });
      } catch (error) {
        failure = error;
        if (error instanceof VerificationAborted) ({ report } = error);
      }
      callHook(onRun, { report, error: failure });
      // What needs a person waits for the next time.
      if (failure === undefined && report !== undefined && ENDS.has(report.status)) return;
      const waitMs =
        failure === undefined && report?.status === "out_of_time" ? 0 : (report?.retryAfterMs ?? retryMs);
      await pause(waitMs * (0.5 + Math.random()), [this.#stop.signal]);
    }
  }
}
