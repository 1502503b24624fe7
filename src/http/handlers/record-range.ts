import type { Principal } from "../../auth/principal.ts";
import { idFault } from "../../core/ids.ts";
import type { Limits } from "../../core/limits.ts";
import type { RecordPosition, SourceRange } from "../../core/messages.ts";
import { ok, type Result } from "../../core/refusal.ts";
import { bucketTypeNames, type BucketTypeName, type SourceTypeName } from "../../core/registry.ts";
import { compareBytes, sourceOrder } from "../../core/source-order.ts";
import type { WaitUntil } from "../../runtime.ts";
import { invalid } from "../batch.ts";
import type { Deployment } from "../deployment.ts";
import { afterSource } from "../../core/shard/scan-store.ts";
import { reach, readTimeoutMs } from "../reach.ts";
import { mergeRecords, type MergedPage } from "../record-merge.ts";
import { READ_CALLS, countedRead } from "./ledger-access.ts";

interface Bounds {
  source_id_gt?: string | undefined;
  source_id_lte?: string | undefined;
}

interface RangeQuery {
  source_type: SourceTypeName;
  bucket_type?: readonly BucketTypeName[] | undefined;
}

/** A call that reads some of a cell's records. */
interface RangeCall {
  deployment: Deployment;
  waitUntil: WaitUntil;
  principal: Principal;
  params: { cell: string };
  query: RangeQuery;
}

interface PageRange extends SourceRange {
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
  { after, upTo, behind = afterSource(after), limit, calls, onCall }: PageRange,
): Promise<Result<MergedPage>> {
  const { deployment, params, query } = call;
  const { envelope, objects, config } = deployment;
  const { shards, limits } = config;
  for (let made = 0; made < READ_CALLS; made += 1) onCall?.();
  const types = new Set(query.bucket_type);
  const range = {
    ...envelope,
    cell: params.cell,
    sourceType: query.source_type,
    bucketTypes: bucketTypeNames.filter((type) => types.size === 0 || types.has(type)),
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
