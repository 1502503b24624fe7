import type { Limits } from "../../../common/limits.ts";
import type { Clock } from "../../kernel/ports.ts";
import { refused, type Refusal } from "../../kernel/refusal.ts";

/**
 * How long a read counts as running, unless it ends before. A Worker that dies ends nothing. A read that
 * takes longer goes on, but is no longer counted.
 */
const EXPIRES_MS = 30_000;

const RETRY_AFTER_MS = 1_000;

interface RunningRead {
  keyId: string;
  cancelTimer: () => void;
}

/**
 * Limits how many reads of one cell run at a time: listings, digests and pages of exports, per cell and per
 * key. The shards do their work, but only the cell's ledger sees all of them, from all isolates. They are
 * counted in memory, because the count controls load and nothing else. They expire by a timer, because a
 * clock may be set back.
 */
export class ReadLimiter {
  readonly #clock: Pick<Clock, "after">;
  readonly #limits: Limits;
  readonly #running = new Map<string, RunningRead>();
  readonly #countByKey = new Map<string, number>();

  constructor(clock: Pick<Clock, "after">, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Counts the read with this id, or refuses it. The same id again counts once. */
  start(read: string, keyId: string): Refusal | undefined {
    if (this.#running.has(read)) return undefined;
    const { concurrentReads, concurrentReadsPerKey } = this.#limits;
    const ofKey = this.#countByKey.get(keyId) ?? 0;
    if (this.#running.size >= concurrentReads)
      return tooManyReads(`the cell has ${concurrentReads} reads running (limit \`concurrent_reads\`)`);
    if (ofKey >= concurrentReadsPerKey)
      return tooManyReads(
        `this key has ${concurrentReadsPerKey} reads of the cell running ` +
          "(limit `concurrent_reads_per_key`)",
      );
    this.#running.set(read, { keyId, cancelTimer: this.#clock.after(EXPIRES_MS, () => this.end(read)) });
    this.#countByKey.set(keyId, ofKey + 1);
    return undefined;
  }

  end(read: string): void {
    const running = this.#running.get(read);
    if (running === undefined) return;
    running.cancelTimer();
    this.#running.delete(read);
    const left = (this.#countByKey.get(running.keyId) ?? 1) - 1;
    if (left > 0) this.#countByKey.set(running.keyId, left);
    else this.#countByKey.delete(running.keyId);
  }
}

const tooManyReads = (what: string): Refusal =>
  refused("RESOURCE_EXHAUSTED", `${what}; retry when some have ended`, {
    reason: "TOO_MANY_READS",
    retryAfterMs: RETRY_AFTER_MS,
  }).refusal;
