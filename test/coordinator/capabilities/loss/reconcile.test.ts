/** Tests of parts that are reconciled after they went back in time (H6, H7). */
import { describe, expect, test } from "vitest";
import type { BeginRequest } from "../../../../src/coordinator/kernel/messages.ts";
import type { PartStatus } from "../../../../src/coordinator/capabilities/loss/messages.ts";
import type { StoredEntry } from "../../../../src/coordinator/kernel/shard/hold-entries.ts";
import type { OpSpec } from "../../../support/ops.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { callerOf, keyOf, operator } from "../../../support/ops.ts";
import { begin, decide, LOST, own, saveLedger, saveShard } from "../../../support/go-back.ts";
import { damageHolds, loseHolds } from "../../../support/holds.ts";

const REASON = "restored from a backup";
const BY = { ...operator, reason: REASON };

const verifyingBegin = (c: Cluster, cell: string, lease: string, names: string[]) =>
  begin(c, cell, lease, names, { isVerification: true });

async function lookup(c: Cluster, name: string): Promise<unknown> {
  const answer = await c.clock.runUntil(
    c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", name)] }),
  );
  return answer.ok ? answer.value.found[0]?.kind : answer;
}

const reconcileShard = (c: Cluster, more = {}) =>
  c.clock.runUntil(
    c.shard(0).object.reconcile({
      ...c.envelope,
      cells: ["1", "2"],
      dryRun: false,
      operator: BY,
      ...more,
    }),
  );

const reconcileLedger = (c: Cluster, more = {}) =>
  c.clock.runUntil(
    c.ledger("1").object.reconcile({
      ...c.envelope,
      dryRun: false,
      operator: BY,
      revokedKeys: [],
      removedAtMs: null,
      ...more,
    }),
  );

const finish = (c: Cluster, removedCells: string[] = []) =>
  c.clock.runUntil(c.shard(0).object.finishReconciliation({ ...c.envelope, operator: BY, removedCells }));

const partOf = async (c: Cluster, part: "shard" | "ledger") => {
  const answer = await c.clock.runUntil(
    (part === "shard" ? c.shard(0) : c.ledger("1")).object.part(c.envelope),
  );
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
};

const declaredOf = ({ point }: PartStatus) => ({ incarnation: point?.incarnation ?? 0 });

const lossesOf = (c: Cluster): number => c.logged.filter(({ event }) => event === "history_lost").length;

const epochOf = (c: Cluster, name: string): number =>
  c.claims().find(({ canonical }) => canonical === name)?.epoch ?? 0;

/** A shard that has lost the claim `late` of cell 1, and knows it. */
async function lostShard(): Promise<Cluster> {
  const c = await Cluster.start({ shards: 1 });
  await own(c, "1", "early");
  const restore = saveShard(c);
  await own(c, "1", "late");
  restore();
  expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  return c;
}

