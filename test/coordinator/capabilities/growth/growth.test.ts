/** A deployment gets more shards while it works, over node:sqlite (G3 to G8). */
import { HOLDS } from "../../../support/holds.ts";
import { describe, expect, test, vi } from "vitest";
import type {
  Growth,
  GrowthStep,
  Receive,
} from "../../../../src/coordinator/capabilities/growth/messages.ts";
import { placementOf, shardOf } from "../../../../src/coordinator/kernel/placement.ts";
import {
  prepareCut,
  readProgress,
  stepGrowth,
} from "../../../../src/coordinator/capabilities/growth/edge/cron.ts";
import { refused, type Result } from "../../../../src/coordinator/kernel/refusal.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { begin, decide, own } from "../../../support/go-back.ts";
import { beginRequest, keyOf, operator } from "../../../support/ops.ts";
import { Growing, growthDriver, movingNames, rowsOn, stayingNames } from "../../../support/growing.ts";
import { lookup, ownerOf, shardNow } from "../../../support/lookup.ts";

const FROM = 2;
const TO = 5;
const MOVING = movingNames(FROM, TO, 12);
const STAYING = stayingNames(FROM, TO, 6);
const ALL = [...MOVING, ...STAYING];

async function start(): Promise<{ c: Cluster; growing: Growing }> {
  const c = await Cluster.start({ shards: FROM });
  return { c, growing: new Growing(c) };
}

/** The shard of a name after the growth. */
function shardIn(name: string): number {
  const { type, canonical } = keyOf("ROUTES", name);
  return shardOf(type, canonical, TO);
}

const granted = async (c: Cluster, cell: string, name: string): Promise<string> => {
  const lease = c.uuid();
  expect(await begin(c, cell, lease, [name])).toMatchObject({ ok: true });
  return lease;
};

/** Every name has one row, on the shard that it has now. */
function expectPlaced(c: Cluster, table: "claim" | "hold", names: readonly string[]): void {
  expect(rowsOn(c, table).toSorted((a, b) => a.canonical.localeCompare(b.canonical))).toEqual(
    names
      .toSorted((a, b) => a.localeCompare(b))
      .map((canonical) => ({ shard: shardNow(c, canonical), canonical })),
  );
}

test("[G4] [G7] names move to the new shards, and every name keeps its owner", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.complete(TO);
  expectPlaced(c, "claim", ALL);
  for (const name of ALL) {
    expect(await ownerOf(c, name)).toBe("ACTIVE 1");
    expect(await begin(c, "2", c.uuid(), [name])).toEqual(no("ALREADY_EXISTS"));
  }
  for (const name of ALL) {
    const lease = c.uuid();
    expect(await begin(c, "1", lease, [{ kind: "destroy", value: name }])).toMatchObject({ ok: true });
    await decide(c, "1", lease, "COMMITTED");
    await own(c, "2", name);
    expect(await ownerOf(c, name)).toBe("ACTIVE 2");
  }
});

test("[G4] a name that changes after it was copied is copied again", async () => {
  const { c, growing } = await start();
  const [kept = "", destroyed = "", made = "", held = ""] = MOVING;
  await own(c, "1", kept);
  await own(c, "1", destroyed);
  await growing.start(TO);
  await growing.stepAll("copied");
  await own(c, "1", made);
  await own(c, "1", "elsewhere");
  await granted(c, "2", held);
  const lease = c.uuid();
  await begin(c, "1", lease, [{ kind: "destroy", value: destroyed }]);
  await decide(c, "1", lease, "COMMITTED");
  await c.pass(1_000);
  await growing.stepAll("copied");
  await growing.cutAndHandOver();
  expect(await ownerOf(c, kept)).toBe("ACTIVE 1");
  expect(await ownerOf(c, made)).toBe("ACTIVE 1");
  expect(await ownerOf(c, destroyed)).toBe("none");
  expect(await ownerOf(c, held)).toBe("LEASE_CREATING 2");
});

test("[G5] a new shard serves nothing before the source has handed over", async () => {
  const { c, growing } = await start();
  const [name = ""] = MOVING;
  await own(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied");
  growing.learn();
  expect(await lookup(c, name)).toEqual(
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement: placementOf(FROM) }),
  );
  c.envelope.placement = placementOf(FROM);
  await growing.cut();
  growing.learn();
  c.fate = ({ method }) => (method === "receive" ? "lose" : "deliver");
  expect(await ownerOf(c, name)).toBe("unknown");
  expect(await begin(c, "2", c.uuid(), [name])).toEqual(no("UNAVAILABLE"));
  c.fate = () => "deliver";
  await c.pass(20_000);
  expect(await ownerOf(c, name)).toBe("ACTIVE 1");
});

