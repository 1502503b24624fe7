import type * as z from "zod";
import type { Principal } from "../../auth/principal.ts";
import { fanOut } from "../../core/fan-out.ts";
import type { Cell } from "../../core/directory/messages.ts";
import type { BucketKey, ClaimRecord, LookupFound, RecordPosition } from "../../core/messages.ts";
import { shardOf } from "../../core/placement.ts";
import { ok, refused, type Result } from "../../core/refusal.ts";
import type { Types } from "../../core/types/types.ts";
import type { WaitUntil } from "../../runtime.ts";
import { keyOf } from "../batch.ts";
import type { recordRoutes } from "../contract/record-routes.ts";
import type * as schemas from "../contract/schemas.ts";
import type { Deployment } from "../deployment.ts";
import type { Handlers } from "../handler.ts";
import { pageOf } from "../paging.ts";
import { reach, readTimeoutMs } from "../reach.ts";
import { storedTypes, toApiRecordFor, timeOf, toApiRecord } from "../answers.ts";
import { isSplit } from "../record-merge.ts";
import { digestRecords } from "./digest-records.ts";
import { MAX_CALLS, rangeOf, readRange, selectionOf } from "./record-range.ts";

export const recordHandlers: Handlers<Exclude<keyof typeof recordRoutes, "exportRecords">> = {
  async getRecord({ deployment, waitUntil, principal, params: { bucket_type: type, value } }) {
    const types = await deployment.types.forRead([{ kind: "bucket", name: type, field: "bucket_type" }]);
    if (!types.ok) return types;
    const key = keyOf({ type, value }, types.value, "", deployment.config.limits);
    if (!key.ok) return invalidValue(key.refusal.detail);
    const { type: kind, canonical } = key.value;
    const answer = await askShard(deployment, shardOf(kind, canonical, deployment.config.shards), [
      key.value,
    ]);
    const found = answer.ok ? recordsOf(answer.value) : answer;
    if (!found.ok) return found;
    const [record] = found.value;
    if (record === undefined || record === null) return refused("NOT_FOUND", "no cell has this name");
    const owners = await ownersOf(deployment, waitUntil, [record]);
    if (!owners.ok) return owners;
    const known = await deployment.types.forAnswer(storedTypes([record]));
    if (!known.ok) return known;
    return ok({ status: 200, body: shown(record, principal, owners.value, known.value) });
  },

  async lookupRecords({ deployment, waitUntil, principal, body: { buckets } }) {
    const { limits } = deployment.config;
    const types = await deployment.types.forRead(
      buckets.map(({ type }, index) => ({ kind: "bucket", name: type, field: `buckets[${index}].type` })),
    );
    if (!types.ok) return types;
    const keys: BucketKey[] = [];
    for (const [index, bucket] of buckets.entries()) {
      const key = keyOf(bucket, types.value, `buckets[${index}]`, limits);
      if (!key.ok) return key;
      keys.push(key.value);
    }
    const found = await lookUp(deployment, keys);
    if (!found.ok) return found;
    const owners = await ownersOf(deployment, waitUntil, found.value);
    if (!owners.ok) return owners;
    const known = await deployment.types.forAnswer(storedTypes(found.value.filter((each) => each !== null)));
    if (!known.ok) return known;
    const results = buckets.map((bucket, index) => {
      const record = found.value[index] ?? null;
      return record === null
        ? { bucket, found: false }
        : { bucket, found: true, ...shown(record, principal, owners.value, known.value) };
    });
    return ok({ status: 200, body: { results } });
  },

  async listRecords(call) {
    const { deployment, query } = call;
    const selection = await selectionOf(deployment, query);
    if (!selection.ok) return selection;
    const range = rangeOf(query, deployment.config.limits);
    if (!range.ok) return range;
    const bucketTypes = [...new Set(query.bucket_type)].toSorted();
    const page = await pageOf<RecordPosition>({ ...call, query: { ...query, bucket_type: bucketTypes } });
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const asOfMs = deployment.clock.now();
    const merged = await readRange(call, {
      ...range.value,
      ...selection.value,
      behind: position,
      limit,
      calls: MAX_CALLS,
    });
    if (!merged.ok) return merged;
    const types = await deployment.types.forAnswer(storedTypes(merged.value.records));
    if (!types.ok) return types;
    const body = {
      as_of: timeOf(asOfMs),
      records: merged.value.records.map((record) => toApiRecord(types.value, record)),
      split: isSplit(merged.value),
      next_page_token: await next(merged.value.next),
    };
    return ok({ status: 200, body });
  },

  digestRecords,
};

