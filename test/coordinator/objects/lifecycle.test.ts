/** Tests of the objects across eviction, abort and alarms, in workerd. */
import {
  abortAllDurableObjects,
  evictAllDurableObjects,
  runDurableObjectAlarm,
  runInDurableObject,
} from "cloudflare:test";
import { expect, test } from "vitest";
import type { ShardCalls } from "../../../src/coordinator/kernel/methods.ts";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import type { ClaimShard } from "../../../src/coordinator/objects/durable-objects.ts";
import { numberInName } from "../../../src/coordinator/objects/identity.ts";
import { objectPorts } from "../../../src/coordinator/objects/ports.ts";
import { untilApplied } from "../../support/applied.ts";
import { changeEntries, HOLDS } from "../../support/holds.ts";
import { beginRequest, decideRequest, exchangeOf, opsOf } from "../../support/ops.ts";
import { stubsOf } from "../../support/workerd/stubs.ts";
import { env, queryShards, startObjects } from "./workerd-objects.ts";

const objects = stubsOf(env);
const names = Array.from({ length: 30 }, (_, n) => `life-${n}`);

/** The shard sees it when it starts again. */
const makeHoldsOld = (shard: number): Promise<void> =>
  runInDurableObject(objects.shard(shard), (_, state) =>
    changeEntries(objectPorts(state).sql, (entry) => entry.with(8, 1) as typeof entry),
  );

test("[B7] an abort during begins loses no acknowledged lease, and every id can be replayed", async () => {
  const w = await startObjects();
  const leases = names.map((name) => ({ name, lease: w.uuid() }));
  const works = leases.map(({ name, lease }) =>
    w.ledger("1").begin(beginRequest(w.envelope, lease, [name, `${name}-b`])),
  );
  const settled = Promise.allSettled(works);
  await new Promise((resume) => setTimeout(resume, 15));
  await abortAllDurableObjects();
  const acknowledged = (await settled).map((result) => result.status === "fulfilled" && result.value.ok);
  for (const [index, { name, lease }] of leases.entries()) {
    const replayed = await w.ledger("1").begin(beginRequest(w.envelope, lease, [name, `${name}-b`]));
    expect(replayed).toMatchObject({ ok: true, value: { lease: { state: "GRANTED" } } });
    if (acknowledged[index]) expect(replayed).toMatchObject({ value: { created: false } });
    expect(await w.ledger("1").decide(decideRequest(w.envelope, lease, "COMMITTED"))).toMatchObject({
      ok: true,
    });
  }
  await untilApplied(w.ledger("1"), w.envelope);
  expect(await w.holds()).toEqual([]);
  expect(await w.claims()).toHaveLength(2 * names.length);
});

test("[C2] [C3] an abort during commits loses none of them, and the alarm delivers the rest", async () => {
  const w = await startObjects();
  const leases = names.map((name) => ({ name, lease: w.uuid() }));
  for (const { name, lease } of leases) await w.ledger("1").begin(beginRequest(w.envelope, lease, [name]));
  const works = Promise.allSettled(
    leases.map(({ lease }) => w.ledger("1").decide(decideRequest(w.envelope, lease, "COMMITTED"))),
  );
  await new Promise((resume) => setTimeout(resume, 5));
  await abortAllDurableObjects();
  const acknowledged = (await works).map((result) => result.status === "fulfilled" && result.value.ok);
  await runDurableObjectAlarm(objects.ledger("1"));
  const states = await objects
    .ledger("1")
    .leaseStates({ ...w.envelope, leases: leases.map(({ lease }) => lease) });
  const decided = (states.ok ? states.value : []).filter((status) => status?.state === "COMMITTED");
  expect(decided.length).toBeGreaterThanOrEqual(acknowledged.filter(Boolean).length);
  expect(await w.claims()).toHaveLength(decided.length);
  expect(await w.holds()).toHaveLength(names.length - decided.length);
});