describe("[R2] [G5] names that are handed over while a new shard reads them", () => {
  /** A new shard waits for a ledger because of a held name, and meanwhile it gets a name of a late source. */
  async function late() {
    const { c, growing } = await start();
    const shard = TO - 1;
    const of = (source: number): string =>
      movingNames(FROM, TO, 20, source).find((name) => shardIn(name) === shard) ?? "";
    const [held, moving] = [of(0), of(1)];
    await own(c, "1", moving);
    await growing.start(TO);
    await growing.stepAll("copied");
    const lease = c.uuid();
    await begin(c, "1", lease, [{ kind: "destroy", value: moving }]);
    await decide(c, "1", lease, "COMMITTED");
    await own(c, "2", moving);
    await granted(c, "2", held);
    await c.pass(1_000);
    c.fate = ({ method, from }) => (method === "receive" && from === "shard 1" ? "lose" : "deliver");
    await growing.cut();
    growing.learn();
    await growing.step(0);
    await growing.step(1);
    c.fate = ({ method }) => (method === "inquire" ? "slow" : "deliver");
    const { object } = c.shard(shard);
    return { c, growing, object, keys: [keyOf("ROUTES", held), keyOf("ROUTES", moving)] };
  }

  test("are unknown to a lookup", async () => {
    const { c, growing, object, keys } = await late();
    const answer = object.lookup({ ...c.envelope, keys });
    await growing.step(1);
    expect(await c.clock.runUntil(answer)).toMatchObject({
      ok: true,
      value: { found: [{ kind: "record" }, { kind: "unknown" }], settled: [expect.any(Boolean), false] },
    });
    expect(await c.clock.runUntil(object.lookup({ ...c.envelope, keys }))).toMatchObject({
      value: { found: [{ kind: "record" }, { kind: "record", record: { cell: "2" } }] },
    });
  });

  test("are unknown to a begin that asks about their holds", async () => {
    const { c, growing, object, keys } = await late();
    const answer = object.settle({ ...c.envelope, keys });
    await growing.step(1);
    expect(await c.clock.runUntil(answer)).toMatchObject({ value: { states: ["granted", "unknown"] } });
  });
});

test("[G5] a begin waits while its names are handed over", async () => {
  const { c, growing } = await start();
  const [name = ""] = MOVING;
  await decide(c, "1", await granted(c, "1", "the ledger is in use"), "ROLLED_BACK");
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cut();
  growing.learn();
  c.fate = ({ method }) => (method === "receive" ? "lose" : "deliver");
  const beganMs = c.clock.now();
  expect(await begin(c, "1", c.uuid(), [name])).toEqual(no("UNAVAILABLE"));
  expect(c.clock.now() - beganMs).toBeLessThan(1_000);
  await c.pass(30_000);
  c.fate = ({ method }) => (method === "receive" ? "slow" : "deliver");
  const steps = Promise.all([growing.step(0), growing.step(1)]);
  await granted(c, "1", name);
  await steps;
});

test("[G6] from its change on, a source refuses the old placement, also what waits", async () => {
  const { c, growing } = await start();
  const [moving = ""] = MOVING;
  const [staying = ""] = STAYING;
  await own(c, "1", moving);
  await own(c, "1", staying);
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cut();
  const shard = shardNow(c, moving);
  expect(await ownerOf(c, moving)).toBe("ACTIVE 1");
  const waiting = lookup(c, moving);
  const step = growing.step(shard);
  await c.clock.runUntil(Promise.all([waiting, step]));
  expect(await lookup(c, moving)).toEqual(
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement: placementOf(TO) }),
  );
  growing.learn();
  expect(await ownerOf(c, staying)).toBe("ACTIVE 1");
});

describe("[G6] leases that are open during the cut", () => {
  test.each(["COMMITTED", "ROLLED_BACK"] as const)("can be %s afterwards", async (outcome) => {
    const { c, growing } = await start();
    const leases = [];
    for (const name of ALL) leases.push(await granted(c, "1", name));
    await growing.complete(TO);
    expectPlaced(c, "hold", ALL);
    // A sweep asks about the moved holds, as those of the shards that have granted them.
    await c.pass(30_000);
    expectPlaced(c, "hold", ALL);
    for (const name of ALL) expect(await ownerOf(c, name)).toBe("LEASE_CREATING 1");
    for (const lease of leases) expect(await decide(c, "1", lease, outcome)).toMatchObject({ ok: true });
    await c.pass(30_000);
    expectPlaced(c, "hold", []);
    expectPlaced(c, "claim", outcome === "COMMITTED" ? ALL : []);
    expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toMatchObject({
      ok: true,
      value: { unappliedDecisions: 0, outstandingLeases: 0 },
    });
  });

  test("and decided, are delivered where the holds are by then", async () => {
    const { c, growing } = await start();
    const leases = [];
    for (const name of ALL) leases.push(await granted(c, "1", name));
    c.fate = ({ method, from }) => (method === "exchange" && from === "ledger 1" ? "lose" : "deliver");
    for (const lease of leases) await decide(c, "1", lease, "COMMITTED");
    await growing.complete(TO);
    c.fate = () => "deliver";
    await c.pass(120_000);
    expectPlaced(c, "hold", []);
    expectPlaced(c, "claim", ALL);
  });
});

