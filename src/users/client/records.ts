import { unknown, unread, type Answer } from "./answer.ts";
import {
  operations,
  type Bucket,
  type ClaimRecord,
  type ExportLine,
  type LookupResult,
  type Operations,
  type Source,
} from "./api-types.ts";
import { requireCell, type Caller } from "./caller.ts";
import type { Call, CallOptions, Connection, LineResult } from "./connection.ts";
import { errorOf, NotFoundError, NotOwnerError, StaleEpochError, valueOf } from "./errors.ts";
import { pagesOf, type Page, type Pages } from "./pages.ts";
import { answerOfProblem, checkShape } from "./problem.ts";

/**
 * The epoch of a claim of this cell, from `records.fencingToken`. Each later owner of the name has a larger
 * one (E1), and so has each later version of the claim.
 */
export interface FencingToken {
  readonly bucket: Bucket;
  readonly epoch: number;
}

/**
 * Carries out a write that depends on owning a name, to something that several cells can write. The resource
 * keeps the largest epoch that has written to it, and the write is a conditional update: a writer that is
 * late finds a larger epoch there, and changes nothing.
 *
 * @param token from `records.fencingToken`, read before the work began
 * @param write the conditional update; returns the number of rows that it has changed
 * @throws StaleEpochError if it has changed none
 *
 * @example
 * ```ts
 * import { fencedWrite } from "leasehold/client";
 *
 * declare const shared: import("pg").Pool; // a database that several cells write
 * declare function render(name: string): Promise<string>; // takes minutes
 *
 * const token = await client.records.fencingToken({ type: "ROUTES", value: "acme" });
 * const site = await render("acme");
 * await fencedWrite(token, async (epoch) => {
 *   const { rowCount } = await shared.query(
 *     "UPDATE sites SET body = $1, epoch = $2 WHERE name = 'acme' AND epoch <= $2",
 *     [site, epoch],
 *   );
 *   return rowCount ?? 0;
 * });
 * ```
 */
export async function fencedWrite(
  { bucket, epoch }: FencingToken,
  write: (epoch: number) => Promise<number>,
): Promise<number> {
  const rows = await write(epoch);
  if (!Number.isSafeInteger(rows) || rows < 0)
    throw new TypeError(`\`write\` must return the number of changed rows; it returned ${String(rows)}`);
  if (rows === 0)
    throw new StaleEpochError(
      `the write for the name ${JSON.stringify(bucket.value)} with the epoch ${epoch} changed no row: a ` +
        "later owner or version of the claim has written, or the row does not exist",
      { code: "FAILED_PRECONDITION" },
    );
  return rows;
}

type End = Extract<ExportLine, { end: unknown }>["end"];

/**
 * The records of a cell as a stream, each once and in order. When the stream breaks, the client continues
 * behind the last record, and its retries count anew after each progress. Leaving the loop ends the request.
 * Another loop continues where the first one stopped.
 */
export class Export implements AsyncIterable<ClaimRecord> {
  readonly #connection: Connection;
  readonly #callFrom: (cursor: string) => Call;
  /**
   * Records with source ids behind the cursor that were given. They come again when the request is repeated.
   */
  readonly #given = new Set<string>();
  #cursor: string;
  #asOf: string | undefined;

  constructor(connection: Connection, callFrom: (cursor: string) => Call, from: string) {
    this.#connection = connection;
    this.#callFrom = callFrom;
    this.#cursor = from;
  }

  /**
   * The last source id whose records were all given, including the record in hand; "" before the first. Save
   * it after you have handled the record. Another process continues from it with `sourceIdGt`, and gets the
   * records of an unfinished source id again.
   */
  get cursor(): string {
    return this.#cursor;
  }

  /**
   * When the first answer began, by the coordinator's clock. Later answers may be newer: an export is no
   * snapshot.
   */
  get asOf(): string | undefined {
    return this.#asOf;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ClaimRecord, void, undefined> {
    for (let attempt = 1; ; attempt += 1) {
      const { size } = this.#given;
      const from = this.#cursor;
      const call = this.#callFrom(from);
      const answer = yield* this.#connection.lines<ClaimRecord, End>(call, attempt, (line) =>
        this.#read(line as ExportLine),
      );
      if (answer.kind === "ok" && answer.value === "complete") return;
      const isAhead = this.#cursor !== from || this.#given.size > size;
      if (isAhead) attempt = answer.kind === "ok" ? 0 : 1;
      if (isAhead && answer.kind === "ok") continue;
      const stopped = await this.#connection.retry(call, failureOf(answer), attempt);
      if (stopped !== undefined) throw errorOf(stopped);
    }
  }

  /** Ignores unknown kinds of lines, which are for newer clients. */
  #read(line: ExportLine): LineResult<ClaimRecord, End> {
    if ("record" in line) return this.#readRecord(line);
    if ("as_of" in line) this.#asOf ??= line.as_of;
    if ("error" in line) return { end: answerOfProblem(line.error.status, { ...line.error }) };
    if (!("end" in line)) return undefined;
    // The coordinator may have read a long way without a record.
    if (line.end === "continue") this.#moveTo(line.cursor);
    return { end: { kind: "ok", value: line.end } };
  }

  #moveTo(cursor: string): void {
    if (cursor !== this.#cursor) this.#given.clear();
    this.#cursor = cursor;
  }

  #readRecord({ record, cursor }: { record: ClaimRecord; cursor: string }): LineResult<ClaimRecord, End> {
    checkShape({ record, cursor }, LINE);
    const key = `${record.source.id} ${record.uuid}`;
    const isGiven = this.#given.has(key);
    this.#given.add(key);
    this.#moveTo(cursor);
    return isGiven ? undefined : { item: record };
  }
}