describe("a shard", () => {
  test("[H6] tells what it has lost, and a dry run changes nothing", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveShard(c);
    await own(c, "1", "late");
    const open = c.uuid();
    await begin(c, "1", open, ["open"]);
    restore();
    expect(await partOf(c, "shard")).toMatchObject({ state: "complete", loss: null });
    await begin(c, "1", c.uuid(), ["other"]);
    const { state, point, loss } = await partOf(c, "shard");
    expect(state).toBe("lost");
    expect(loss).toMatchObject({ noticedBy: "the ledger of cell 1", point });
    expect(loss?.seen?.position).toBeGreaterThan(point?.position ?? Infinity);
    expect(await reconcileShard(c, { dryRun: true })).toEqual({
      ok: true,
      value: {
        status: { state, point, loss },
        lost: [{ cell: "1", outstanding: 1, decided: 1, leases: [open] }],
        unreachable: [],
      },
    });
    expect(await partOf(c, "shard")).toEqual({ state, point, loss });
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[H6] lets only verification take names until the reconciliation is finished", async () => {
    const c = await lostShard();
    expect(await reconcileShard(c)).toMatchObject({ ok: true, value: { status: { state: "reconciling" } } });
    // Another cell must not get a name whose claim is lost, and nobody is told that the name is free.
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(LOST);
    expect(await lookup(c, "late")).toBe("unknown");
    expect(await lookup(c, "early")).toBe("record");
    c.shard(0).restart();
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(LOST);
    const lease = c.uuid();
    expect(await verifyingBegin(c, "1", lease, ["late"])).toMatchObject({ ok: true });
    expect(await decide(c, "1", lease, "COMMITTED")).toMatchObject({ ok: true });
    expect(await finish(c)).toMatchObject({ ok: true, value: { state: "complete", loss: null } });
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ALREADY_EXISTS"));
    expect(await begin(c, "2", c.uuid(), ["free"])).toMatchObject({ ok: true });
    expect(await lookup(c, "nothing")).toBe("none");
    c.shard(0).restart();
    expect(await partOf(c, "shard")).toMatchObject({ state: "complete" });
  });

  test("[E1] [H6] assigns epochs above all that any ledger has seen", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveShard(c);
    for (let n = 0; n < 20; n += 1) await own(c, "2", `late-${n}`);
    await own(c, "1", "late");
    const before = Math.max(...c.claims().map(({ epoch }) => epoch));
    restore();
    for (let n = 0; n < 3; n += 1) await begin(c, "1", c.uuid(), [`other-${n}`]);
    expect(await reconcileShard(c)).toMatchObject({ ok: true });
    const lease = c.uuid();
    await verifyingBegin(c, "1", lease, ["late"]);
    await decide(c, "1", lease, "COMMITTED");
    expect(epochOf(c, "late")).toBeGreaterThan(before);
  });

  test("[H6] accepts nothing while a ledger cannot be asked", async () => {
    const c = await lostShard();
    await own(c, "2", "known").catch(() => {});
    c.fate = ({ method, to }) => (method === "knowledge" && to === "ledger 2" ? "lose" : "deliver");
    expect(await reconcileShard(c, { dryRun: true })).toMatchObject({ value: { unreachable: ["2"] } });
    expect(await reconcileShard(c)).toEqual(no("UNAVAILABLE"));
    expect(await partOf(c, "shard")).toMatchObject({ state: "lost" });
    expect(await finish(c)).toEqual(no("FAILED_PRECONDITION"));
  });

  test("[H6] is no loss to any ledger afterwards, also after restarts", async () => {
    const c = await lostShard();
    await reconcileShard(c);
    await finish(c);
    for (const cell of ["1", "2", "1", "2"]) {
      expect(await begin(c, cell, c.uuid(), [`after-${c.uuid()}`])).toMatchObject({ ok: true });
      c.ledger(cell).restart();
      c.shard(0).restart();
    }
    expect(c.logged.filter(({ event }) => event === "history_lost")).toHaveLength(1);
  });

  test("[H6] applies decisions meanwhile, and a commit whose hold is lost makes no claim", async () => {
    const c = await Cluster.start({ shards: 1 });
    const early = c.uuid();
    await begin(c, "1", early, ["early"]);
    const restore = saveShard(c);
    const late = c.uuid();
    await begin(c, "1", late, ["late"]);
    restore();
    await begin(c, "1", c.uuid(), ["other"]);
    await reconcileShard(c);
    expect(await decide(c, "1", early, "COMMITTED")).toMatchObject({ ok: true });
    expect(await decide(c, "1", late, "COMMITTED")).toMatchObject({ ok: true });
    expect(c.claims().map(({ canonical }) => canonical)).toEqual(["early"]);
  });

  test("[H4] [H6] notices that it goes back again, before and after it was reconciled", async () => {
    const c = await lostShard();
    const restore = saveShard(c);
    await reconcileShard(c);
    const lease = c.uuid();
    await verifyingBegin(c, "1", lease, ["late"]);
    const reconciling = saveShard(c);
    await decide(c, "1", lease, "COMMITTED");
    await own(c, "1", "never");
    reconciling();
    await c.pass(30_000);
    restore();
    expect(await partOf(c, "shard")).toMatchObject({ state: "lost" });
    await reconcileShard(c);
    expect(await verifyingBegin(c, "1", c.uuid(), ["late"])).toMatchObject({ ok: true });
  });

  test("[H4] [H6] is reconciled when only an operator knows of its loss", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restores = [saveShard(c), saveLedger(c)];
    await own(c, "1", "late");
    for (const restore of restores) restore();
    const before = await partOf(c, "shard");
    expect(before).toMatchObject({ state: "complete" });
    expect(await reconcileShard(c)).toMatchObject({ value: { status: before } });
    expect(await reconcileShard(c, { dryRun: true, declared: declaredOf(before) })).toMatchObject({
      ok: true,
      value: { status: before, unreachable: [] },
    });
    expect(await partOf(c, "shard")).toEqual(before);
    expect(await reconcileShard(c, { declared: declaredOf(before) })).toMatchObject({
      ok: true,
      value: {
        status: { state: "reconciling", loss: { noticedBy: "an operator", seen: null, point: before.point } },
      },
    });
    expect(c.logged.filter(({ event }) => event === "history_lost").map(({ fields }) => fields)).toEqual([
      expect.objectContaining({ part: "shard 0", noticed_by: "an operator", reason: REASON }),
    ]);
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(LOST);
    const lease = c.uuid();
    expect(await verifyingBegin(c, "1", lease, ["late"])).toMatchObject({ ok: true });
    await decide(c, "1", lease, "COMMITTED");
    expect(await finish(c)).toMatchObject({ ok: true, value: { state: "complete", loss: null } });
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ALREADY_EXISTS"));
  });

  test("[H4] [H6] stops when an operator declares its loss, also if a ledger cannot be asked", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const declared = declaredOf(await partOf(c, "shard"));
    c.fate = ({ method, to }) => (method === "knowledge" && to === "ledger 2" ? "lose" : "deliver");
    expect(await reconcileShard(c, { declared })).toEqual(no("UNAVAILABLE"));
    c.shard(0).restart();
    expect(await partOf(c, "shard")).toMatchObject({ state: "lost" });
    expect(await begin(c, "1", c.uuid(), ["free"])).toEqual(LOST);
    c.fate = () => "deliver";
    // The repeated call finds the loss that the first one has stored.
    expect(await reconcileShard(c, { declared })).toMatchObject({
      value: { status: { state: "reconciling" } },
    });
    expect(c.logged.filter(({ event }) => event === "history_lost")).toHaveLength(1);
  });

  test("[H4] [H6] a repeated declaration declares nothing once the loss is accepted", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const declared = declaredOf(await partOf(c, "shard"));
    // A restart alone does not end the declaration, although the next change makes a new incarnation.
    c.shard(0).restart();
    await own(c, "1", "more");
    expect(declaredOf(await partOf(c, "shard"))).not.toEqual(declared);
    expect(await reconcileShard(c, { declared })).toMatchObject({
      value: { status: { state: "reconciling" } },
    });
    await finish(c);
    await own(c, "1", "late");
    expect(await reconcileShard(c, { declared })).toMatchObject({ value: { status: { state: "complete" } } });
    expect(lossesOf(c)).toBe(1);
    const again = declaredOf(await partOf(c, "shard"));
    expect(await reconcileShard(c, { declared: again })).toMatchObject({
      value: { status: { state: "reconciling" } },
    });
    expect(lossesOf(c)).toBe(2);
  });

  test("[H6] a second call changes nothing more", async () => {
    const c = await lostShard();
    await reconcileShard(c);
    const before = await partOf(c, "shard");
    expect(await reconcileShard(c)).toMatchObject({ ok: true, value: { status: before } });
    await finish(c);
    const after = await partOf(c, "shard");
    expect(await finish(c)).toEqual({ ok: true, value: after });
    expect(await reconcileShard(c)).toEqual({
      ok: true,
      value: { status: after, lost: [], unreachable: [] },
    });
    expect(c.logged.filter(({ fields }) => fields["reason"] === REASON).map(({ event }) => event)).toEqual([
      "history_loss_accepted",
      "history_reconciled",
    ]);
  });
});