test("[G3] a begin that meets the new placement finds its shards again", async () => {
  const { c, growing } = await start();
  await decide(c, "1", await granted(c, "1", "the ledger is in use"), "ROLLED_BACK");
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cut();
  for (let shard = 0; shard < FROM; shard += 1) await growing.step(shard);
  await c.pass(5_000);
  // The ledger and its client have the old placement.
  const lease = c.uuid();
  expect(await begin(c, "1", lease, ALL)).toMatchObject({ ok: true });
  growing.learn();
  expectPlaced(c, "hold", ALL);
  await decide(c, "1", lease, "COMMITTED");
  await c.pass(5_000);
  expectPlaced(c, "claim", ALL);
});

test("[G1] after an abort, another growth starts with new copies", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied");
  const { id, position } = await growing.abort();
  for (let shard = 0; shard < FROM; shard += 1)
    expect(await growing.step(shard, 10, { id, position, phase: "aborted" })).toMatchObject({
      ok: true,
      value: { state: "none" },
    });
  const [gone = ""] = MOVING;
  const lease = c.uuid();
  await begin(c, "1", lease, [{ kind: "destroy", value: gone }]);
  await decide(c, "1", lease, "COMMITTED");
  await growing.complete(TO + 1);
  expectPlaced(
    c,
    "claim",
    ALL.filter((name) => name !== gone),
  );
});

describe("[G1] an aborted growth", () => {
  test("that shards are told of late does not end the next one", async () => {
    const { c, growing } = await start();
    for (const name of ALL) await own(c, "1", name);
    await growing.start(TO);
    await growing.stepAll("copied");
    const { id, position } = await growing.abort();
    await growing.start(TO + 1);
    await growing.stepAll("copied");
    for (let shard = 0; shard < FROM; shard += 1)
      expect(await growing.step(shard, 10, { id, position, phase: "aborted" })).toMatchObject({
        value: { growth: growing.running.id, state: "copied" },
      });
  });

  /** A shard is to begin a growth, and the answer of the directory comes after the end of that growth. */
  async function beginsLate() {
    const { c, growing } = await start();
    for (const name of ALL) await own(c, "1", name);
    await growing.start(TO);
    let asked = 0;
    c.fate = ({ method, from }) =>
      method === "confirm" && from === "shard 0" && (asked += 1) === 1 ? "slow_answer" : "deliver";
    const growth = growing.running;
    const early = c.shard(0).object.growStep({ ...c.envelope, growth, rows: 10 });
    await c.pass(1);
    return { growing, aborted: await growing.abort(), early: () => c.clock.runUntil(early) };
  }

  test("is not begun with an answer from before its end", async () => {
    const { growing, aborted, early } = await beginsLate();
    await growing.step(0, 10, { ...aborted, phase: "aborted" });
    await early();
    expect(await growing.step(0, 10, { id: "another", position: 1, phase: "aborted" })).toMatchObject({
      value: { growth: null, state: "none" },
    });
  });

  test("does not replace the next one with an answer from before its end", async () => {
    const { growing, early } = await beginsLate();
    await growing.start(TO + 1);
    await growing.step(0);
    await early();
    expect(await growing.step(0, 10, { id: "another", position: 1, phase: "aborted" })).toMatchObject({
      value: { growth: growing.running.id },
    });
  });
});

