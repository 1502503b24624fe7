import type { DigestRecordsAnswer, DigestRecordsRequest, RangeDigest, SourceRange } from "../messages.ts";
import { bucketTypes, sourceTypes } from "../registry.ts";
import { compareBytes } from "../source-order.ts";
import { END, type ShardStore } from "./store.ts";

/** One digest per range, all as of one moment of this shard (rule R4). Asks nobody, and writes nothing. */
export function digestRecords(
  store: ShardStore,
  {
    cell,
    sourceType,
    bucketTypes: wanted,
    ranges,
  }: Pick<DigestRecordsRequest, "cell" | "sourceType" | "bucketTypes" | "ranges">,
): DigestRecordsAnswer {
  const source = sourceTypes[sourceType].number;
  const types = wanted.map((type) => bucketTypes[type].number);
  const [from = ""] = ranges.map(({ after }) => after).toSorted(compareBytes);
  const [to = END] = ranges.map(({ upTo }) => upTo ?? END).toSorted((one, other) => compareBytes(other, one));
  const touched = store.heldSources(cell, source, types, from, to, MOST_TOUCHED + 1).toSorted(compareBytes);
  return { digests: ranges.map((range) => digestOf(store, cell, source, types, range, touched)) };
}

/** With more of them at work, every range counts as held: nearly all are, and their list has to fit into memory. */
const MOST_TOUCHED = 10_000;

function digestOf(
  store: ShardStore,
  cell: string,
  source: number,
  types: readonly number[],
  range: SourceRange,
  touched: readonly string[],
): RangeDigest {
  const upTo = range.upTo ?? END;
  const { count, digested, newest, ...sums } = store.digestBySource(cell, source, types, range.after, upTo);
  const next = touched[firstAfter(touched, range.after)];
  const isTouched = touched.length > MOST_TOUCHED || (next !== undefined && compareBytes(next, upTo) <= 0);
  return {
    count,
    words: [sums.word_0, sums.word_1, sums.word_2, sums.word_3],
    held: isTouched || digested < count,
    newestUpdatedAtMs: newest,
  };
}

/** The place of the first source order behind `after`, in a sorted list. */
function firstAfter(sorted: readonly string[], after: string): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compareBytes(sorted[middle] ?? "", after) > 0) to = middle;
    else from = middle + 1;
  }
  return from;
}
