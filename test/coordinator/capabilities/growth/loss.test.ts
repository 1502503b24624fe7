/** A shard that gives names away has gone back before it did so, and that shows later (G7). */
import { describe, expect, test } from "vitest";
import { shardOf } from "../../../../src/coordinator/kernel/placement.ts";
import { prepareCut, stepGrowth } from "../../../../src/coordinator/capabilities/growth/edge/cron.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { begin, LOST, own, saveShard } from "../../../support/go-back.ts";
import { Growing, growthDriver, movingNames, stayingNames } from "../../../support/growing.ts";
import { ownerOf } from "../../../support/lookup.ts";
import { keyOf, operator } from "../../../support/ops.ts";

const FROM = 2;
const TO = 4;
const NEW_SHARDS = [2, 3];
const [STAYS = "", LATER = ""] = stayingNames(FROM, TO, 2, 0);

/** A name that moves from shard 0 to another one. */
const movingTo = (shard: number): string =>
  movingNames(FROM, TO, 40, 0).find((name) => {
    const { type, canonical } = keyOf("ROUTES", name);
    return shardOf(type, canonical, TO) === shard;
  }) ?? "";

/** Shard 0 has forgotten a name of cell 1, which nobody has noticed. The growth can be cut. */
async function forgotten() {
  const c = await Cluster.start({ shards: FROM });
  const growing = new Growing(c);
  const name = movingTo(2);
  await own(c, "1", movingTo(3));
  await growing.start(TO);
  await growing.stepAll("copied");
  const goBack = saveShard(c);
  await own(c, "1", name);
  await c.pass(200);
  expect(await ownerOf(c, name)).toBe("ACTIVE 1");
  goBack();
  await growing.stepAll("copied");
  return { c, growing, name };
}

/** The shards of before have handed over and are done. The growth has not ended. */
async function handedOver() {
  const c = await Cluster.start({ shards: FROM });
  const growing = new Growing(c);
  await own(c, "1", STAYS);
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cutAndHandOver();
  return { c, growing };
}

/** Cell 1 has seen more of shard 0. */
const notice = async (c: Cluster): Promise<void> =>
  expect(await begin(c, "1", c.uuid(), [STAYS])).toEqual(LOST);

const reconcile = (c: Cluster, shard: number, more: object = {}) =>
  c.clock.runUntil(
    c.shard(shard).object.reconcile({ ...c.envelope, operator, cells: ["1", "2"], dryRun: false, ...more }),
  );

const accept = async (c: Cluster): Promise<void> =>
  expect(await reconcile(c, 0)).toMatchObject({ ok: true, value: { status: { state: "reconciling" } } });

/** An operator declares a shard lost, and reconciles it. */
async function declare(c: Cluster, shard: number): Promise<void> {
  const status = await c.clock.runUntil(c.shard(shard).object.part(c.envelope));
  const incarnation = status.ok ? (status.value.point?.incarnation ?? 0) : 0;
  expect(await reconcile(c, shard, { declared: { incarnation } })).toMatchObject({ ok: true });
}

/** Reconciles shard 0 after its growth was cut: first the shards that got names from it. */
async function acceptAll(c: Cluster): Promise<void> {
  for (const shard of NEW_SHARDS) await declare(c, shard);
  await accept(c);
}

const finish = async (c: Cluster, shard: number): Promise<void> =>
  expect(
    await c.clock.runUntil(
      c.shard(shard).object.finishReconciliation({ ...c.envelope, operator, removedCells: [] }),
    ),
  ).toMatchObject({ ok: true, value: { state: "complete" } });

async function states(c: Cluster, shards = NEW_SHARDS): Promise<unknown[]> {
  const found = [];
  for (const shard of shards) {
    const status = await c.clock.runUntil(c.shard(shard).object.part(c.envelope));
    found.push(status.ok ? status.value.state : status.refusal.reason);
  }
  return found;
}

const RECONCILING = ["reconciling", "reconciling"];
const COMPLETE = ["complete", "complete"];

