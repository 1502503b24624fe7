import { sha256 } from "@noble/hashes/sha2.js";
import { v7 as uuidv7 } from "uuid";
import { MAX_TIMER_MS, pause } from "../../client/attempt-abort.ts";
import { callHook } from "../../client/hooks.ts";
import { invalidArgument, reasonOf } from "../errors.ts";
import { initialCursor, readCursor } from "./cursor.ts";
import { limitedTo, settingsOf, type VerifyOptions } from "./options.ts";
import type { VerificationPorts } from "./ports.ts";
import type { VerificationReport, VerificationStatus } from "./report.ts";
import { HeldSlot, VerificationRun } from "./run.ts";

/** A run failed. Its repairs so far are kept, and the next run continues from the saved cursor. */
export class VerificationAborted extends Error {
  readonly report: VerificationReport;

  constructor(cause: unknown, report: VerificationReport) {
    super(`verification failed: ${reasonOf(cause)}`, {
      cause,
    });
    this.name = "VerificationAborted";
    this.report = report;
  }
}

/**
 * Checks that the cell's rows and claims agree, and repairs drift. The first pass over all tables creates and
 * replaces the claims that rows lack. Only then does the second pass destroy claims that no row needs (V3),
 * so a name that moves from one row to another is never free in between. The first verification of a cell is
 * its backfill.
 */
export async function verify(
  ports: VerificationPorts,
  options: VerifyOptions = {},
): Promise<VerificationReport> {
  const settings = limitedTo(settingsOf(options), ports.limits);
  const slot = new HeldSlot(ports.slots, uuidv7());
  let run = new VerificationRun(ports, settings, slot, {
    cursor: initialCursor(ports, !settings.digests),
    isResumed: false,
    text: undefined,
  });
  try {
    const taken = await slot.take();
    if (!taken.isTaken) return { ...run.report("no_slot"), retryAfterMs: taken.retryAfterMs };
    // Reads the cursor only once the slot is held, because the previous holder may have moved it until then.
    const { text, cursor, changes, doneMs } = await readCursor(ports, !settings.digests);
    if (doneMs !== undefined && doneMs < settings.unlessDoneWithinMs) return run.report("not_due");
    if (settings.apply) {
      const isResumed = cursor !== undefined && !settings.startOver;
      const first = isResumed
        ? cursor
        : initialCursor(ports, !settings.digests, settings.startOver ? 0 : changes);
      run = new VerificationRun(ports, settings, slot, { cursor: first, isResumed, text });
    }
    return await run.run();
  } catch (error) {
    // If the database is what failed, this fails too, and the first error is the one to report.
    await run.abandon(error).catch(() => {});
    throw new VerificationAborted(error, run.report("stopped"));
  } finally {
    await slot.release();
  }
}

export interface VerificationLoopOptions extends Omit<VerifyOptions, "signal" | "startOver"> {
  /** Time between the starts of two verifications: 8 h by default. Each cell has its own start within it. */
  everyMs?: number;
  /**
   * Every how many verifications all records are compared instead of digests: 21 by default, about weekly. 0:
   * never.
   */
  fullEvery?: number;
  /** Wait before a failed run is retried: 60 s by default, varied at random by up to half. */
  retryMs?: number;
  /** Whether to tell the coordinator after every run how it went, for operators: true by default. */
  reportStatus?: boolean;
  /** Called after every run. */
  onRun?: (run: { report: VerificationReport | undefined; error: unknown }) => void;
}

const EVERY_MS = 28_800_000;
const RETRY_MS = 60_000;
const FULL_EVERY = 21;

/** With these, the loop waits for the next period. */
const ENDS: ReadonlySet<VerificationStatus> = new Set(["done", "needs_approval", "not_due"] as const);

/**
 * When in the period a cell starts. All processes of a cell agree, and the cells are spread over the period.
 */
export function startOffsetMs(cell: string, everyMs: number): number {
  const digest = sha256(new TextEncoder().encode(`verification of cell ${cell}`));
  return Math.floor((new DataView(digest.buffer, digest.byteOffset).getUint32(0) / 2 ** 32) * everyMs);
}