/** A ledger that has forgotten two leases, and knows it. The begin that made it notice holds nothing (H5). */
async function lostLedger(
  names: (string | OpSpec)[] = ["late"],
  shards = 1,
  more: Partial<BeginRequest> = {},
): Promise<[Cluster, string]> {
  const c = await Cluster.start({ shards });
  await own(c, "1", "early");
  await own(c, "1", "moved");
  const restore = saveLedger(c);
  const lease = c.uuid();
  await begin(c, "1", lease, names, more);
  await begin(c, "1", c.uuid(), ["a", "b", "c", "d"]);
  restore();
  expect(await begin(c, "1", c.uuid(), ["e", "f", "g", "h"])).toEqual(LOST);
  return [c, lease];
}

const get = (c: Cluster, lease: string) =>
  c.clock.runUntil(c.ledger("1").object.getLease({ ...c.envelope, caller: callerOf(), lease }));

describe("a ledger", () => {
  test("[H7] tells which leases it would rebuild, and a dry run changes nothing", async () => {
    const [c, lease] = await lostLedger();
    const before = await partOf(c, "ledger");
    expect(await reconcileLedger(c, { dryRun: true })).toEqual({
      ok: true,
      value: {
        status: before,
        cellState: "ACTIVE",
        rebuilt: [{ shard: 0, holds: 5, leases: 2 }],
        leases: 2,
        unreachable: [],
      },
    });
    expect(await partOf(c, "ledger")).toEqual(before);
    expect(await get(c, lease)).toEqual(LOST);
    expect(c.ledger("1").sql.all("SELECT 1 FROM lease WHERE lease = ?", lease)).toEqual([]);
  });

  test("[H7] grants the leases again whose holds it finds, so their names stay taken", async () => {
    const [c, lease] = await lostLedger();
    expect(await reconcileLedger(c)).toMatchObject({
      ok: true,
      value: { status: { state: "complete", loss: null }, leases: 2 },
    });
    expect(await get(c, lease)).toMatchObject({
      value: { state: "GRANTED", counts: { creates: 1 }, ops: [{ kind: "create", canonical: "late" }] },
    });
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ABORTED"));
    c.ledger("1").restart();
    await c.pass(60_000);
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ABORTED"));
    expect(await decide(c, "1", lease, "COMMITTED")).toMatchObject({ ok: true });
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ALREADY_EXISTS"));
    expect(c.logged.filter(({ event }) => event === "history_reconciled")).toHaveLength(1);
  });

  test("[H4] [H7] is reconciled when only an operator knows of its loss", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    const lease = c.uuid();
    await begin(c, "1", lease, ["late"]);
    restore();
    // The shard has no point of after the grant.
    const before = await partOf(c, "ledger");
    expect(await reconcileLedger(c, { dryRun: true, declared: declaredOf(before) })).toMatchObject({
      ok: true,
      value: { status: before, rebuilt: [{ shard: 0, holds: 1, leases: 1 }] },
    });
    expect(await get(c, lease)).toEqual(no("NOT_FOUND"));
    expect(await reconcileLedger(c, { declared: declaredOf(before) })).toMatchObject({
      ok: true,
      value: { status: { state: "complete", loss: null }, leases: 1 },
    });
    expect(c.logged.filter(({ event }) => event === "history_lost").map(({ fields }) => fields)).toEqual([
      expect.objectContaining({ part: "the ledger of cell 1", noticed_by: "an operator", reason: REASON }),
    ]);
    await c.pass(60_000);
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ABORTED"));
    expect(await decide(c, "1", lease, "COMMITTED")).toMatchObject({ ok: true });
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ALREADY_EXISTS"));
  });

  test("[H4] [H7] a repeated declaration declares nothing, and stops no begin that runs", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const declared = declaredOf(await partOf(c, "ledger"));
    expect(await reconcileLedger(c, { declared })).toMatchObject({
      value: { status: { state: "complete" } },
    });
    c.fate = ({ method }) => (method === "exchange" ? "slow" : "deliver");
    const running = begin(c, "1", c.uuid(), ["busy"]);
    await c.clock.pass(20);
    expect(await reconcileLedger(c, { declared })).toMatchObject({
      value: { status: { state: "complete" }, rebuilt: [] },
    });
    expect(await running).toMatchObject({ ok: true });
    expect(lossesOf(c)).toBe(1);
  });

  test("[H7] assigns positions above all that D1 has copied", async () => {
    const c = await Cluster.start({ shards: 1 });
    const lease = c.uuid();
    await begin(c, "1", lease, ["ada"]);
    const declared = declaredOf(await partOf(c, "ledger"));
    const copied = { incarnation: 2 ** 40, position: 2 ** 51 };
    expect(await reconcileLedger(c, { declared, copied })).toMatchObject({ ok: true });
    const { point } = await partOf(c, "ledger");
    expect(point?.incarnation).toBeGreaterThan(copied.incarnation);
    expect(point?.position).toBeGreaterThan(copied.position);
    const later = c.uuid();
    expect(await begin(c, "1", later, ["eve"])).toMatchObject({ ok: true });
    const message = { ...c.envelope, after: copied.position, through: null, has: [], limit: 10 };
    expect(await c.clock.runUntil(c.ledger("1").object.pull(message))).toMatchObject({
      value: { granted: [{ lease: later }] },
    });
  });

  test("[H7] rebuilds every kind of op, on several shards", async () => {
    const names: OpSpec[] = [
      { value: "New-One" },
      { value: "two" },
      { value: "three" },
      { value: "four" },
      { kind: "destroy", value: "early" },
      { kind: "replace", value: "moved", subject: { type: "NAMESPACE", id: "9" } },
    ];
    const [c, lease] = await lostLedger(names, 4);
    expect(await reconcileLedger(c)).toMatchObject({ ok: true, value: { leases: 3 } });
    expect(await get(c, lease)).toMatchObject({
      value: { state: "GRANTED", counts: { creates: 4, destroys: 1, replaces: 1, missing: 0 } },
    });
    // A replay of the begin gets the lease (B2).
    expect(await begin(c, "1", lease, names)).toMatchObject({ ok: true, value: { created: false } });
    await decide(c, "1", lease, "COMMITTED");
    expect(new Map(c.claims().map(({ canonical, value }) => [canonical, value]))).toEqual(
      new Map([
        ["four", "four"],
        ["moved", "moved"],
        ["new-one", "New-One"],
        ["three", "three"],
        ["two", "two"],
      ]),
    );
    expect(c.holds().filter((hold) => hold.lease === lease)).toEqual([]);
  });

  test("[B2] [H7] refuses the replay of a begin that is not held completely", async () => {
    const [c, lease] = await lostLedger(["late"]);
    await reconcileLedger(c);
    const reused = no("FAILED_PRECONDITION", { reason: "LEASE_ID_REUSED" });
    expect(await begin(c, "1", lease, ["late", "never-held"])).toEqual(reused);
    expect(await begin(c, "1", lease, [{ value: "late", subject: { type: "NAMESPACE", id: "7" } }])).toEqual(
      reused,
    );
    expect(await begin(c, "1", lease, ["late"])).toMatchObject({ ok: true, value: { created: false } });
    await decide(c, "1", lease, "ROLLED_BACK");
    expect(await begin(c, "1", lease, ["late"])).toEqual(
      no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }),
    );
  });

  test("[B2] [B12] [H7] knows a replace that is held as a create, if its batch allows that", async () => {
    const replace: OpSpec = { kind: "replace", value: "late" };
    const mayMiss = { allowMissing: true };
    const [c, lease] = await lostLedger([replace], 1, mayMiss);
    await reconcileLedger(c);
    const reused = no("FAILED_PRECONDITION", { reason: "LEASE_ID_REUSED" });
    expect(await begin(c, "1", lease, [replace])).toEqual(reused);
    expect(await begin(c, "1", lease, [{ ...replace, epoch: 1 }], mayMiss)).toEqual(reused);
    expect(await begin(c, "1", lease, [replace], mayMiss)).toMatchObject({
      ok: true,
      value: { created: false },
    });
  });

  test("[H7] refuses everything until the holds of every shard are rebuilt", async () => {
    const [c, lease] = await lostLedger(["one", "two", "three", "four", "five"], 4);
    c.fate = ({ method, to }) => (method === "listHolds" && to === "shard 2" ? "lose" : "deliver");
    expect(await reconcileLedger(c, { dryRun: true })).toMatchObject({ value: { unreachable: [2] } });
    expect(await reconcileLedger(c)).toEqual(no("UNAVAILABLE"));
    expect(await get(c, lease)).toEqual(LOST);
    c.fate = () => "deliver";
    c.ledger("1").restart();
    // The call is repeated, and finds what it has rebuilt before.
    expect(await reconcileLedger(c)).toMatchObject({ ok: true });
    expect(await get(c, lease)).toMatchObject({ value: { counts: { creates: 5 } } });
    expect(c.ledger("1").sql.all("SELECT 1 FROM lease WHERE decided = 0")).toHaveLength(3);
  });

  test("[H5] [H7] is no loss to any shard afterwards, also after restarts", async () => {
    const [c] = await lostLedger();
    await reconcileLedger(c);
    for (let n = 0; n < 4; n += 1) {
      expect(await begin(c, "1", c.uuid(), [`after-${n}`])).toMatchObject({ ok: true });
      c.shard(0).restart();
      c.ledger("1").restart();
    }
    expect(c.logged.filter(({ event }) => event === "history_lost")).toHaveLength(1);
  });

  test("[A1] [H7] refuses the keys that were revoked meanwhile", async () => {
    const [c] = await lostLedger();
    await reconcileLedger(c, { revokedKeys: [{ keyId: "k1", expiresAtMs: c.clock.now() + 1_000_000 }] });
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(
      no("UNAUTHENTICATED", { reason: "KEY_REVOKED" }),
    );
  });

  test("[A2] [H7] refuses a change of the cell's state that was based on the time before", async () => {
    const [c] = await lostLedger();
    await reconcileLedger(c);
    for (let stateVersion = 0; stateVersion < 5; stateVersion += 1) {
      const set = c.ledger("1").object.setState({ ...c.envelope, state: "FROZEN", stateVersion });
      expect(await c.clock.runUntil(set)).toEqual(no("FAILED_PRECONDITION"));
    }
  });

  test("[H7] keeps what it still knows: a hold of another attempt is nobody's", async () => {
    const c = await Cluster.start({ shards: 1 });
    const fenced = c.uuid();
    await decide(c, "1", fenced, "ROLLED_BACK");
    const restore = saveLedger(c);
    await begin(c, "1", c.uuid(), ["late"]);
    // Holds of a lease that the ledger remembers as rolled back.
    damageHolds(c.shard(0), (entry) => entry.with(5, fenced) as StoredEntry);
    c.shard(0).restart();
    await begin(c, "1", c.uuid(), ["later"]);
    restore();
    await begin(c, "1", c.uuid(), ["other"]);
    expect(await reconcileLedger(c)).toMatchObject({ ok: true, value: { leases: 1 } });
    await c.pass(60_000);
    expect(c.holds().map(({ canonical }) => canonical)).toEqual(["later"]);
  });

  test("[H7] pages through many holds of several cells", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    const names = (prefix: string) => Array.from({ length: 700 }, (_, n) => `${prefix}-${n}`);
    const lease = c.uuid();
    await begin(c, "1", lease, names("m"));
    await begin(c, "2", c.uuid(), names("a"));
    await begin(c, "1", c.uuid(), ["later"]);
    restore();
    await begin(c, "1", c.uuid(), ["other"]);
    expect(await reconcileLedger(c)).toMatchObject({
      value: { rebuilt: [{ shard: 0, holds: 701, leases: 2 }] },
    });
    // A page has 500 holds or more. Those of the other cell are not visited.
    expect(c.messages("listHolds")).toHaveLength(2);
    expect(await get(c, lease)).toMatchObject({ value: { counts: { creates: 700 } } });
  });
});

