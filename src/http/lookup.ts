import { fanOut } from "../core/fan-out.ts";
import type { Cell } from "../core/directory/messages.ts";
import type { BucketKey, ClaimRecord } from "../core/messages.ts";
import { shardOf } from "../core/placement.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import { keyOf } from "./batch.ts";
import type { Deployment } from "./deployment.ts";
import { reach, readTimeoutMs } from "./reach.ts";

interface ApiBucket {
  type: string;
  value: string;
}

/** What a shard has answered about one key. */
export interface Looked {
  key: BucketKey;
  shard: number;
  /** The shard's durable position when the key was read (Q2). */
  position: number;
  /** Whether the key had no hold then (Q2). */
  settled: boolean;
  /** Null: no cell has the name. */
  record: ClaimRecord | null;
}

/** The key of the name in a path. A refusal names `bucket_type` or `value`. */
export async function keyInPath(
  { types, config }: Deployment,
  { bucket_type: type, value }: { bucket_type: string; value: string },
): Promise<Result<BucketKey>> {
  const known = await types.forRead([{ kind: "bucket", name: type, field: "bucket_type" }]);
  if (!known.ok) return known;
  const key = keyOf({ type, value }, known.value, "", config.limits);
  return key.ok
    ? key
    : refused("INVALID_ARGUMENT", key.refusal.detail.replace("`.value`", "`value`"), { field: "value" });
}

/** The keys of the names in a list of a body, in order. `list` is the list's field. */
export async function keysInBody(
  { types, config }: Deployment,
  buckets: readonly ApiBucket[],
  list: string,
): Promise<Result<BucketKey[]>> {
  const known = await types.forRead(
    buckets.map(({ type }, index) => ({ kind: "bucket", name: type, field: `${list}[${index}].type` })),
  );
  if (!known.ok) return known;
  const keys: BucketKey[] = [];
  for (const [index, bucket] of buckets.entries()) {
    const key = keyOf(bucket, known.value, `${list}[${index}]`, config.limits);
    if (!key.ok) return key;
    keys.push(key.value);
  }
  return ok(keys);
}

/**
 * Looks up keys with one message per shard. The result has an entry for each key, in order. If the answer for
 * any key is unknown, it is refused (R2).
 */
export async function lookUp(deployment: Deployment, keys: readonly BucketKey[]): Promise<Result<Looked[]>> {
  const { shards, limits } = deployment.config;
  const byShard = Map.groupBy(keys.entries(), ([, { type, canonical }]) => shardOf(type, canonical, shards));
  const answers = await fanOut([...byShard], limits.fanOut, ([shard, asked]) =>
    askShard(deployment, shard, asked),
  );
  const looked: Looked[] = [];
  for (const answer of answers) {
    if (!answer.ok) return answer;
    for (const [index, each] of answer.value) looked[index] = each;
  }
  return ok(looked);
}

/** Looks up keys of one shard. Each key has its place among all keys. */
async function askShard(
  { objects, envelope, config }: Deployment,
  shard: number,
  asked: readonly (readonly [index: number, key: BucketKey])[],
): Promise<Result<[index: number, looked: Looked][]>> {
  const request = { ...envelope, keys: asked.map(([, key]) => key) };
  const answer = await reach(readTimeoutMs(config.limits), { name: `shard ${shard}` }, () =>
    objects.shard(shard).lookup(request),
  );
  if (!answer.ok) return answer;
  const { found, settled, position } = answer.value;
  const looked: [number, Looked][] = [];
  for (const [at, [index, key]] of asked.entries()) {
    const each = found[at];
    if (each === undefined || each.kind === "unknown") return unsure;
    const record = each.kind === "record" ? each.record : null;
    looked.push([index, { key, shard, position, settled: settled[at] === true, record }]);
  }
  return ok(looked);
}

const unsure: Result<never> = refused(
  "UNAVAILABLE",
  "the ledger that knows whether a name is taken cannot be reached",
  { retryAfterMs: 1_000 },
);

/**
 * The cells that own these records. If this isolate's copy of the directory lacks one, which may have been
 * registered a moment ago, the directory is read.
 */
export async function ownersOf(
  { directory }: Deployment,
  waitUntil: WaitUntil,
  looked: readonly Looked[],
): Promise<Result<ReadonlyMap<string, Cell>>> {
  const copy = await directory.view(waitUntil);
  if (!copy.ok) return copy;
  const isComplete = (cells: ReadonlyMap<string, Cell>): boolean =>
    looked.every(({ record }) => record === null || cells.has(record.cell));
  if (isComplete(copy.value.cells)) return ok(copy.value.cells);
  directory.expire();
  const latest = await directory.view(waitUntil);
  if (!latest.ok) return latest;
  return isComplete(latest.value.cells)
    ? ok(latest.value.cells)
    : refused("UNAVAILABLE", "the directory doesn't have the address of the cell that owns the name");
}
