import { unknown } from "./answer.ts";
import { requireCell, type Caller } from "./caller.ts";
import type { Call, CallOptions } from "./connection.ts";
import { errorOf, valueOf } from "./errors.ts";
import { Export } from "./export.ts";
import { Pages, type Page } from "./pages.ts";
import type { Bucket, LookupResult, Operations, Record as ClaimRecord, Source } from "./api-types.ts";

/** A record and the cell that owns the name. Of another cell's record a cell gets only the bucket, its status and that cell. */
export type Found = Operations["getRecord"]["answer"];

interface Range {
  sourceType: Source["type"];
  /** Only source ids after this one. */
  sourceIdGt?: string | undefined;
  /** Only source ids up to this one. */
  sourceIdLte?: string | undefined;
  /** Left out: all. */
  bucketTypes?: readonly Bucket["type"][] | undefined;
}

/** No deadline: each line of the answer has the client's `attemptMs` to come. */
export interface ExportRecordsOptions extends Range, Pick<CallOptions, "signal"> {}

export interface ListRecordsOptions extends Range, CallOptions {
  /** A page can be larger: the records of one source id are never split. */
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

export interface RecordPage extends Page<ClaimRecord> {
  /** When the reading of the page began, by the coordinator's clock. */
  asOf: Date;
}

/** Source ids in (gt, lte]; what is left out is open. */
export interface SourceIdRange {
  sourceIdGt?: string | undefined;
  sourceIdLte?: string | undefined;
}

export interface DigestRecordsOptions {
  sourceType: Source["type"];
  /** Left out: all. */
  bucketTypes?: readonly Bucket["type"][] | undefined;
  /** In order, and none begins before the end of the one before it. The coordinator takes 256 at once, unless it says otherwise. */
  ranges: readonly SourceIdRange[];
}

/** What the claims of a range add up to. */
export interface RangeDigest {
  count: number;
  /** 32 hexadecimal digits. */
  hash: string;
  /** A lease touches the range, or a claim in it has no digest: it proves nothing. */
  held: boolean;
  newestUpdatedAt: Date | undefined;
}

export interface RecordDigests {
  asOf: Date;
  /** One for each range, in order. */
  digests: RangeDigest[];
}

/** As many as the coordinator takes at once. */
const LOOKUP_BUCKETS = 100;

/** Who owns which name. */
export class Records {
  readonly #caller: Caller;
  readonly #cell: string | undefined;

  constructor(caller: Caller, cell: string | undefined) {
    this.#caller = caller;
    this.#cell = cell;
  }

  /** Undefined when nobody has the name. That nobody can tell is an error (`UnavailableError`), never undefined. */
  async find(bucket: Bucket, options: CallOptions = {}): Promise<Found | undefined> {
    const params = { bucket_type: bucket.type, value: bucket.value };
    const answer = await this.#caller.call("getRecord", { ...options, params });
    const isFree = answer.kind === "refused" && answer.code === "NOT_FOUND" && answer.reason === undefined;
    return isFree ? undefined : valueOf(answer);
  }

  /** Many names, in the order of `buckets`: a call for every hundred. */
  async lookup(buckets: readonly Bucket[], options: CallOptions = {}): Promise<LookupResult[]> {
    const results: LookupResult[] = [];
    for (let at = 0; at < buckets.length; at += LOOKUP_BUCKETS) {
      const body = { buckets: buckets.slice(at, at + LOOKUP_BUCKETS) };
      const found = valueOf(await this.#caller.call("lookupRecords", { ...options, body })).results;
      // One too few, and every later name would get another's result.
      if (found.length !== body.buckets.length)
        throw errorOf(unknown(`${body.buckets.length} names were looked up, and ${found.length} answered`));
      results.push(...found);
    }
    return results;
  }

  /** The cell's records of one source type, ordered by source id: decimal ids as numbers, before all others. */
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
    return new Pages(async (token) => {
      const answer = await this.#caller.call("listRecords", {
        ...options,
        params,
        query: { ...query, page_token: token },
      });
      const { as_of: asOf, records, next_page_token: nextPageToken } = valueOf(answer);
      return { items: records, nextPageToken, asOf: dateOf(asOf) };
    }, pageToken);
  }

  /** All of them, as a stream: for many more than a few pages. Nothing is sent before somebody looks. */
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

  /** What the cell's records in each range add up to, to be compared with its own rows without reading them. */
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
    // One too few, and every later range would get another's.
    if (digests.length !== ranges.length)
      throw errorOf(
        unknown(`digests of ${ranges.length} ranges were asked for, and ${digests.length} answered`),
      );
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

/** What is no time would compare as neither earlier nor later than any. */
function dateOf(text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw errorOf(unknown("the answer holds a time that is none"));
  return date;
}