test("[H6] [H7] a shard and a ledger that both went back are reconciled one after the other", async () => {
  for (const ledgerFirst of [true, false]) {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    await own(c, "2", "second");
    const [shard, ledger] = [saveShard(c), saveLedger(c)];
    await own(c, "2", "late-2");
    await begin(c, "1", c.uuid(), ["late"]);
    ledger();
    await begin(c, "1", c.uuid(), ["late"]);
    shard();
    await begin(c, "2", c.uuid(), ["other"]);
    const steps = [() => reconcileLedger(c), () => reconcileShard(c)];
    for (const step of ledgerFirst ? steps : steps.toReversed())
      expect(await step()).toMatchObject({ ok: true });
    await finish(c);
    for (const cell of ["1", "2"])
      expect(await begin(c, cell, c.uuid(), [`after-${cell}`])).toMatchObject({ ok: true });
  }
});

test("[H6] [X4] a shard is not complete while it has a hold or a claim of a removed cell", async () => {
  const c = await Cluster.start({ shards: 1, cells: ["1", "2"] });
  await own(c, "1", "ada");
  await own(c, "2", "eve");
  await c.pass(1_000);
  await begin(c, "2", c.uuid(), ["bob"]);
  await reconcileShard(c, { declared: declaredOf(await partOf(c, "shard")) });
  const hasNames = (cell: string) => ({
    ok: false,
    refusal: { code: "FAILED_PRECONDITION", detail: expect.stringContaining(`names of cell ${cell} again`) },
  });
  expect(await finish(c, ["3", "1"])).toMatchObject(hasNames("1"));
  const { database } = c.shard(0);
  database.exec("DELETE FROM claim WHERE cell = '2'");
  expect(await finish(c, ["2"])).toMatchObject(hasNames("2"));
  expect(await partOf(c, "shard")).toMatchObject({ state: "reconciling" });
  loseHolds(c.shard(0));
  expect(await finish(c, ["2"])).toMatchObject({ ok: true, value: { state: "complete" } });
  // A shard that is in service is not asked again.
  expect(await finish(c, ["1"])).toMatchObject({ ok: true });
});

test("[O1] [O3] an accepted loss of a ledger has one entry, even without room for more", async () => {
  const c = await Cluster.start({ shards: 1, limits: { auditEntries: 1 } });
  await own(c, "1", "early");
  const ledger = c.ledger("1").object;
  await c.clock.runUntil(
    ledger.revoke({ ...c.envelope, operator: BY, keyId: "k9", expiresAtMs: Number.MAX_SAFE_INTEGER }),
  );
  const declared = declaredOf(await partOf(c, "ledger"));
  await reconcileLedger(c, { declared, dryRun: true });
  await reconcileLedger(c, { declared });
  await reconcileLedger(c, { declared });
  const pulled = await c.clock.runUntil(ledger.pullAudit({ ...c.envelope, copied: null, limit: 10 }));
  expect(pulled).toMatchObject({
    ok: true,
    value: {
      entries: [
        { action: "revoke_key" },
        {
          action: "reconcile_part",
          cell: "1",
          target: "ledger-1",
          keyId: "operator-key",
          reason: REASON,
          before: '{"state":"lost"}',
          after: '{"state":"complete","rebuilt_leases":0}',
        },
      ],
    },
  });
});