const step = (c: Cluster, growing: Growing, objects = {}) =>
  c.clock.runUntil(stepGrowth(growthDriver(c, objects), growing.running, c.clock.now() + 3_000));

/** The ledger of cell 1 can't be reached by whoever makes the steps. */
const withoutLedger = (c: Cluster): object => ({
  ledger: (cell: string) => (cell === "1" ? {} : c.ledger(cell).object),
});

describe("[G7] [H6] a loss from before the cut that shows", () => {
  /** No other cell gets the name, although the shard that has it now lacks it. */
  async function expectKept(c: Cluster, name: string): Promise<void> {
    expect(await states(c)).toEqual(RECONCILING);
    expect(await ownerOf(c, name)).toBe("unknown");
    expect(await begin(c, "2", c.uuid(), [name])).toEqual(LOST);
    expect(await begin(c, "1", c.uuid(), [name], { isVerification: true })).toMatchObject({ ok: true });
  }

  test("before shard 0 hands over", async () => {
    const { c, growing, name } = await forgotten();
    c.fate = ({ method }) => (method === "receive" ? "lose" : "deliver");
    await growing.cut();
    growing.learn();
    await growing.step(0);
    await notice(c);
    await acceptAll(c);
    // Nobody serves the names yet, so no cell can have verified them.
    await finish(c, 0);
    c.fate = () => "deliver";
    await growing.stepAll("done");
    await expectKept(c, name);
  });

  test("between two of its hand-overs", async () => {
    const { c, growing, name } = await forgotten();
    c.fate = ({ method, to }) => (method === "receive" && to === "shard 3" ? "lose" : "deliver");
    await growing.cut();
    growing.learn();
    await growing.step(0);
    expect(await ownerOf(c, name)).toBe("none");
    await notice(c);
    await acceptAll(c);
    c.fate = () => "deliver";
    await growing.stepAll("done");
    await expectKept(c, name);
  });

  test("while it deletes what has moved", async () => {
    const { c, growing, name } = await forgotten();
    await growing.cut();
    growing.learn();
    expect(await growing.step(0, 1)).toMatchObject({ value: { state: "cleaning" } });
    await notice(c);
    await acceptAll(c);
    await growing.stepAll("done");
    await expectKept(c, name);
  });

  test("after its last step", async () => {
    const { c, growing, name } = await noticed();
    await acceptAll(c);
    await expectKept(c, name);
    expect(await growing.step(0)).toMatchObject({ value: { state: "done" } });
  });
});

/** Shard 0 has handed over and deleted what has moved, and then it has noticed its loss. */
async function noticed() {
  const { c, growing, name } = await forgotten();
  await growing.cutAndHandOver();
  await notice(c);
  return { c, growing, name };
}

describe("[G7] a shard that has handed over accepts no loss", () => {
  test("while a shard that got names is complete, and names it", async () => {
    const { c } = await noticed();
    await declare(c, 2);
    expect(await reconcile(c, 0)).toEqual(
      no("FAILED_PRECONDITION", {
        detail: expect.stringContaining("may be missing on shard-3, which it gives names to") as string,
      }),
    );
    expect(await states(c, [0])).toEqual(["lost"]);
    await declare(c, 3);
    await accept(c);
  });

  test("while one of them does not answer", async () => {
    const { c } = await noticed();
    for (const shard of NEW_SHARDS) await declare(c, shard);
    c.fate = ({ method, to }) => (method === "part" && to === "shard 3" ? "lose" : "deliver");
    expect(await reconcile(c, 0)).toEqual(
      no("UNAVAILABLE", { detail: expect.stringContaining("shard-3 did not say") as string }),
    );
    c.fate = () => "deliver";
    await accept(c);
  });

  test("but does so when they are lost, too", async () => {
    const { c } = await noticed();
    const seen = { incarnation: 2 ** 51, position: 0 };
    for (const shard of NEW_SHARDS)
      expect(await c.clock.runUntil(c.shard(shard).object.ping({ ...c.envelope, seen }))).toEqual(LOST);
    expect(await states(c)).toEqual(["lost", "lost"]);
    await accept(c);
  });

  test("but shows in a dry run what it would find", async () => {
    const { c } = await noticed();
    expect(await reconcile(c, 0, { dryRun: true })).toMatchObject({ value: { status: { state: "lost" } } });
  });

  test("and does not hand over again what new shards have", async () => {
    const { c, growing } = await noticed();
    await acceptAll(c);
    for (const shard of [0, ...NEW_SHARDS]) await finish(c, shard);
    await growing.stepAll("done");
    await c.pass(60_000);
    expect(await states(c)).toEqual(COMPLETE);
  });
});