describe("[G1] the new shards of an aborted growth", () => {
  const countsOn = (c: Cluster): number[] =>
    (["claim", "hold"] as const).map((table) => rowsOn(c, table).filter(({ shard }) => shard >= FROM).length);

  const tell = async (
    growing: Growing,
    { id, position }: Growth,
    shards: readonly number[],
  ): Promise<void> => {
    for (const shard of shards)
      expect(await growing.step(shard, 10, { id, position, phase: "aborted" })).toMatchObject({ ok: true });
  };
  const NEW = [2, 3, 4];

  test("drop their copies, and have no alarms for them", async () => {
    const { c, growing } = await start();
    const [held = "", ...owned] = MOVING;
    for (const name of owned) await own(c, "1", name);
    const lease = await granted(c, "1", held);
    await growing.start(TO);
    await growing.stepAll("copied");
    expect(countsOn(c)).toEqual([owned.length, 1]);
    const alarms = NEW.map((shard) => vi.spyOn(c.shard(shard).object, "alarm"));
    await c.pass(600_000);
    const aborted = await growing.abort();
    await tell(growing, aborted, [0, 1, ...NEW]);
    expect(countsOn(c)).toEqual([0, 0]);
    await decide(c, "1", lease, "ROLLED_BACK");
    await c.pass(3_600_000);
    for (const alarm of alarms) expect(alarm).not.toHaveBeenCalled();
  });

  test("[M3] delete what is left when they are told again, and say so until then", async () => {
    const { c, growing } = await start();
    const lease = c.uuid();
    // A message deletes 500 rows.
    await begin(c, "1", lease, movingNames(FROM, FROM + 1, 501));
    await decide(c, "1", lease, "COMMITTED");
    await c.pass(1_000);
    await growing.start(FROM + 1);
    await growing.stepAll("copied");
    const { id, position } = await growing.abort();
    const again = () => growing.step(FROM, 10, { id, position, phase: "aborted" });
    expect(await again()).toMatchObject({ value: { state: "cleaning" } });
    expect(countsOn(c)).toEqual([1, 0]);
    expect(await again()).toMatchObject({ value: { state: "none" } });
    expect(countsOn(c)).toEqual([0, 0]);
  });

  test("refuse messages of a shard that does not know of the abort", async () => {
    const { c, growing } = await start();
    for (const name of MOVING) await own(c, "1", name);
    await growing.start(TO);
    await growing.stepAll("copied");
    const { running } = growing;
    const aborted = await growing.abort();
    await tell(growing, aborted, NEW);
    c.shard(2).restart();
    const lease = c.uuid();
    await begin(c, "1", lease, [{ kind: "destroy", value: MOVING[0] ?? "" }]);
    await decide(c, "1", lease, "COMMITTED");
    // A source whose message was refused as unknown begins another copy.
    for (const shard of [0, 1, 0, 1]) await growing.step(shard, 1_000, running);
    expect(countsOn(c)).toEqual([0, 0]);
    await growing.complete(TO);
    expectPlaced(c, "claim", MOVING.slice(1));
  });

  test("refuse the first message, too, if it comes after the abort", async () => {
    const { c, growing } = await start();
    for (const name of MOVING) await own(c, "1", name);
    await growing.start(TO);
    c.fate = ({ method }) => (method === "receive" ? "lose" : "deliver");
    const { running } = growing;
    for (const shard of [0, 1]) await growing.step(shard);
    c.fate = () => "deliver";
    await tell(growing, await growing.abort(), NEW);
    for (const shard of [0, 1]) await growing.step(shard, 1_000, running);
    expect(countsOn(c)).toEqual([0, 0]);
  });

  test("[M7] [M3] delete many copies in limited steps, also after a crash", async () => {
    const { c, growing } = await start();
    const names = movingNames(FROM, FROM + 1, 1_300);
    for (let at = 0; at < names.length; at += 100) {
      const lease = c.uuid();
      await begin(c, "1", lease, names.slice(at, at + 100));
      await decide(c, "1", lease, "COMMITTED");
    }
    await growing.start(FROM + 1);
    await growing.stepAll("copied");
    await tell(growing, await growing.abort(), [0, 1, 2]);
    expect(countsOn(c)).toEqual([names.length - 500, 0]);
    c.shard(2).restart();
    await growing.step(2, 10, { id: "another", position: 1, phase: "aborted" });
    await c.pass(10_000);
    expect(countsOn(c)).toEqual([0, 0]);
    expect(c.shard(2).alarmAtMs).toBeUndefined();
  });

  test("keep the copies of the next growth if they hear of the abort late", async () => {
    const { c, growing } = await start();
    for (const name of MOVING) await own(c, "1", name);
    await growing.start(TO);
    await growing.stepAll("copied");
    const aborted = await growing.abort();
    await growing.start(TO);
    await growing.stepAll("copied");
    await tell(growing, aborted, [0, 1, ...NEW]);
    expect(countsOn(c)).toEqual([MOVING.length, 0]);
    await growing.cutAndHandOver();
    expectPlaced(c, "claim", MOVING);
  });
});

test("[G4] steps with few rows and lost messages come to the same end", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  let sent = 0;
  c.fate = ({ method }) => {
    if (method !== "receive") return "deliver";
    sent += 1;
    const fates = ["deliver", "lose_answer", "twice", "deliver", "deliver", "deliver", "lose"] as const;
    return fates[sent % fates.length] ?? "deliver";
  };
  await growing.stepAll("copied", 3);
  await growing.cut();
  growing.learn();
  await growing.stepAll("done", 3);
  await c.pass(60_000);
  expectPlaced(c, "claim", ALL);
});

test("[G4] what has changed is sent before a cut", async () => {
  const { c, growing } = await start();
  await growing.start(TO);
  const driver = growthDriver(c);
  const prepared = async () => (await c.clock.runUntil(prepareCut(driver, growing.running))) !== null;
  expect(await prepared()).toBe(false);
  await growing.stepAll("copied");
  for (const name of MOVING) await own(c, "1", name);
  const waiting = async () => (await c.clock.runUntil(readProgress(driver, growing.running))).shards;
  expect(await waiting()).not.toMatchObject([{ progress: { waiting: 0 } }, { progress: { waiting: 0 } }]);
  expect(await prepared()).toBe(true);
  expect(await waiting()).toMatchObject([{ progress: { waiting: 0 } }, { progress: { waiting: 0 } }]);
});

test("[G2] [G4] what has changed is sent while an ordered cut waits for D1", async () => {
  const { c, growing } = await start();
  await growing.start(TO);
  await growing.stepAll("copied");
  const { id } = growing.running;
  const message = { ...c.envelope, operator, id, growthCopiedAt: 0, sources: await growing.progress() };
  const ordered = await c.clock.runUntil(c.directory.object.cutGrowth(message));
  if (!ordered.ok) throw new Error(ordered.refusal.detail);
  for (const name of MOVING) await own(c, "1", name);
  const down = refused("UNAVAILABLE", "D1 is down");
  const driver = {
    ...growthDriver(c, { shard: (shard: number) => c.shard(shard).object }),
    database: { run: () => Promise.resolve(down) } as never,
  };
  expect(await c.clock.runUntil(stepGrowth(driver, ordered.value, Infinity))).toEqual(down);
  expect((await c.clock.runUntil(readProgress(driver, ordered.value))).shards).toMatchObject([
    { progress: { waiting: 0 } },
    { progress: { waiting: 0 } },
  ]);
});

