import type { Exchange, ExchangeAnswer } from "../../../../src/coordinator/kernel/messages.ts";
import type { Evidence } from "./evidence.ts";
import { attemptOf, factKey } from "./rows.ts";

/** Checks in which order the attempts of a begin ask the shards (B9). */
export class BeginOrder {
  readonly #evidence: Evidence;
  readonly #asking = new Map<
    string,
    {
      attempt: string;
      instance: number;
      isFirst: boolean;
      waiting: Set<number>;
      last: number;
      wasRefused: boolean;
    }
  >();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /**
   * The first attempt of a begin asks all shards at once. A later attempt asks the next shard only after the
   * last one has granted (B9).
   */
  asks(key: string, attempt: string, instance: number, shard: number): void {
    const before = this.#asking.get(key);
    const isFirst =
      before === undefined || before.instance !== instance || (before.isFirst && before.attempt === attempt);
    const waiting = before?.attempt === attempt ? before.waiting : new Set<number>();
    if (!isFirst)
      this.#evidence.check(
        "I8",
        waiting.size === 0,
        () => `attempt ${attempt} of lease ${key} asks shard ${shard} before the last one has answered`,
      );
    const isSame = before?.attempt === attempt;
    if (!isFirst && isSame) {
      this.#evidence.check(
        "I8",
        shard > before.last,
        () => `attempt ${attempt} of lease ${key} asks shard ${shard} after shard ${before.last}`,
      );
      this.#evidence.check(
        "I8",
        !before.wasRefused,
        () => `attempt ${attempt} of lease ${key} asks shard ${shard} after it was refused`,
      );
      this.#evidence.see("B9");
    }
    this.#asking.set(key, {
      attempt,
      instance,
      isFirst,
      waiting: waiting.add(shard),
      last: shard,
      wasRefused: isSame && before.wasRefused,
    });
  }

  answered({ prepares }: Exchange, answer: ExchangeAnswer): void {
    for (const [index, { cell, lease, ops, ...attempt }] of prepares.entries()) {
      const asking = this.#asking.get(factKey(cell, lease));
      // A duplicate is answered too. Only the first answer counts.
      const shard = ops[0]?.shard ?? 0;
      const isFirst = asking?.attempt === attemptOf(cell, attempt) && asking.waiting.delete(shard);
      // The shard has carried out nothing, and is asked again (H5).
      if (isFirst && answer.isUnchecked === true) asking.last = shard - 1;
      else if (isFirst) asking.wasRefused ||= !(answer.prepares[index]?.granted ?? false);
    }
  }

  ended(key: string): void {
    this.#asking.delete(key);
  }
}