const invalidValue = (detail: string): Result<never> =>
  refused("INVALID_ARGUMENT", detail.replace("`.value`", "`value`"), { field: "value" });

/**
 * Looks up keys with one message per shard. The result has a record or null for each key, in order. If the
 * answer for any key is unknown, it is refused (R2).
 */
async function lookUp(
  deployment: Deployment,
  keys: readonly BucketKey[],
): Promise<Result<(ClaimRecord | null)[]>> {
  const { shards, limits } = deployment.config;
  const byShard = Map.groupBy(keys.entries(), ([, { type, canonical }]) => shardOf(type, canonical, shards));
  const found: LookupFound[] = [];
  const answers = await fanOut([...byShard], limits.fanOut, async ([shard, entries]) => {
    const asked = entries.map(([, key]) => key);
    const answer = await askShard(deployment, shard, asked);
    if (answer.ok)
      for (const [at, [index]] of entries.entries()) found[index] = answer.value[at] ?? { kind: "unknown" };
    return answer;
  });
  for (const answer of answers) if (!answer.ok) return answer;
  return recordsOf(found);
}

async function askShard(
  deployment: Deployment,
  shard: number,
  keys: BucketKey[],
): Promise<Result<LookupFound[]>> {
  const { objects, envelope } = deployment;
  const request = { ...envelope, keys };
  const answer = await reach(readTimeoutMs(deployment.config.limits), { name: `shard ${shard}` }, () =>
    objects.shard(shard).lookup(request),
  );
  return answer.ok ? ok(answer.value.found) : answer;
}

function recordsOf(found: readonly LookupFound[]): Result<(ClaimRecord | null)[]> {
  if (found.some(({ kind }) => kind === "unknown")) {
    return refused("UNAVAILABLE", "the ledger that knows whether a name is taken cannot be reached", {
      retryAfterMs: 1_000,
    });
  }
  return ok(found.map((each) => (each.kind === "record" ? each.record : null)));
}

/**
 * The cells that own these records. If this isolate's copy of the directory lacks one, which may have been
 * registered a moment ago, the directory is read.
 */
async function ownersOf(
  { directory }: Deployment,
  waitUntil: WaitUntil,
  records: readonly (ClaimRecord | null)[],
): Promise<Result<ReadonlyMap<string, Cell>>> {
  const copy = await directory.view(waitUntil);
  if (!copy.ok) return copy;
  const isComplete = (cells: ReadonlyMap<string, Cell>): boolean =>
    records.every((record) => record === null || cells.has(record.cell));
  if (isComplete(copy.value.cells)) return ok(copy.value.cells);
  directory.expire();
  const latest = await directory.view(waitUntil);
  if (!latest.ok) return latest;
  return isComplete(latest.value.cells)
    ? ok(latest.value.cells)
    : refused("UNAVAILABLE", "the directory doesn't have the address of the cell that owns the name");
}

function shown(
  record: ClaimRecord,
  principal: Principal,
  owners: ReadonlyMap<string, Cell>,
  types: Types,
): z.input<typeof schemas.recordAnswer> {
  return {
    record: toApiRecordFor(types, principal, record),
    cell: { id: record.cell, address: owners.get(record.cell)?.address ?? "" },
  };
}