test("[G4] a late message of a copy brings no old state back", async () => {
  const { c, growing } = await start();
  const [name = ""] = MOVING;
  await own(c, "1", name);
  await growing.start(TO);
  c.fate = ({ method }) => (method === "receive" ? "lose_answer" : "deliver");
  for (let shard = 0; shard < FROM; shard += 1) await growing.step(shard);
  const late = c.messages("receive").filter(({ message }) => (message as Receive).names.length > 0);
  expect(late).toHaveLength(1);
  c.fate = () => "deliver";
  const lease = c.uuid();
  await begin(c, "1", lease, [{ kind: "destroy", value: name }]);
  await decide(c, "1", lease, "COMMITTED");
  await c.pass(1_000);
  // The source sends it again as it is now, because it got no answer, and then the first message comes.
  await growing.stepAll("copied");
  for (const { to, message } of late)
    await c.clock.runUntil(c.shard(Number(to.replace("shard ", ""))).object.receive(message as Receive));
  await growing.cutAndHandOver();
  expect(await ownerOf(c, name)).toBe("none");
});

test("[G1] [G4] a growth can be cut although names change during every message", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  const [busy = ""] = movingNames(FROM, TO, 1, 0);
  const { type, canonical } = keyOf("ROUTES", busy);
  let changes = 100;
  c.fate = ({ method, from }) => {
    if (method === "receive" && from === "shard 0")
      c.shard(0)
        .database.prepare("INSERT OR REPLACE INTO moved_name VALUES (?, ?, ?)")
        .run(type, canonical, (changes += 1));
    return "deliver";
  };
  for (let steps = 0; steps < 10; steps += 1) await growing.step(0, 4);
  expect(await growing.step(0, 4)).toMatchObject({ ok: true, value: { state: "copied", waiting: 1 } });
  c.fate = ({ method, to }) => (method === "receive" && to === `shard ${TO - 1}` ? "lose" : "deliver");
  expect(await growing.step(0, 4)).toMatchObject({ ok: true, value: { state: "copying" } });
});

describe("[G4] a source that has names of another source, because it went back", () => {
  const [foreign = ""] = movingNames(FROM, TO, 1, 1);
  const key = keyOf("ROUTES", foreign);

  test("sends none of them", async () => {
    const { c, growing } = await start();
    await own(c, "1", foreign);
    await c.pass(1_000);
    const [row = {}] = c.shard(1).database.prepare("SELECT * FROM claim").all();
    const columns = Object.keys(row);
    c.shard(0)
      .database.prepare(`INSERT INTO claim (${columns.join()}) VALUES (${columns.map(() => "?").join()})`)
      .run(...Object.values(row));
    await growing.start(TO);
    await growing.stepAll("copied");
    const sent = c.messages("receive").filter(({ message }) => (message as Receive).names.length > 0);
    expect(sent.map(({ from }) => from)).toEqual(["shard 1"]);
  });

  test("overwrites none of them on the new shard", async () => {
    const { c, growing } = await start();
    await own(c, "1", foreign);
    await own(c, "1", movingNames(FROM, TO, 20, 0).find((name) => shardIn(name) === shardIn(foreign)) ?? "");
    await growing.start(TO);
    await growing.step(1);
    await growing.step(0);
    const message = c
      .messages("receive")
      .flatMap(({ from, message: sent }) => (from === "shard 0" ? [sent as Receive] : []))
      .find(({ names }) => names.length > 0);
    if (message === undefined) throw new Error("shard 0 has sent no names");
    const names = [...message.names, { ...key, claim: null, hold: null }];
    const { object } = c.shard(shardIn(foreign));
    expect(await c.clock.runUntil(object.receive({ ...message, names }))).toMatchObject({ ok: true });
    const rows = rowsOn(c, "claim").filter(({ canonical }) => canonical === key.canonical);
    expect(rows.map(({ shard }) => shard)).toContain(shardIn(foreign));
  });
});

