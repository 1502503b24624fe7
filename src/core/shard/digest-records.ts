import type { DigestRecordsAnswer, DigestRecordsRequest, RangeDigest, SourceRange } from "../messages.ts";
import { bucketTypes, sourceTypes } from "../registry.ts";
import { compareBytes } from "../source-order.ts";
import { SOURCE_ORDER_END, type ShardStore } from "./store.ts";

/**
 * Returns one digest per range, all as of one moment of this shard (R4). It asks no other object and writes
 * nothing.
 */
export function digestRecords(
  store: ShardStore,
  {
    cell,
    sourceType,
    bucketTypes: typeNames,
    ranges,
  }: Pick<DigestRecordsRequest, "cell" | "sourceType" | "bucketTypes" | "ranges">,
): DigestRecordsAnswer {
  const source = sourceTypes[sourceType].number;
  const types = typeNames.map((type) => bucketTypes[type].number);
  const [from = ""] = ranges.map(({ after }) => after).toSorted(compareBytes);
  const [to = SOURCE_ORDER_END] = ranges
    .map(({ upTo }) => upTo ?? SOURCE_ORDER_END)
    .toSorted((one, other) => compareBytes(other, one));
  const heldSources = store
    .heldSources(cell, source, types, from, to, MAX_HELD_SOURCES + 1)
    .toSorted(compareBytes);
  return { digests: ranges.map((range) => digestOf(store, cell, source, types, range, heldSources)) };
}

/**
 * If more sources than this are held, every range counts as held. Nearly every range is then held anyway, and
 * the list of sources has to fit into memory.
 */
const MAX_HELD_SOURCES = 10_000;

function digestOf(
  store: ShardStore,
  cell: string,
  source: number,
  types: readonly number[],
  range: SourceRange,
  heldSources: readonly string[],
): RangeDigest {
  const upTo = range.upTo ?? SOURCE_ORDER_END;
  const { count, digested, newest, ...sums } = store.digestBySource(cell, source, types, range.after, upTo);
  const next = heldSources[firstAfter(heldSources, range.after)];
  const isHeld =
    heldSources.length > MAX_HELD_SOURCES || (next !== undefined && compareBytes(next, upTo) <= 0);
  return {
    count,
    words: [sums.word_0, sums.word_1, sums.word_2, sums.word_3],
    held: isHeld || digested < count,
    newestUpdatedAtMs: newest,
  };
}

/** Returns the index of the first source order after `after`, in a sorted list. */
function firstAfter(sorted: readonly string[], after: string): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compareBytes(sorted[middle] ?? "", after) > 0) to = middle;
    else from = middle + 1;
  }
  return from;
}
