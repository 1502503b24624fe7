/** Tests of the scopes of claims. */
import { expect, test } from "vitest";
import { payloadHash } from "../../../../src/coordinator/api/batch.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, decideRequest, keyOf, opsOf, type OpSpec } from "../../../support/ops.ts";
import { sourceOf } from "../../../support/types.ts";

const key = keyOf("ROUTES", "ada");

async function commit(c: Cluster, ...ops: readonly OpSpec[]): Promise<void> {
  const id = c.uuid();
  const { object } = c.ledger("1");
  expect(await c.clock.runUntil(object.begin(beginRequest(c.envelope, id, ops)))).toMatchObject({ ok: true });
  const decided = object.decide(decideRequest(c.envelope, id, "COMMITTED"));
  expect(await c.clock.runUntil(decided)).toMatchObject({ ok: true });
  c.clock.jump(1_000);
}

async function scopeOf(c: Cluster): Promise<string | null> {
  const answer = await c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys: [key] }));
  const found = answer.ok ? answer.value.found[0] : undefined;
  if (found?.kind !== "record") throw new Error(JSON.stringify(answer));
  return found.record.scope;
}

async function digestOf(c: Cluster): Promise<readonly number[] | undefined> {
  const message = {
    ...c.envelope,
    cell: "1",
    sourceType: sourceOf("RAILS_TABLE_ROUTES", "1").type,
    bucketTypes: null,
    ranges: [{ after: "", upTo: null }],
    cursor: null,
  };
  const answer = await c.clock.runUntil(c.shard(0).object.digestRecords(message));
  return answer.ok ? answer.value.digests[0]?.words : undefined;
}

test("[R2] lookups, past claims and changes show a scope, and a replace changes it", async () => {
  const c = await Cluster.start({ shards: 1 });
  await commit(c, { value: "ada", scope: "org-1" });
  expect(await scopeOf(c)).toBe("org-1");
  await commit(c, { kind: "replace", value: "ada", scope: "org-2" });
  expect(await scopeOf(c)).toBe("org-2");
  await commit(c, { kind: "replace", value: "ada" });
  expect(await scopeOf(c)).toBeNull();
  const shard = c.shard(0).object;
  const periods = await c.clock.runUntil(
    shard.listPeriods({ ...c.envelope, key, before: null, atMs: null, limit: 10 }),
  );
  expect(periods.ok && periods.value.periods.map(({ scope }) => scope)).toEqual([null, "org-2", "org-1"]);
  const changes = await c.clock.runUntil(
    shard.listChanges({ ...c.envelope, after: 0, cell: null, type: null, limit: 100 }),
  );
  const told = changes.ok ? changes.value.changes.filter(({ claim }) => claim !== undefined) : [];
  expect(told.map(({ event, claim }) => [event, claim?.details?.scope])).toEqual([
    ["claimed", "org-1"],
    ["replaced", "org-2"],
    ["replaced", null],
  ]);
});

test("[R2] the record of a granted create shows its scope", async () => {
  const c = await Cluster.start({ shards: 1 });
  const begun = c
    .ledger("1")
    .object.begin(beginRequest(c.envelope, c.uuid(), [{ value: "ada", scope: "org-1" }]));
  expect(await c.clock.runUntil(begun)).toMatchObject({ ok: true });
  expect(await scopeOf(c)).toBe("org-1");
});

test("[R4] the digest of a range covers the scopes of its claims", async () => {
  const c = await Cluster.start({ shards: 1 });
  await commit(c, { value: "ada" });
  const without = await digestOf(c);
  await commit(c, { kind: "replace", value: "ada", scope: "org-1" });
  const scoped = await digestOf(c);
  await commit(c, { kind: "replace", value: "ada" });
  expect(scoped).not.toEqual(without);
  expect(await digestOf(c)).toEqual(without);
});

test("[B2] the hash of a batch covers its scopes", () => {
  const hashOf = (spec: Partial<OpSpec>): string =>
    payloadHash(opsOf("hash1.shards1.canonical1", [{ value: "ada", ...spec }]), false);
  const hashes = [{}, { epoch: 1 }, { scope: "1" }, { scope: "2" }, { scope: "1", epoch: 1 }].map(hashOf);
  expect(new Set(hashes).size).toBe(hashes.length);
});

test("a claim without a scope has no entry in the indexes by scope", async () => {
  const c = await Cluster.start({ shards: 1 });
  await commit(c, { value: "ada", scope: "org-1" }, { value: "bob" });
  const count = (index: string): unknown =>
    c
      .shard(0)
      .database.prepare(`SELECT count(*) AS n FROM claim INDEXED BY ${index} WHERE scope IS NOT NULL`)
      .get();
  expect(count("claim_by_scope")).toEqual({ n: 1 });
});