test("[G5] [G6] [B11] a begin that has waited for a name queues again after a hand-over", async () => {
  const { c, growing } = await start();
  const [name = ""] = movingNames(FROM, TO, 1, 0);
  const held = await granted(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied");
  const lease = c.uuid();
  const request = beginRequest(c.envelope, lease, [name], { waitMs: 60_000 });
  let answer: Result<unknown> | undefined;
  void c
    .ledger("2")
    .object.begin(request)
    .then((reply) => (answer = reply));
  // Longer than a begin waits for a name that is handed over.
  await c.pass(3_000);
  c.fate = ({ method }) => (method === "receive" ? "slow" : "deliver");
  await growing.cut();
  growing.learn();
  await growing.stepAll("done");
  await c.pass(5_000);
  expect(answer).toBeUndefined();
  await decide(c, "1", held, "ROLLED_BACK");
  await c.pass(5_000);
  expect(answer).toMatchObject({ ok: true });
  await decide(c, "2", lease, "COMMITTED");
  expect(await ownerOf(c, name)).toBe("ACTIVE 2");
});

test("[G5] [N2] names that are not handed over keep no decisions about others waiting", async () => {
  const { c, growing } = await start();
  const [late = ""] = movingNames(FROM, TO, 1, 0);
  const early = movingNames(FROM, TO, 20, 1).find((name) => shardIn(name) === shardIn(late)) ?? "";
  const leases = [late, early].map((name) => ({ name, lease: c.uuid() }));
  for (const { name, lease } of leases) await begin(c, "1", lease, [name]);
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cut();
  growing.learn();
  c.fate = ({ method, from }) => (method === "receive" && from === "shard 0" ? "lose" : "deliver");
  await growing.step(1);
  // Both decisions are in one message.
  await Promise.all(leases.map(({ lease }) => decide(c, "1", lease, "COMMITTED")));
  await c.pass(1_000);
  expect(await ownerOf(c, early)).toBe("ACTIVE 1");
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toMatchObject({
    value: { unappliedDecisions: 2 },
  });
  c.fate = () => "deliver";
  await growing.stepAll("done");
  await c.pass(120_000);
  expect(await ownerOf(c, late)).toBe("ACTIVE 1");
  expect(await c.clock.runUntil(c.ledger("1").object.status(c.envelope))).toMatchObject({
    value: { unappliedDecisions: 0 },
  });
});

test("[G4] [M6] a name that changes often waits once", async () => {
  const { c, growing } = await start();
  const [name = ""] = MOVING;
  await growing.start(TO);
  await growing.stepAll("copied");
  for (let n = 0; n < 5; n += 1) {
    await own(c, "1", name);
    const lease = c.uuid();
    await begin(c, "1", lease, [{ kind: "destroy", value: name }]);
    await decide(c, "1", lease, "COMMITTED");
    await c.pass(1_000);
  }
  const waiting = c.shards.flatMap(([, { database }]) => database.prepare("SELECT 1 FROM moved_name").all());
  expect(waiting).toHaveLength(1);
  await growing.stepAll("copied");
  expect(c.shards.flatMap(([, { database }]) => database.prepare("SELECT 1 FROM moved_name").all())).toEqual(
    [],
  );
});

test("[M7] no more than 10,000 changes are counted", async () => {
  const { c, growing } = await start();
  await growing.start(TO);
  await growing.stepAll("copied");
  const { database } = c.shard(0);
  const rows = Array.from({ length: 10_001 }, (_, index) => ({ type: 1, canonical: `name-${index}` }));
  database
    .prepare(`INSERT INTO moved_name SELECT value ->> 'type', value ->> 'canonical', 1 FROM json_each(?)`)
    .run(JSON.stringify(rows));
  expect(await c.clock.runUntil(c.shard(0).object.growthProgress(c.envelope))).toMatchObject({
    value: { waiting: 10_000 },
  });
});

test("[G4] [M6] steps at the same time share one step", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  await Promise.all([growing.step(0), growing.step(0), growing.step(0)]);
  const sent = c.messages("receive").filter(({ from }) => from === "shard 0");
  expect(sent).toHaveLength(new Set(sent.map(({ to, message }) => `${to} ${JSON.stringify(message)}`)).size);
});

test("[G7] [M6] a new shard that waits tells each source once at a time", async () => {
  const { c, growing } = await start();
  const [name = ""] = MOVING;
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cut();
  growing.learn();
  c.calls.length = 0;
  c.fate = ({ method }) => (method === "ping" ? "lose" : "deliver");
  for (let n = 0; n < 5; n += 1) expect(await ownerOf(c, name)).toBe("unknown");
  expect(c.messages("ping").map(({ to }) => to)).toEqual(["shard 0", "shard 1"]);
});

test("[G7] shards hand over at the same time, and delete with pauses, one after the other", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cut();
  growing.learn();
  const takesMs = 40;
  const steps: { shard: number; fromMs: number; toMs: number }[] = [];
  const objects = {
    shard: (shard: number) => ({
      async growStep(message: GrowthStep) {
        const fromMs = c.clock.now();
        await new Promise<void>((resume) => c.clock.after(takesMs, resume));
        const reply = await c.shard(shard).object.growStep(message);
        steps.push({ shard, fromMs, toMs: c.clock.now() });
        return reply;
      },
    }),
  };
  const stepped = stepGrowth(growthDriver(c, objects), growing.running, Infinity, 2);
  expect(await c.clock.runUntil(stepped)).toEqual({ ok: true, value: null });
  const begun = new Set(steps.slice(0, FROM).map(({ fromMs }) => fromMs));
  expect(begun.size).toBe(1);
  const pauses = steps.slice(FROM).flatMap(({ shard, toMs }, index, all) => {
    const next = all[index + 1];
    return next?.shard === shard ? [next.fromMs - toMs] : [];
  });
  expect(pauses.length).toBeGreaterThan(4);
  expect(new Set(pauses)).toEqual(new Set([3 * takesMs]));
  expectPlaced(c, "claim", ALL);
});