test("[M3] an object that an alarm wakes finds its name, which the platform does not pass", async () => {
  const w = await startObjects();
  const lease = w.uuid();
  await w.ledger("1").begin(beginRequest(w.envelope, lease, ["ada"]));
  const [op] = opsOf(w.envelope.placement, ["ada"]);
  if (op === undefined) throw new Error("no op");
  // The hold is old enough for the sweep, which needs the number of its shard.
  await makeHoldsOld(op.shard);
  await evictAllDurableObjects();
  const shards = env.CLAIM_SHARD as unknown as DurableObjectNamespace<ClaimShard>;
  const id = shards.idFromString(shards.idFromName(`shard-${op.shard}`).toString());
  const nameless = shards.get(id) as DurableObjectStub<ClaimShard> & ShardCalls;
  expect(await runDurableObjectAlarm(nameless)).toBe(true);
  expect(await w.holds()).toHaveLength(1);
  expect(
    await nameless.lookup({ ...w.envelope, keys: [{ type: op.type, canonical: op.canonical }] }),
  ).toMatchObject({
    ok: true,
    value: { found: [{ kind: "record", record: { status: "LEASE_CREATING" } }] },
  });
});

test("[M3] a shard that starts with holds sets its alarm at its first message", async () => {
  const w = await startObjects();
  await w.ledger("1").begin(beginRequest(w.envelope, w.uuid(), ["ada"]));
  const [op] = opsOf(w.envelope.placement, ["ada"]);
  const shard = objects.shard(op?.shard ?? 0);
  await runInDurableObject(shard, (_, state) => state.storage.deleteAlarm());
  await evictAllDurableObjects();
  await objects.shard(op?.shard ?? 0).ping(w.envelope);
  expect(
    await runInDurableObject(objects.shard(op?.shard ?? 0), (_, state) => state.storage.getAlarm()),
  ).toBeGreaterThan(Date.now());
  expect(await queryShards(`SELECT 1 FROM ${HOLDS}`)).toHaveLength(1);
});

test("[M3] the cron sets the alarm of a shard that has lost it, and of no other", async () => {
  const w = await startObjects();
  const [op] = opsOf(w.envelope.placement, ["ada"]);
  const holder = op?.shard ?? 0;
  const other = (holder + 1) % 16;
  const alarmOf = (shard: number): Promise<number | null> =>
    runInDurableObject(objects.shard(shard), (_, state) => state.storage.getAlarm());
  await w.ledger("1").begin(beginRequest(w.envelope, w.uuid(), ["ada"]));
  await runInDurableObject(objects.shard(holder), (_, state) => state.storage.deleteAlarm());
  await evictAllDurableObjects();
  await runCron(env, Date.now());
  expect(await alarmOf(holder)).toBeGreaterThan(Date.now());
  expect(await alarmOf(other)).toBeNull();
});

test("[B8] the sweep removes a hold that its ledger does not know", async () => {
  const w = await startObjects();
  await w.ledger("1").begin(beginRequest(w.envelope, w.uuid(), ["warm-up"]));
  const part = await objects.ledger("1").part(w.envelope);
  const lease = w.uuid();
  const [op] = opsOf(w.envelope.placement, ["orphan"]);
  if (op === undefined || !part.ok) throw new Error("no op, or no answer");
  const incarnation = part.value.point?.incarnation ?? 0;
  await objects.shard(op.shard).exchange({
    ...exchangeOf(w.envelope, "1"),
    prepares: [{ cell: "1", lease, incarnation, counter: 999, ops: [op], allowMissing: false }],
  });
  expect(await w.holds()).toHaveLength(2);
  await makeHoldsOld(op.shard);
  await evictAllDurableObjects();
  await runDurableObjectAlarm(objects.shard(op.shard));
  expect((await w.holds()).map(({ canonical }) => canonical)).toEqual(["warm-up"]);
});

test("an object with a wrong name throws, and one without a name uses its stored name", async () => {
  await startObjects();
  await runInDurableObject(objects.ledger("1"), (_, state) => {
    const { sql } = objectPorts(state);
    expect(() => numberInName({ name: "ledger-1" }, sql, "cell")).toThrow("named cell-<number>");
    expect(numberInName({}, sql, "cell")).toBe("1");
  });
});