/** The next time at which a cell starts, in milliseconds since 1970. */
export function nextStartMs(cell: string, everyMs: number, nowMs: number): number {
  const offset = startOffsetMs(cell, everyMs);
  return Math.ceil((nowMs + 1 - offset) / everyMs) * everyMs + offset;
}

/**
 * Verifies periodically until stopped. Several processes are safe: the coordinator gives each cell one slot.
 */
export class VerificationLoop {
  readonly #cell: string;
  readonly #verify: (options: VerifyOptions) => Promise<VerificationReport>;
  readonly #options: VerificationLoopOptions;
  readonly #stopped: () => Promise<void>;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(
    cell: string,
    run: (options: VerifyOptions) => Promise<VerificationReport>,
    options: VerificationLoopOptions = {},
    stopped = async (): Promise<void> => {},
  ) {
    this.#cell = cell;
    this.#verify = run;
    this.#options = options;
    this.#stopped = stopped;
    const { everyMs = EVERY_MS } = options;
    if (!(everyMs >= 1_000 && everyMs <= MAX_TIMER_MS))
      throw invalidArgument("everyMs", `must be from 1,000 to ${MAX_TIMER_MS} ms`);
    const { retryMs = RETRY_MS, fullEvery = FULL_EVERY } = options;
    if (!(retryMs >= 1 && retryMs <= MAX_TIMER_MS))
      throw invalidArgument("retryMs", `must be from 1 to ${MAX_TIMER_MS} ms`);
    if (!(Number.isSafeInteger(fullEvery) && fullEvery >= 0))
      throw invalidArgument("fullEvery", "must be a whole number, 0 or more");
    // Rejects invalid options now, not at the first run, which may be hours away.
    settingsOf(options);
    this.#done = this.#loop();
  }

  /**
   * Ends the current run after its segment, and resolves when it has ended and the cell's history of its
   * ledger is saved. The next start resumes the run.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
    await this.#stopped();
  }

  async #loop(): Promise<void> {
    const { everyMs = EVERY_MS } = this.#options;
    for (;;) {
      const startMs = nextStartMs(this.#cell, everyMs, Date.now());
      await pause(startMs - Date.now(), [this.#stop.signal]);
      if (this.#stop.signal.aborted) return;
      await this.#runPeriod(Math.floor(startMs / everyMs), everyMs);
    }
  }

  /** Runs until one period's verification is finished. `period` is the same number in every process. */
  async #runPeriod(period: number, periodMs: number): Promise<void> {
    const {
      everyMs: _,
      fullEvery = FULL_EVERY,
      retryMs = RETRY_MS,
      onRun,
      digests,
      ...options
    } = this.#options;
    const isFull = fullEvery > 0 && period % fullEvery === 0;
    // Another process of the cell may already have done this verification.
    const unlessDoneWithinMs = periodMs / 2;
    while (!this.#stop.signal.aborted) {
      let report: VerificationReport | undefined;
      let failure: unknown;
      try {
        report = await this.#verify({
          unlessDoneWithinMs,
          ...options,
          digests: isFull ? false : digests,
          signal: this.#stop.signal,
        });
      } catch (error) {
        failure = error;
        if (error instanceof VerificationAborted) ({ report } = error);
      }
      callHook(onRun, { report, error: failure });
      // A verification that needs approval waits for the next period.
      if (failure === undefined && report !== undefined && ENDS.has(report.status)) return;
      await pause(waitMs(failure === undefined ? report : undefined, retryMs), [this.#stop.signal]);
    }
  }
}

/** How long to wait before a run that did not finish is tried again. */
function waitMs(report: VerificationReport | undefined, retryMs: number): number {
  if (report?.status === "out_of_time") return 0;
  // The cell has a place in the queue for slots, and loses it if it asks too late.
  if (report?.retryAfterMs !== undefined) return report.retryAfterMs * (1 + Math.random() / 10);
  return retryMs * (0.5 + Math.random());
}
