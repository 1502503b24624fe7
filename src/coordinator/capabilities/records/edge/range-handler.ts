import type { Principal } from "../../../auth/principal.ts";
import { idFault } from "../../../../common/ids.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { RecordPosition, SourceRange } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { compareBytes, sourceOrder } from "../../../../common/source-order.ts";
import type { WaitUntil } from "../../../runtime.ts";
import { invalid } from "../../../api/batch.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import { afterSource } from "../scan-store.ts";
import { reach, readTimeoutMs } from "../../../isolate/reach.ts";
import { mergeRecords, type MergedPage } from "./record-merge.ts";
import { READ_CALLS, countedRead } from "../../../api/handlers/ledger-access.ts";

interface Bounds {
  source_id_gt?: string | undefined;
  source_id_lte?: string | undefined;
}

interface RangeQuery {
  source_type: string;
  bucket_type?: readonly string[] | undefined;
}

/** Which claims of a cell are read. */
export interface Selection {
  sourceType: number;
  /** Null: all bucket types. */
  bucketTypes: number[] | null;
}

/** A call that reads some of a cell's records. */
interface RangeCall {
  deployment: Deployment;
  waitUntil: WaitUntil;
  principal: Principal;
  params: { cell: string };
}

interface PageRange extends SourceRange, Selection {
  /** The position after which the page begins. Undefined: at the beginning of the range. */
  behind?: RecordPosition | undefined;
  /** The number of records wanted. A page may be larger, to include all records of its last source id. */
  limit: number;
  /** How many messages to objects the page may take. */
  calls: number;
  /** Called before every message to an object. */
  onCall?: () => void;
}

/**
 * The platform allows a Worker 1,000 calls to objects for one request on the Free plan, and 10,000 on the
 * Paid plan. Those above this limit are for the directory and the ledger.
 */
export const MAX_CALLS = 900;

/** Returns the numbers of the types that a listing, an export or a digest names. */
export async function selectionOf(
  { types }: Deployment,
  { source_type: source, bucket_type: buckets }: RangeQuery,
  bucketField = "bucket_type",
): Promise<Result<Selection>> {
  const known = await types.forRead([
    { kind: "source", name: source, field: "source_type" },
    ...(buckets ?? []).map((name, index) => ({
      kind: "bucket" as const,
      name,
      field: `${bucketField}[${index}]`,
    })),
  ]);
  if (!known.ok) return known;
  const numbers = known.value
    .select([...new Set(buckets)].map((name) => ({ kind: "bucket" as const, name })))
    .map(({ number }) => number);
  return ok({
    sourceType: known.value.named("source", source)?.number ?? 0,
    bucketTypes: numbers.length === 0 ? null : numbers,
  });
}

/** Checks each end of a range of source ids by itself. `at` is the range's place in the request. */
export function boundsOf(
  { source_id_gt: gt, source_id_lte: lte }: Bounds,
  limits: Limits,
  at = "",
): Result<SourceRange> {
  for (const [name, id] of Object.entries({ source_id_gt: gt, source_id_lte: lte })) {
    const fault = id === undefined ? undefined : idFault(id, limits);
    if (fault !== undefined) return invalid(`${at}${name}`, fault);
  }
  return ok({
    after: gt === undefined ? "" : sourceOrder(gt),
    upTo: lte === undefined ? null : sourceOrder(lte),
  });
}

/**
 * The range of a list or an export. `source_id_gt` may be empty, like the first cursor of an export: then the
 * range starts at the beginning.
 */
export function rangeOf(
  { source_id_gt: gt, source_id_lte: lte }: Bounds,
  limits: Limits,
): Result<SourceRange> {
  const range = boundsOf({ source_id_gt: gt === "" ? undefined : gt, source_id_lte: lte }, limits);
  if (!range.ok || range.value.upTo === null || compareBytes(range.value.after, range.value.upTo) <= 0)
    return range;
  return invalid("source_id_lte", "must not come before `source_id_gt` in the order of source ids");
}

/**
 * Reads the next of a cell's records (R3), after the cell's ledger has confirmed that the caller's key is
 * still valid, and that not too many reads are running.
 */
export async function readRange(
  call: RangeCall,
  { after, upTo, behind = afterSource(after), limit, calls, onCall, sourceType, bucketTypes }: PageRange,
): Promise<Result<MergedPage>> {
  const { deployment, params } = call;
  const { envelope, objects, config, shards } = deployment;
  const { limits } = config;
  for (let made = 0; made < READ_CALLS; made += 1) onCall?.();
  const range = {
    ...envelope,
    cell: params.cell,
    sourceType,
    bucketTypes,
    after,
    upTo,
  };
  const options = { shards, width: limits.fanOut, limit, extra: limits.maxPageItems, calls, behind };
  return countedRead(call, () =>
    mergeRecords(options, (shard, cursor, maxRows) => {
      onCall?.();
      return reach(readTimeoutMs(deployment.config.limits), { name: `shard ${shard}` }, () =>
        objects.shard(shard).listRecords({ ...range, cursor, limit: maxRows }),
      );
    }),
  );
}
