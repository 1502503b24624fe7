import { fanOut } from "../core/ask.ts";
import type { ClaimRecord, ListRecordsAnswer } from "../core/messages.ts";
import { ok, type Result } from "../core/refusal.ts";
import { bySource } from "../core/shard/record.ts";
import { compareBytes, sourceOrder } from "../core/source-order.ts";

interface Merge {
  shards: number;
  /** Shards asked at a time. */
  width: number;
  /** Records wanted; a page grows past it to finish one source id. */
  limit: number;
  /** The source order to begin after. */
  after: string;
}

export interface Merged {
  records: ClaimRecord[];
  /** The source order to go on after; undefined when this was the last page. */
  next: string | undefined;
}

type FetchRecords = (shard: number, after: string, limit: number) => Promise<Result<ListRecordsAnswer>>;

/** What one shard has answered and the page has not used yet. */
interface Source {
  shard: number;
  records: ClaimRecord[];
  complete: boolean;
  after: string;
}

/** One ordered page out of all shards (rule R3). Each shard is asked for its share, and again when that runs out. */
export async function mergeRecords(
  { shards, width, limit, after }: Merge,
  fetch: FetchRecords,
): Promise<Result<Merged>> {
  // The hash spreads names evenly, so half as much again as an even share is nearly always enough.
  const share = Math.ceil((limit * 1.5) / shards) + 1;
  const sources: Source[] = Array.from({ length: shards }, (_, shard) => ({
    shard,
    records: [],
    complete: false,
    after,
  }));
  const records: ClaimRecord[] = [];
  let last: string | undefined;
  for (;;) {
    if (records.length >= limit && sources.some((source) => source.records.length > 0))
      return ok({ records, next: last });
    // Also when the page is full: whether this is the last one is known only when every shard has been read to its end.
    const empty = sources.filter((source) => source.records.length === 0 && !source.complete);
    const filled = await fanOut(empty, width, (source) => refill(source, share, fetch));
    for (const result of filled) if (!result.ok) return result;
    const first = firstOrder(sources);
    if (first === undefined) return ok({ records, next: undefined });
    if (records.length >= limit) return ok({ records, next: last });
    // Every shard that has records of this source id has answered all of them: shards answer whole source ids.
    records.push(...sources.flatMap((source) => take(source, first)).toSorted(bySource));
    last = first;
  }
}

const orderOf = (record: ClaimRecord): string => sourceOrder(record.source.id);

async function refill(source: Source, limit: number, fetch: FetchRecords): Promise<Result<null>> {
  // An answer without records that is not complete met nothing but names whose leases are not granted: what comes behind them counts.
  while (source.records.length === 0 && !source.complete) {
    const answer = await fetch(source.shard, source.after, limit);
    if (!answer.ok) return answer;
    ({ records: source.records, complete: source.complete, through: source.after } = answer.value);
  }
  return ok(null);
}

function firstOrder(sources: readonly Source[]): string | undefined {
  let first: string | undefined;
  for (const {
    records: [record],
  } of sources) {
    if (record === undefined) continue;
    const order = orderOf(record);
    if (first === undefined || compareBytes(order, first) < 0) first = order;
  }
  return first;
}

/** Removes and returns the records of one source id from the head of a source. */
function take(source: Source, order: string): ClaimRecord[] {
  const end = source.records.findIndex((record) => orderOf(record) !== order);
  return source.records.splice(0, end < 0 ? source.records.length : end);
}
