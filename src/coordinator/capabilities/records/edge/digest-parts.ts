import { DigestSum } from "../../../../common/digest.ts";
import type { DigestCursor, DigestRecordsAnswer, RangeDigest } from "../messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";

/** A digest that proves nothing. */
const VOID: RangeDigest = { count: 0, words: [0, 0, 0, 0], held: true, newestUpdatedAtMs: null };

type FetchDigests = (cursor: DigestCursor | null) => Promise<Result<DigestRecordsAnswer>>;

/**
 * Reads the digests of all ranges from one shard, with as many messages as it takes. If that is more than
 * `calls`, the ranges that are left are void: they are too large for one call (R4).
 */
export async function readDigests(
  ranges: number,
  calls: number,
  fetch: FetchDigests,
): Promise<Result<RangeDigest[]>> {
  const digests: RangeDigest[] = [];
  let cursor: DigestCursor | null = null;
  for (let call = 0; call < Math.max(calls, 1); call += 1) {
    const answer = await fetch(cursor);
    if (!answer.ok) return answer;
    const first = cursor?.range ?? 0;
    for (const [index, digest] of answer.value.digests.entries()) {
      const before = digests[first + index];
      digests[first + index] = before === undefined ? digest : sumOf([before, digest]);
    }
    cursor = answer.value.next;
    if (cursor === null)
      return digests.length === ranges
        ? ok(digests)
        : refused("UNAVAILABLE", "a shard did not answer for every range");
  }
  const unread = cursor?.range ?? 0;
  return ok([...digests.slice(0, unread), ...Array.from({ length: ranges - unread }, () => VOID)]);
}

/** Adds up digests of disjoint sets of claims. */
export function sumOf(parts: readonly RangeDigest[]): RangeDigest {
  const sum = new DigestSum();
  for (const { words, count } of parts) sum.add(words, count);
  const newest = parts.flatMap(({ newestUpdatedAtMs }) => newestUpdatedAtMs ?? []);
  return {
    count: sum.count,
    words: sum.words,
    held: parts.some(({ held }) => held),
    newestUpdatedAtMs: newest.length === 0 ? null : Math.max(...newest),
  };
}