const LINE = { record: operations.listRecords.shape.records[0], cursor: "string" } as const;

/** A request to continue from the same cursor would repeat without end, so it is a failure. */
const failureOf = (answer: Answer<End>): Exclude<Answer<End>, { kind: "ok" }> =>
  answer.kind === "ok"
    ? unknown("the export makes no progress: the coordinator asks to continue from the same cursor")
    : answer;

/**
 * A record, and the cell that owns the name. For another cell's record, a cell gets only the bucket, the
 * status and that cell.
 */
export type Found = Operations["getRecord"]["answer"];

interface Range {
  sourceType: Source["type"];
  /** Only source ids after this one. */
  sourceIdGt?: string | undefined;
  /** Only source ids up to and including this one. */
  sourceIdLte?: string | undefined;
  /** All bucket types by default. */
  bucketTypes?: readonly Bucket["type"][] | undefined;
}

/** It has no deadline. Each line of the answer must arrive within the client's `attemptMs`. */
export interface ExportRecordsOptions extends Range, Pick<CallOptions, "signal"> {}

export interface ListRecordsOptions extends Range, CallOptions {
  /** A page may be larger, to contain all records of its last source id. */
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

export interface RecordPage extends Page<ClaimRecord> {
  /** When the reading of the page began, by the coordinator's clock. */
  asOf: Date;
  /** Whether the next page continues with records of this page's last source id, which has very many. */
  isSplit: boolean;
}

/** Source ids above `sourceIdGt`, up to and including `sourceIdLte`. An omitted bound is open. */
export interface SourceIdRange {
  sourceIdGt?: string | undefined;
  sourceIdLte?: string | undefined;
}

export interface DigestRecordsOptions {
  sourceType: Source["type"];
  /** All bucket types by default. */
  bucketTypes?: readonly Bucket["type"][] | undefined;
  /**
   * In ascending order, without overlaps. The coordinator takes 256 ranges per call, unless its limits say
   * otherwise.
   */
  ranges: readonly SourceIdRange[];
}

/** The digest of the claims in a range. */
export interface RangeDigest {
  count: number;
  /** 32 hexadecimal digits. */
  hash: string;
  /**
   * True when a lease touches the range, or it has more claims than could be
   * read at one moment. Then the digest proves nothing, and `count` may be too small.
   */
  held: boolean;
  newestUpdatedAt: Date | undefined;
}

export interface RecordDigests {
  asOf: Date;
  /** One for each range, in order. */
  digests: RangeDigest[];
}

/** The coordinator's limit per call. */
const LOOKUP_BUCKETS = 100;

/** Who owns which name. */
export class Records {
  readonly #caller: Caller;
  readonly #cell: string | undefined;

  constructor(caller: Caller, cell: string | undefined) {
    this.#caller = caller;
    this.#cell = cell;
  }

  /**
   * Finds the owner of a name. Returns undefined when the name has none. Throws `UnavailableError` when the
   * answer is not known.
   */
  async find(bucket: Bucket, options: CallOptions = {}): Promise<Found | undefined> {
    const params = { bucket_type: bucket.type, value: bucket.value };
    const answer = await this.#caller.call("getRecord", { ...options, params });
    const isFree = answer.kind === "refused" && answer.code === "NOT_FOUND" && answer.reason === undefined;
    return isFree ? undefined : valueOf(answer);
  }