test("[M7] shards that hang cost a step the time of two answers", async () => {
  const c = await Cluster.start({ shards: 4 });
  const growing = new Growing(c);
  await growing.start(5);
  const asked: string[] = [];
  const hung = (method: string) => () => {
    asked.push(method);
    return new Promise<never>(() => {});
  };
  const driver = growthDriver(c, {
    shard: () => ({ growStep: hung("step"), growthProgress: hung("progress") }),
  });
  const startedMs = c.clock.now();
  expect(await c.clock.runUntil(stepGrowth(driver, growing.running, startedMs + 3_000))).toMatchObject({
    value: { shards: [0, 1, 2, 3].map((shard) => ({ shard, progress: null })) },
  });
  expect(asked).toEqual(["step", "progress", "progress", "progress"]);
  expect(c.clock.now() - startedMs).toBe(40_000);
});

test("[G7] a shard hands over with the message that has the last changes", async () => {
  const { c, growing } = await start();
  await growing.start(TO);
  await growing.stepAll("copied");
  const waiting = movingNames(FROM, TO, 5, 0);
  for (const name of waiting) await own(c, "1", name);
  await growing.cut();
  c.calls.length = 0;
  await growing.step(0);
  const sent = c.messages("receive").map(({ message }) => message as Receive);
  expect(sent.map(({ isComplete }) => isComplete)).toEqual(Array.from({ length: TO - FROM }, () => true));
  expect(sent.flatMap(({ names }) => names)).toHaveLength(waiting.length);
  growing.learn();
  for (const name of waiting) expect(await ownerOf(c, name)).toBe("ACTIVE 1");
});

test("[G8] a shard lists nothing until it has exactly the names that it serves", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied");
  await growing.cut();
  growing.learn();
  const count = (shard: number) =>
    c.clock.runUntil(c.shard(shard).object.countCellClaims({ ...c.envelope, cell: "1", behind: null }));
  c.fate = ({ method, to }) => (method === "receive" && to === "shard 4" ? "lose" : "deliver");
  expect(await count(0)).toEqual(no("UNAVAILABLE", { retryAfterMs: 1_000 }));
  expect(await count(4)).toEqual(no("UNAVAILABLE", { retryAfterMs: 1_000 }));
  c.fate = () => "deliver";
  await growing.stepAll("done");
  let claims = 0;
  for (let shard = 0; shard < TO; shard += 1) {
    const page = await count(shard);
    if (page.ok) claims += page.value.counts.reduce((sum, each) => sum + each.claims, 0);
  }
  expect(claims).toBe(ALL.length);
});

test("[G9] a new shard has the history of a name from its activation on", async () => {
  const { c, growing } = await start();
  const [name = ""] = MOVING;
  await own(c, "1", name);
  const lease = c.uuid();
  await begin(c, "1", lease, [{ kind: "destroy", value: name }]);
  await decide(c, "1", lease, "COMMITTED");
  await own(c, "2", name);
  await c.pass(1_000);
  await growing.complete(TO);
  const { object } = c.shard(shardNow(c, name));
  const page = await c.clock.runUntil(
    object.listPeriods({ ...c.envelope, key: keyOf("ROUTES", name), before: null, atMs: null, limit: 10 }),
  );
  expect(page).toMatchObject({
    ok: true,
    value: { periods: [{ cell: "2" }], completeSinceMs: expect.any(Number) as number },
  });
  expect(c.shards.flatMap(([, { database }]) => database.prepare("SELECT 1 FROM past_claim").all())).toEqual(
    [],
  );
});

/** Takes from a new shard everything that it has. */
function empty(c: Cluster, shard: number): void {
  const target = c.shard(shard);
  target.database.exec("DELETE FROM claim; DELETE FROM log; DELETE FROM incarnation");
  target.database.exec("DELETE FROM meta WHERE name <> 'tables'");
  target.restart();
}

const losses = (c: Cluster, shard: number): unknown[] =>
  c.shard(shard).database.prepare("SELECT 1 FROM meta WHERE name = 'history_lost'").all();

test("[G5] a new shard that loses what it got before the cut gets another copy", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied", 3);
  empty(c, TO - 1);
  expect(await growing.step(0)).toMatchObject({ ok: true, value: { state: "copying" } });
  expect(losses(c, TO - 1)).toEqual([]);
  await growing.stepAll("copied");
  await growing.cutAndHandOver();
  expectPlaced(c, "claim", ALL);
});

test("[G5] [H4] a new shard that loses what it got after the cut refuses the copy", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied", 3);
  await growing.cut();
  growing.learn();
  empty(c, TO - 1);
  expect(await growing.step(0)).toMatchObject({ ok: true, value: { state: "pushing" } });
  expect(losses(c, TO - 1)).toHaveLength(1);
});