describe("[G7] a growth ends when no earlier loss can show any more", () => {
  test("so later ones are no business of the new shards", async () => {
    const { c, growing } = await handedOver();
    expect(await step(c, growing)).toEqual({ ok: true, value: null });
    const goBack = saveShard(c);
    await own(c, "1", LATER);
    await c.pass(200);
    goBack();
    await notice(c);
    await accept(c);
    await c.pass(60_000);
    expect(await states(c, [0, ...NEW_SHARDS])).toEqual(["reconciling", ...COMPLETE]);
  });

  test("so it waits for a ledger that can't be reached", async () => {
    const c = await Cluster.start({ shards: FROM });
    const growing = new Growing(c);
    await growing.start(TO);
    await growing.stepAll("copied");
    await growing.cutAndHandOver();
    const done = { value: { shards: [{ progress: { state: "done" } }, { progress: { state: "done" } }] } };
    expect(await step(c, growing, withoutLedger(c))).toMatchObject(done);
    const message = { ...c.envelope, operator, to: TO + 1, growthCopiedAt: 0 };
    expect(await c.clock.runUntil(c.directory.object.startGrowth(message))).toEqual(
      no("FAILED_PRECONDITION", { reason: "OPERATION_RUNNING" }),
    );
    expect(await step(c, growing)).toEqual({ ok: true, value: null });
  });

  test("so a shard that went back is told what the ledgers have seen", async () => {
    const { c, growing, name } = await forgotten();
    await growing.cutAndHandOver();
    const left = await step(c, growing);
    expect(left).toMatchObject({ ok: true, value: { shards: [{ progress: null }, { shard: 1 }] } });
    expect(await states(c, [0])).toEqual(["lost"]);
    await acceptAll(c);
    expect(await step(c, growing)).toEqual({ ok: true, value: null });
    expect(await begin(c, "2", c.uuid(), [name])).toEqual(LOST);
  });
});

test("[G1] no cut is ordered while a shard of before is reconciling", async () => {
  const { c, growing } = await forgotten();
  await notice(c);
  await accept(c);
  await growing.stepAll("copied");
  expect(await growing.progress()).toMatchObject([{ waitsFor: "reconciliation" }, { waitsFor: null }]);
  await expect(growing.cut()).rejects.toThrow("shard 0 has not said that it has copied its names");
  await finish(c, 0);
  await growing.cut();
});

describe("[G7] before a cut, ledgers tell the shards what they have seen", () => {
  async function prepared(c: Cluster, growing: Growing, objects = {}): Promise<boolean> {
    await growing.stepAll("copied");
    return (await c.clock.runUntil(prepareCut(growthDriver(c, objects), growing.running))) !== null;
  }

  test("so one that went back prevents the cut", async () => {
    const { c, growing } = await forgotten();
    expect(await prepared(c, growing)).toBe(false);
    expect(await states(c, [0])).toEqual(["lost"]);
  });

  test("but a ledger that can't be reached does not", async () => {
    const { c, growing } = await forgotten();
    expect(await prepared(c, growing, withoutLedger(c))).toBe(true);
  });
});

test("[G7] [G1] another growth replaces one that is concluded late", async () => {
  const { c, growing } = await handedOver();
  const goBack = saveShard(c);
  await growing.finish();
  goBack();
  await growing.complete(TO + 1);
  const left = await c.clock.runUntil(c.shard(0).object.growthProgress(c.envelope));
  expect(left).toMatchObject({ value: { state: "none" } });
});
