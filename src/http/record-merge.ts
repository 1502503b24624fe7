import { fanOut } from "../core/fan-out.ts";
import type { ClaimRecord, ListRecordsAnswer } from "../core/messages.ts";
import { ok, type Result } from "../core/refusal.ts";
import { bySource } from "../core/shard/record.ts";
import { compareBytes, sourceOrder } from "../core/source-order.ts";

interface MergeOptions {
  shards: number;
  /** Shards asked at a time. */
  width: number;
  /** Records wanted; a page grows past it to finish one source id. */
  limit: number;
  /** The source order to begin after. */
  after: string;
}

export interface MergedPage {
  records: ClaimRecord[];
  /** The source order to go on after; undefined when this was the last page. */
  next: string | undefined;
}

type FetchRecords = (shard: number, after: string, limit: number) => Promise<Result<ListRecordsAnswer>>;

/** What one shard has answered and the page has not used yet. */
interface ShardBuffer {
  shard: number;
  records: ClaimRecord[];
  complete: boolean;
  after: string;
}

/** One ordered page out of all shards (rule R3). Each shard is asked for its share, and again when that runs out. */
export async function mergeRecords(
  { shards, width, limit, after }: MergeOptions,
  fetch: FetchRecords,
): Promise<Result<MergedPage>> {
  // The hash spreads names evenly, so half as much again as an even share is nearly always enough.
  const share = Math.ceil((limit * 1.5) / shards) + 1;
  const buffers: ShardBuffer[] = Array.from({ length: shards }, (_, shard) => ({
    shard,
    records: [],
    complete: false,
    after,
  }));
  const records: ClaimRecord[] = [];
  let last: string | undefined;
  for (;;) {
    if (records.length >= limit && buffers.some((buffer) => buffer.records.length > 0))
      return ok({ records, next: last });
    // Also when the page is full: whether this is the last one is known only when every shard has been read to its end.
    const empty = buffers.filter((buffer) => buffer.records.length === 0 && !buffer.complete);
    const filled = await fanOut(empty, width, (buffer) => refill(buffer, share, fetch));
    for (const result of filled) if (!result.ok) return result;
    const first = firstOrder(buffers);
    if (first === undefined) return ok({ records, next: undefined });
    if (records.length >= limit) return ok({ records, next: last });
    // Every shard that has records of this source id has answered all of them: shards answer whole source ids.
    records.push(...buffers.flatMap((buffer) => take(buffer, first)).toSorted(bySource));
    last = first;
  }
}

const orderOf = (record: ClaimRecord): string => sourceOrder(record.source.id);

async function refill(buffer: ShardBuffer, limit: number, fetch: FetchRecords): Promise<Result<null>> {
  // An answer without records that is not complete met nothing but names whose leases are not granted: what comes behind them counts.
  while (buffer.records.length === 0 && !buffer.complete) {
    const answer = await fetch(buffer.shard, buffer.after, limit);
    if (!answer.ok) return answer;
    ({ records: buffer.records, complete: buffer.complete, through: buffer.after } = answer.value);
  }
  return ok(null);
}

function firstOrder(buffers: readonly ShardBuffer[]): string | undefined {
  let first: string | undefined;
  for (const {
    records: [record],
  } of buffers) {
    if (record === undefined) continue;
    const order = orderOf(record);
    if (first === undefined || compareBytes(order, first) < 0) first = order;
  }
  return first;
}

/** Removes and returns the records of one source id from the head of a buffer. */
function take(buffer: ShardBuffer, order: string): ClaimRecord[] {
  const end = buffer.records.findIndex((record) => orderOf(record) !== order);
  return buffer.records.splice(0, end < 0 ? buffer.records.length : end);
}