describe("[G5] a new shard that loses what a source has handed over", () => {
  async function loses(): Promise<{ c: Cluster; growing: Growing; name: string }> {
    const { c, growing } = await start();
    for (const name of ALL) await own(c, "1", name);
    await growing.start(TO);
    await growing.stepAll("copied");
    await growing.cut();
    growing.learn();
    await growing.step(0);
    const name = movingNames(FROM, TO, 20, 0).find((each) => shardNow(c, each) === TO - 1) ?? "";
    empty(c, TO - 1);
    return { c, growing, name };
  }

  test("notices it from that source, because a name is missing", async () => {
    const { c, name } = await loses();
    expect(await ownerOf(c, name)).toBe("unknown");
    await c.pass(1_000);
    expect(await ownerOf(c, name)).toBe("HISTORY_LOST");
  });

  test("is complete only when the other sources have stopped to serve their names", async () => {
    const { c, growing, name } = await loses();
    await ownerOf(c, name);
    await c.pass(1_000);
    c.fate = ({ method }) => (method === "receive" ? "lose" : "deliver");
    const { object } = c.shard(TO - 1);
    const message = { ...c.envelope, operator };
    const accepted = await c.clock.runUntil(
      object.reconcile({ ...message, cells: ["1", "2"], dryRun: false }),
    );
    expect(accepted).toMatchObject({ ok: true, value: { status: { state: "reconciling" } } });
    const finish = () => c.clock.runUntil(object.finishReconciliation({ ...message, removedCells: [] }));
    expect(await finish()).toEqual(no("UNAVAILABLE", { retryAfterMs: 1_000 }));
    c.fate = () => "deliver";
    await growing.step(1);
    await ownerOf(c, name);
    await c.pass(10_000);
    expect(await ownerOf(c, name)).toBe("unknown");
    expect(await finish()).toMatchObject({ ok: true, value: { state: "complete" } });
    const others = MOVING.filter((each) => shardNow(c, each) !== TO - 1);
    for (const each of others) expect(await ownerOf(c, each)).toBe("ACTIVE 1");
  });

  test("[E1] [H3] continues above its positions, and knows the ledgers that it knew", async () => {
    const { c, growing, name } = await loses();
    // The source has made more changes than a shard skips that accepts a loss.
    const former = 5_000_000;
    const source = c.shard(0);
    const newest = "position = (SELECT max(position) FROM log)";
    source.database.exec(`UPDATE log SET position = ${former} WHERE ${newest}`);
    source.restart();
    await ownerOf(c, name);
    await c.pass(1_000);
    const { object, database } = c.shard(TO - 1);
    const message = { ...c.envelope, operator };
    await c.clock.runUntil(object.reconcile({ ...message, cells: ["1", "2"], dryRun: false }));
    c.fate = ({ method }) => (method === "receive" ? "lose" : "deliver");
    await ownerOf(c, name);
    await c.pass(1_000);
    const [log] = database.prepare(`SELECT ledgers FROM log WHERE ${newest}`).all();
    expect(log).toEqual({ ledgers: expect.stringContaining('"1":') as string });
    c.fate = () => "deliver";
    await growing.step(1);
    await c.pass(10_000);
    await c.clock.runUntil(object.finishReconciliation({ ...message, removedCells: [] }));
    await granted(c, "2", name);
    const [hold] = database.prepare(`SELECT epoch FROM ${HOLDS}`).all() as { epoch: number }[];
    expect(hold?.epoch).toBeGreaterThan(former);
  });
});

test("[G5] a new shard that lacks a message of a copy gets another copy", async () => {
  const { c, growing } = await start();
  for (const name of ALL) await own(c, "1", name);
  await growing.start(TO);
  await growing.stepAll("copied", 3);
  const target = c.shard(TO - 1);
  target.database.exec("DELETE FROM meta WHERE name = 'growth_target'");
  target.restart();
  expect(await growing.step(0)).toMatchObject({ ok: true, value: { state: "copying" } });
  await growing.stepAll("copied");
  await growing.cutAndHandOver();
  expectPlaced(c, "claim", ALL);
});

test("[H3] [H7] a lease that was rebuilt from moved holds hides no point, and is not lost", async () => {
  const { c } = await start();
  const [first = "", second = ""] = stayingNames(FROM, TO, 2, 0);
  await granted(c, "1", first);
  const rebuilt = await granted(c, "1", second);
  const { database } = c.ledger("1");
  const row = database.prepare("SELECT epochs FROM lease WHERE lease = ?").get(rebuilt) as { epochs: string };
  const [[, [epoch, incarnation]] = ["", [0, 0]]] = Object.entries(
    JSON.parse(row.epochs) as Record<string, [number, number]>,
  );
  database.prepare("UPDATE lease SET epochs = ? WHERE lease = ?").run(`{"0":[${epoch},0]}`, rebuilt);
  c.ledger("1").restart();
  const message = { ...c.envelope, shard: 0, incarnations: [[incarnation, 1]] as [number, number][] };
  const known = (position: number) =>
    c.clock.runUntil(c.ledger("1").object.knowledge({ ...message, point: { incarnation, position } }));
  expect(await known(epoch)).toMatchObject({
    value: { seen: { incarnation, position: epoch - 1 }, outstanding: 0 },
  });
  expect(await known(epoch - 1)).toMatchObject({ value: { outstanding: 1, leases: [rebuilt] } });
});
