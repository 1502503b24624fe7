import { fanOut } from "../../../kernel/fan-out.ts";
import type { ClaimRecord } from "../../../kernel/messages.ts";
import type { ListCursor, ListRecordsAnswer, RecordPosition } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { bySource, comparePositions, positionOfRecord } from "../record-order.ts";
import { afterSource, beforeSource, isWithinSource } from "../scan-store.ts";

interface MergeOptions {
  shards: number;
  /** How many shards are asked at a time. */
  width: number;
  /** The number of records wanted. */
  limit: number;
  /** How many more records a page may have, to include all records of its last source id. */
  extra: number;
  /** How many messages may be sent. Each shard is asked once in any case. */
  calls: number;
  /** The position after which the page begins. */
  behind: RecordPosition;
}

export interface MergedPage {
  records: ClaimRecord[];
  /** The position after which the next page begins. Undefined: this is the last page. */
  next: RecordPosition | undefined;
}

type FetchRecords = (shard: number, cursor: ListCursor, limit: number) => Promise<Result<ListRecordsAnswer>>;

/** Records that a shard has answered and the page hasn't used yet. */
interface ShardBuffer {
  shard: number;
  records: ClaimRecord[];
  /** Where the shard continues. Null: it has no more records. */
  cursor: ListCursor | null;
}

/**
 * Merges the records of all shards into one page in the order of the list (R3). Each shard is asked for its
 * share, and again when its share is used up, until the page is full or no more messages may be sent.
 */
export function mergeRecords(options: MergeOptions, fetch: FetchRecords): Promise<Result<MergedPage>> {
  return new Merge(options, fetch).run();
}

/** Whether the next page may continue with more records of the last source id of this page. */
export function isSplit({ records, next }: MergedPage): boolean {
  const last = records.at(-1);
  return last !== undefined && next !== undefined && isWithinSource(next) && next[0] === orderOf(last);
}

class Merge {
  readonly #options: MergeOptions;
  readonly #fetch: FetchRecords;
  readonly #buffers: ShardBuffer[];
  readonly #records: ClaimRecord[] = [];
  #callsLeft: number;
  /** Whether more records of the last source id follow although the page is full. */
  #isIdFull = false;

  constructor(options: MergeOptions, fetch: FetchRecords) {
    const { shards, calls, behind } = options;
    this.#options = options;
    this.#fetch = fetch;
    this.#callsLeft = Math.max(calls, shards);
    this.#buffers = Array.from({ length: shards }, (_, shard) => ({
      shard,
      records: [],
      cursor: { behind, scan: null },
    }));
  }

  async run(): Promise<Result<MergedPage>> {
    for (let wasFull = false; ;) {
      if (this.#merge()) return this.#page(this.#endOfPage());
      const through = this.#through();
      if (through === undefined) return this.#page(undefined);
      // A full page asks each shard once more, because this is the last page only if no shard has more.
      if (wasFull && this.#isLastWhole(through)) return this.#page(this.#endOfPage());
      wasFull = this.#records.length >= this.#options.limit;
      const empty = this.#buffers.filter(({ records, cursor }) => records.length === 0 && cursor !== null);
      if (empty.length > this.#callsLeft) return this.#cut(through);
      this.#callsLeft -= empty.length;
      const filled = await fanOut(empty, this.#options.width, (buffer) => this.#refill(buffer));
      for (const result of filled) if (!result.ok) return result;
    }
  }

  async #refill(buffer: ShardBuffer): Promise<Result<null>> {
    const { shards, limit } = this.#options;
    // The hash spreads names evenly, so 1.5 times an even share is nearly always enough.
    const share = Math.ceil((limit * 1.5) / shards) + 1;
    if (buffer.cursor === null) return ok(null);
    const answer = await this.#fetch(buffer.shard, buffer.cursor, share);
    if (!answer.ok) return answer;
    ({ records: buffer.records, next: buffer.cursor } = answer.value);
    return ok(null);
  }

  /** The position up to which all shards have answered. Undefined: they have no more records. */
  #through(): RecordPosition | undefined {
    const open = this.#buffers.flatMap(({ cursor }) => (cursor === null ? [] : [cursor.behind]));
    return open.toSorted(comparePositions)[0];
  }

  /** Moves the records that all shards have answered to the page. Returns true if they fill it. */
  #merge(): boolean {
    const { limit, extra } = this.#options;
    const through = this.#through();
    for (const record of this.#buffers.flatMap((buffer) => take(buffer, through)).toSorted(bySource)) {
      const { length } = this.#records;
      const last = this.#records.at(-1);
      const isNewId = last !== undefined && orderOf(last) !== orderOf(record);
      if (length >= limit && (isNewId || length >= limit + extra)) {
        this.#isIdFull = !isNewId;
        return true;
      }
      this.#records.push(record);
    }
    return false;
  }

  #isLastWhole(through: RecordPosition): boolean {
    const last = this.#records.at(-1);
    return last !== undefined && comparePositions(through, afterSource(orderOf(last))) >= 0;
  }

  #endOfPage(): RecordPosition {
    const last = this.#records.at(-1);
    if (last === undefined) return this.#options.behind;
    return this.#isIdFull ? positionOfRecord(last) : afterSource(orderOf(last));
  }

  /**
   * Ends the page where the messages end. If that is within a source id, its records are left to the next
   * page, unless this page began with it.
   */
  #cut(through: RecordPosition): Result<MergedPage> {
    const last = this.#records.at(-1);
    const [order] = through;
    if (last === undefined || orderOf(last) !== order || !isWithinSource(through)) return this.#page(through);
    const start = beforeSource(order);
    if (comparePositions(start, this.#options.behind) <= 0) return this.#page(through);
    const whole = this.#records.filter((record) => orderOf(record) !== order);
    return ok({ records: whole, next: start });
  }

  #page(next: RecordPosition | undefined): Result<MergedPage> {
    return ok({ records: this.#records, next });
  }
}

const orderOf = (record: ClaimRecord): string => positionOfRecord(record)[0];

/** Removes and returns the records of a buffer up to a position. Undefined: all of them. */
function take(buffer: ShardBuffer, through: RecordPosition | undefined): ClaimRecord[] {
  const { records } = buffer;
  const end =
    through === undefined
      ? -1
      : records.findIndex((record) => comparePositions(positionOfRecord(record), through) > 0);
  const taken = end < 0 ? records.length : end;
  buffer.records = records.slice(taken);
  return records.slice(0, taken);
}
