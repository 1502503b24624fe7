import { unread } from "./answer.ts";
import { requireCell, type Caller } from "./caller.ts";
import type { Call, CallOptions } from "./connection.ts";
import { errorOf, NotFoundError, NotOwnerError, valueOf } from "./errors.ts";
import { Export } from "./export.ts";
import type { FencingToken } from "./fencing.ts";
import { pagesOf, type Page, type Pages } from "./pages.ts";
import type { Bucket, LookupResult, Operations, ClaimRecord, Source } from "./api-types.ts";

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
