import { fanOut } from "../core/fan-out.ts";
import type { ClaimRecord, ListRecordsAnswer } from "../core/messages.ts";
import { ok, type Result } from "../core/refusal.ts";
import { bySource } from "../core/shard/record.ts";
import { compareBytes, sourceOrder } from "../core/source-order.ts";

interface MergeOptions {
  shards: number;
  /** How many shards are asked at a time. */
  width: number;
  /** The number of records wanted. A page may be larger, to include all records of its last source id. */
  limit: number;
  /** The source order after which the page begins. */
  after: string;
}

export interface MergedPage {
  records: ClaimRecord[];
  /** The source order after which the next page begins; undefined if this was the last page. */
  next: string | undefined;
}

type FetchRecords = (shard: number, after: string, limit: number) => Promise<Result<ListRecordsAnswer>>;

/** Records that a shard has answered and the page hasn't used yet. */
interface ShardBuffer {
  shard: number;
  records: ClaimRecord[];
  complete: boolean;
  after: string;
}

/**
 * Merges the records of all shards into one ordered page (R3). Each shard is asked for its share, and again
 * when its share is used up.
 */
export async function mergeRecords(
  { shards, width, limit, after }: MergeOptions,
  fetch: FetchRecords,
): Promise<Result<MergedPage>> {
  // The hash spreads names evenly, so 1.5 times an even share is nearly always enough.
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
    // Buffers are refilled even if the page is full, because this is the last page only if every shard has no
    // more records.
    const empty = buffers.filter((buffer) => buffer.records.length === 0 && !buffer.complete);
    const filled = await fanOut(empty, width, (buffer) => refill(buffer, share, fetch));
    for (const result of filled) if (!result.ok) return result;
    const first = firstOrder(buffers);
    if (first === undefined) return ok({ records, next: undefined });
    if (records.length >= limit) return ok({ records, next: last });
    // Shards answer whole source ids. So all records of the source id `first` are in the buffers.
    records.push(...buffers.flatMap((buffer) => take(buffer, first)).toSorted(bySource));
    last = first;
  }
}

const orderOf = (record: ClaimRecord): string => sourceOrder(record.source.id);

async function refill(buffer: ShardBuffer, limit: number, fetch: FetchRecords): Promise<Result<null>> {
  // An answer may be incomplete and still have no records: then it met only names whose leases are not
  // granted. Records may follow, so the shard is asked again.
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
