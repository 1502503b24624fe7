import type * as z from "zod";
import { Semaphore } from "../kernel/fan-out.ts";
import type { Cell } from "../kernel/directory/messages.ts";
import type { BucketKey, ClaimRecord } from "../kernel/messages.ts";
import { shardOf } from "../kernel/placement.ts";
import { ok, refused, type Refusal, type Result } from "../kernel/refusal.ts";
import { wallClock, type WaitUntil } from "../runtime.ts";
import { keyOf, inParts } from "../api/batch.ts";
import type { unavailable } from "../api/contract/unavailable.ts";
import type { Deployment } from "./deployment.ts";
import { sentence } from "../api/problem.ts";
import { reach, readTimeoutMs } from "./reach.ts";

export interface ApiBucket {
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

/** The key of the one name in a body. `field` is the bucket's field. */
export async function keyOfBucket(
  { types, config }: Deployment,
  bucket: ApiBucket,
  field: string,
): Promise<Result<BucketKey>> {
  const known = await types.forRead([{ kind: "bucket", name: bucket.type, field: `${field}.type` }]);
  return known.ok ? keyOf(bucket, known.value, field, config.limits) : known;
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
  for await (const [index, bucket] of inParts(buckets.entries(), ([, { value }]) => value)) {
    const key = keyOf(bucket, known.value, `${list}[${index}]`, config.limits);
    if (!key.ok) return key;
    keys.push(key.value);
  }
  return ok(keys);
}

/** One key of a lookup. Its answer comes as soon as its shard has answered. */
interface AskedKey {
  shard: number;
  answer: Promise<Result<Looked>>;
}

/** What is known about one key. `shard` is the one that has not answered. */
export type KeyAnswer = { ok: true; value: Looked } | { ok: false; shard: number; refusal: Refusal };

/** Looks up keys, in order. If the answer about any key is unknown, it is refused (R2). */
export async function lookUp(deployment: Deployment, keys: readonly BucketKey[]): Promise<Result<Looked[]>> {
  const looked: Looked[] = [];
  for (const each of await Promise.all(askShards(deployment, keys).map(({ answer }) => answer))) {
    if (!each.ok) return each;
    looked.push(each.value);
  }
  return ok(looked);
}

/**
 * How long a call about many names waits for more shards once one has answered, in inquiry timeouts. A shard
 * that has asked a ledger in vain about one of its names can then still answer about the others.
 */
const PATIENCE = 1.5;

interface LookedUp {
  /** In the order of the keys. */
  answers: KeyAnswer[];
  /** The owners of all records. */
  cells: ReadonlyMap<string, Cell>;
}

/**
 * Looks up keys, each with an answer of its own. It is refused only without any answer, or if it has computed
 * the shards before the deployment grew.
 *
 * @param refuse says why an answer can't be used
 */
export async function lookUpMany(
  deployment: Deployment,
  waitUntil: WaitUntil,
  keys: readonly BucketKey[],
  refuse: (looked: Looked) => Result<never> | undefined = () => undefined,
): Promise<Result<LookedUp>> {
  const asked = await askPatiently(deployment, keys);
  const looked = asked.flatMap((each) => (each.ok ? [each.value] : []));
  const cells = await cellsOf(deployment, waitUntil, looked);
  if (!cells.ok) return cells;
  const answers = asked.map((each): KeyAnswer => {
    if (!each.ok) return each;
    const { shard, record } = each.value;
    const hasOwner = record === null || cells.value.has(record.cell);
    const refusal = refuse(each.value) ?? (hasOwner ? undefined : unknownOwner);
    return refusal?.ok === false ? { ...refusal, shard } : each;
  });
  return refusalOfAll(answers) ?? ok({ answers, cells: cells.value });
}

/**
 * The refusal of a batch without any answer, or with outdated shards. It is about `min_position` only if all
 * shards were read: then a router knows that the coordinator works.
 */
function refusalOfAll(answers: readonly KeyAnswer[]): Result<never> | undefined {
  const refusals = answers.filter((each) => !each.ok);
  const outdated = refusals.find(({ refusal }) => refusal.reason === "PLACEMENT_MISMATCH");
  if (outdated !== undefined) return outdated;
  if (refusals.length < answers.length) return undefined;
  return refusals.find(({ refusal }) => refusal.field === undefined) ?? refusals[0];
}

/** What a batch says of a name without an answer. */
export const toUnavailable = ({
  code,
  reason,
  field,
  detail,
  retryAfterMs = 1_000,
}: Refusal): z.input<typeof unavailable> => ({
  code,
  reason,
  field,
  detail: sentence(detail),
  retry_after_ms: retryAfterMs,
});

/**
 * Once a shard has answered, the others have only some time left. Otherwise callers would give up before a
 * shard that hangs has its timeout, and would have no answer at all.
 */
async function askPatiently(deployment: Deployment, keys: readonly BucketKey[]): Promise<KeyAnswer[]> {
  const patienceMs = PATIENCE * deployment.config.limits.inquiryTimeoutMs;
  const isLate = Promise.withResolvers<typeof late>();
  let cancel: (() => void) | undefined;
  const answers = askShards(deployment, keys).map(async ({ shard, answer }): Promise<KeyAnswer> => {
    const each = await Promise.race([answer, isLate.promise]);
    if (!each.ok) return { ...each, shard };
    cancel ??= wallClock.after(patienceMs, () => isLate.resolve(late));
    return each;
  });
  const all = await Promise.all(answers);
  cancel?.();
  return all;
}

/** Asks about keys with one message per shard. */
export function askShards(deployment: Deployment, keys: readonly BucketKey[]): AskedKey[] {
  const { shards } = deployment;
  const { limits } = deployment.config;
  const byShard = Map.groupBy(keys.entries(), ([, { type, canonical }]) => shardOf(type, canonical, shards));
  const room = new Semaphore(limits.fanOut);
  const asked: AskedKey[] = [];
  for (const [shard, its] of byShard) {
    const answers = room.run(() =>
      askShard(
        deployment,
        shard,
        its.map(([, key]) => key),
      ),
    );
    for (const [at, [index]] of its.entries())
      asked[index] = { shard, answer: answers.then((all) => all[at] ?? unsure) };
  }
  // A caller that needs only the first answers must not leave unhandled rejections behind.
  void Promise.allSettled(asked.map(({ answer }) => answer));
  return asked;
}

async function askShard(
  { objects, envelope, config }: Deployment,
  shard: number,
  keys: readonly BucketKey[],
): Promise<Result<Looked>[]> {
  const answer = await reach(readTimeoutMs(config.limits), { name: `shard ${shard}` }, () =>
    objects.shard(shard).lookup({ ...envelope, keys: [...keys] }),
  );
  if (!answer.ok) return keys.map(() => answer);
  const { found, settled, position } = answer.value;
  return keys.map((key, at) => {
    const each = found[at];
    if (each === undefined || each.kind === "unknown") return unsure;
    const record = each.kind === "record" ? each.record : null;
    return ok({ key, shard, position, settled: settled[at] === true, record });
  });
}

const unsure: Result<never> = refused(
  "UNAVAILABLE",
  "the ledger that knows whether a name is taken cannot be reached",
  { retryAfterMs: 1_000 },
);

const late = refused("DEADLINE_EXCEEDED", "the name's shard did not answer in time");

/**
 * The cells that own these records. If this isolate's copy of the directory lacks one, which may have been
 * registered a moment ago, the directory is read. A cell that is still missing has no entry.
 */
async function cellsOf(
  { directory }: Deployment,
  waitUntil: WaitUntil,
  looked: readonly Looked[],
): Promise<Result<ReadonlyMap<string, Cell>>> {
  const copy = await directory.view(waitUntil);
  if (!copy.ok) return copy;
  const { cells, removedCells } = copy.value;
  // A shard that went back in time may have claims of a cell that was removed. It has no address.
  const isNew = looked.some(
    ({ record }) => record !== null && !cells.has(record.cell) && !removedCells.has(record.cell),
  );
  if (!isNew) return ok(cells);
  directory.expire();
  const latest = await directory.view(waitUntil);
  return latest.ok ? ok(latest.value.cells) : latest;
}

/** The same as `cellsOf`, but refused if a cell is missing. */
export async function ownersOf(
  deployment: Deployment,
  waitUntil: WaitUntil,
  looked: readonly Looked[],
): Promise<Result<ReadonlyMap<string, Cell>>> {
  const cells = await cellsOf(deployment, waitUntil, looked);
  return cells.ok && missingOwner(looked, cells.value) !== undefined ? unknownOwner : cells;
}

const missingOwner = (looked: readonly Looked[], cells: ReadonlyMap<string, Cell>): Looked | undefined =>
  looked.find(({ record }) => record !== null && !cells.has(record.cell));

const unknownOwner: Result<never> = refused(
  "UNAVAILABLE",
  "the directory doesn't have the address of the cell that owns the name",
  { retryAfterMs: 1_000 },
);