  /**
   * Returns the epoch of a claim of the client's cell, for `fencedWrite`. Read it before the work begins that
   * depends on the name.
   *
   * @throws NotFoundError if nobody has the name, or a lease that creates it is not committed yet
   * @throws NotOwnerError if another cell has it
   */
  async fencingToken(bucket: Bucket, options: CallOptions = {}): Promise<FencingToken> {
    const cell = requireCell(this.#cell);
    const { record } = (await this.find(bucket, options)) ?? {};
    const name = JSON.stringify(bucket.value);
    if (record === undefined || record.status === "LEASE_CREATING")
      throw new NotFoundError(`the name ${name} has no claim`, { code: "NOT_FOUND" });
    if (!("epoch" in record) || record.cell_id !== cell)
      throw new NotOwnerError(`the name ${name} belongs to another cell`, { code: "FAILED_PRECONDITION" });
    return { bucket, epoch: record.epoch };
  }

  /**
   * Looks up many names, with one call per 100. Results are in the order of `buckets`. A name whose answer is
   * unknown is asked for again, alone.
   *
   * @throws UnavailableError if the answer about a name stays unknown
   */
  async lookup(buckets: readonly Bucket[], options: CallOptions = {}): Promise<LookupResult[]> {
    const results: LookupResult[] = [];
    for (let at = 0; at < buckets.length; at += LOOKUP_BUCKETS) {
      const body = { buckets: buckets.slice(at, at + LOOKUP_BUCKETS) };
      const found = valueOf(await this.#caller.call("lookupRecords", { ...options, body })).results;
      // With a result missing, every later name would get the result of another one.
      if (found.length !== body.buckets.length)
        throw errorOf(
          unread(`the coordinator returned ${found.length} results for ${body.buckets.length} names`),
        );
      for (const result of found) {
        if (!("unavailable" in result)) results.push(result);
        // A batch of one name is refused if its answer is unknown, and repeated like every other call.
        else if (found.length > 1) results.push(...(await this.lookup([result.bucket], options)));
        else throw errorOf(unread(result.unavailable.detail));
      }
    }
    return results;
  }

  /**
   * Lists the cell's records of one source type by source id: decimal ids first, as numbers, then all others.
   */
  list({
    sourceType,
    sourceIdGt,
    sourceIdLte,
    bucketTypes,
    pageSize,
    pageToken,
    ...options
  }: ListRecordsOptions): Pages<ClaimRecord, RecordPage> {
    const params = { cell: requireCell(this.#cell) };
    const range = { source_id_gt: sourceIdGt, source_id_lte: sourceIdLte };
    const query = { source_type: sourceType, ...range, bucket_type: bucketTypes, page_size: pageSize };
    return pagesOf(this.#caller, "listRecords", { ...options, params, query }, recordPageOf, pageToken);
  }

  /** Streams all records. Use it for more than a few pages. The request is sent when the loop starts. */
  export({ sourceType, sourceIdGt = "", sourceIdLte, bucketTypes, signal }: ExportRecordsOptions): Export {
    const params = { cell: requireCell(this.#cell) };
    const query = { source_type: sourceType, source_id_lte: sourceIdLte, bucket_type: bucketTypes };
    const callFrom = (cursor: string): Call => {
      const input = { signal, params, query: { ...query, source_id_gt: cursor } };
      const call = this.#caller.callFor("exportRecords", input);
      if ("kind" in call) throw errorOf(call);
      return call;
    };
    return new Export(this.#caller.connection, callFrom, sourceIdGt);
  }

  /** Reads digests of the cell's records, one per range. Compare them with digests of your own rows. */
  async digests(
    { sourceType, bucketTypes, ranges }: DigestRecordsOptions,
    options: CallOptions = {},
  ): Promise<RecordDigests> {
    const body = {
      source_type: sourceType,
      bucket_types: bucketTypes,
      ranges: ranges.map(({ sourceIdGt, sourceIdLte }) => ({
        source_id_gt: sourceIdGt,
        source_id_lte: sourceIdLte,
      })),
    };
    const answer = await this.#caller.call("digestRecords", {
      ...options,
      params: { cell: requireCell(this.#cell) },
      body,
    });
    const { as_of: asOf, digests } = valueOf(answer);
    // With a digest missing, every later range would get the digest of another one.
    if (digests.length !== ranges.length)
      throw errorOf(unread(`the coordinator returned ${digests.length} digests for ${ranges.length} ranges`));
    return {
      asOf: dateOf(asOf),
      digests: digests.map(({ count, hash, held, newest_updated_at: newest }) => ({
        count,
        hash,
        held,
        newestUpdatedAt: newest === null ? undefined : dateOf(newest),
      })),
    };
  }
}

/** An invalid date would compare as neither earlier nor later than any other. */
function dateOf(text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw errorOf(unread("the answer has an invalid time"));
  return date;
}

const recordPageOf = (answer: Operations["listRecords"]["answer"]): RecordPage => ({
  items: answer.records,
  nextPageToken: answer.next_page_token,
  asOf: dateOf(answer.as_of),
  isSplit: answer.split,
});
