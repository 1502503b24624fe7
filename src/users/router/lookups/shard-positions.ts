interface Told {
  /** The shard's position in its newest answer. */
  position: number;
  /** The number of the question that it answered. Questions are numbered in the order of sending. */
  question: number;
  /** Until then, questions that check a wanted position keep a longer distance, because one was wrong. */
  pacedUntilMs: number;
  checkedAtMs: number;
}

/** How long the positions that callers want are checked less often after one was wrong. */
const PACED_MS = 10_000;
/** The distance between two checks at one shard. */
const CHECK_EVERY_MS = 10;
const PACED_CHECK_EVERY_MS = 100;
/** More shards than any deployment has. */
const MAX_SHARDS = 1_024;

/**
 * What the shards have told about their positions, to tell which of the positions that callers want can
 * exist (Q9). Callers get theirs from clients, which can send any number.
 */
export class ShardPositions {
  readonly #shards = new Map<number, Told>();

  /** Whether the deployment has the shard, as far as this router knows. */
  knows(shard: number): boolean {
    return this.#shards.has(shard);
  }

  /** Notes an answer. Without `question`, it comes from an HTTP cache, so the shard may be further. */
  told(shard: number, position: number, question: number | undefined): void {
    const told = this.#shards.get(shard);
    if (told === undefined) {
      if (this.#shards.size >= MAX_SHARDS) return;
      const never = { pacedUntilMs: -Infinity, checkedAtMs: -Infinity };
      this.#shards.set(shard, { position, question: question ?? -1, ...never });
    } else if (question === undefined) told.position = Math.max(told.position, position);
    else if (question > told.question) Object.assign(told, { position, question });
  }

  /** Whether the shard has told a position that is as large. */
  isProven(shard: number, wanted: number): boolean {
    return wanted <= (this.#shards.get(shard)?.position ?? -1);
  }

  /**
   * Whether the shard has read its position later than the caller got the wanted one, and was not that far.
   *
   * @param asked How many questions had been sent when the call began.
   */
  isRefuted(shard: number, wanted: number, asked: number): boolean {
    const told = this.#shards.get(shard);
    return told !== undefined && told.question > asked && wanted > told.position;
  }

  /** Notes that a wanted position was wrong. */
  refuted(shard: number, nowMs: number): void {
    const told = this.#shards.get(shard);
    if (told !== undefined) told.pacedUntilMs = nowMs + PACED_MS;
  }

  /** Notes that the shard has refused a position: it may be one that it told before it went back in time. */
  fellBehind(shard: number, nowMs: number): void {
    const told = this.#shards.get(shard);
    if (told !== undefined) told.position = -1;
    this.refuted(shard, nowMs);
  }

  /** Returns 0 if a question may check a position of the shard now, or else how long to wait. */
  takeTurn(shard: number, nowMs: number): number {
    const told = this.#shards.get(shard);
    if (told === undefined) return 0;
    const distanceMs = nowMs < told.pacedUntilMs ? PACED_CHECK_EVERY_MS : CHECK_EVERY_MS;
    const nextMs = told.checkedAtMs + distanceMs;
    if (nextMs > nowMs) return nextMs - nowMs;
    told.checkedAtMs = nowMs;
    return 0;
  }

  clear(): void {
    this.#shards.clear();
  }
}
