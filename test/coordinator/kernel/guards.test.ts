/** Tests of small guards in the shared parts of the core. */
import { expect, test } from "vitest";
import { GroupCommit } from "../../../src/coordinator/kernel/group-commit.ts";
import { readLimits } from "../../../src/common/limits.ts";
import { META_TABLE, readMetaNumber, writeMeta } from "../../../src/coordinator/kernel/meta.ts";
import { AlarmSchedule } from "../../../src/coordinator/kernel/alarm-schedule.ts";
import { alwaysWorks } from "../../../src/coordinator/kernel/standing.ts";
import { ok } from "../../../src/coordinator/kernel/refusal.ts";
import { Slot } from "../../../src/coordinator/kernel/slot.ts";
import { NodeSql } from "../../support/node-sql.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

test("[M6] a limit is given in digits or as a number, and every other form is refused", () => {
  expect(readLimits({ LEASEHOLD_BATCH_OPS: 7 }).batchOps).toBe(7);
  expect(readLimits({ LEASEHOLD_BATCH_OPS: "007" }).batchOps).toBe(7);
  const wrong: unknown[] = [
    "7x",
    "x7",
    "7 ",
    "0x7",
    "1e2",
    7.5,
    Number.NaN,
    Infinity,
    ["7"],
    [7],
    true,
    null,
    {},
  ];
  for (const value of wrong)
    expect(() => readLimits({ LEASEHOLD_BATCH_OPS: value })).toThrow(
      "LEASEHOLD_BATCH_OPS must be a whole number of ops from 1 to 5000",
    );
});

test("the last value that was written is read; a number that was never written is 0", () => {
  const sql = new NodeSql();
  sql.all(META_TABLE);
  expect(readMetaNumber(sql, "n")).toBe(0);
  for (const value of [1, 2]) sql.transaction(["migrate"], () => writeMeta(sql, "n", value));
  expect(readMetaNumber(sql, "n")).toBe(2);
});

function scheduleWith(getMs: () => Promise<number | null>): {
  clock: VirtualClock;
  sets: number[];
  schedule: AlarmSchedule;
} {
  const clock = new VirtualClock();
  const sets: number[] = [];
  return {
    clock,
    sets,
    schedule: new AlarmSchedule({ get: getMs, set: (atMs) => void sets.push(atMs) }, clock),
  };
}

test("[M3] the alarm is read once, and an alarm that was set during the read is kept", async () => {
  let reads = 0;
  const read = Promise.withResolvers<number | null>();
  const { clock, sets, schedule } = scheduleWith(() => {
    reads += 1;
    return read.promise;
  });
  const learned = schedule.load();
  schedule.setBy(clock.now() + 5_000);
  read.resolve(clock.now() + 1);
  await learned;
  // The alarm that was set has replaced the one that was read.
  schedule.setBy(clock.now() + 3_000);
  expect(sets).toEqual([clock.now() + 5_000, clock.now() + 3_000]);
  await schedule.load();
  expect(reads).toBe(1);
});

test("[M3] after an alarm has rung, the next one is set whatever its time", async () => {
  const { clock, sets, schedule } = scheduleWith(async () => null);
  schedule.setBy(clock.now() + 1_000);
  schedule.markRung();
  schedule.setBy(clock.now() + 9_000);
  expect(sets).toEqual([clock.now() + 1_000, clock.now() + 9_000]);
});

test("[M3] an alarm counts as lost when it is overdue by a whole minute", async () => {
  const { clock, sets, schedule } = scheduleWith(async () => null);
  const setMs = clock.now() + 1_000;
  schedule.setBy(setMs);
  clock.jump(1_000 + 59_999);
  schedule.setBy(clock.now() + 5);
  expect(sets).toEqual([setMs]);
  clock.jump(1);
  schedule.setBy(clock.now() + 5);
  expect(sets).toEqual([setMs, clock.now() + 5]);
});

test("[B5] if a transaction fails, the work that waits for the next one fails too", async () => {
  const sql = new NodeSql();
  sql.database.exec("CREATE TABLE t (n INTEGER NOT NULL)");
  let halts = 0;
  const commits = new GroupCommit(
    { sql, clock: new VirtualClock(), halt: () => void (halts += 1) },
    { current: alwaysWorks },
  );
  const insert = (n: number) => () => void sql.all("INSERT INTO t (n) VALUES (?)", n);
  const failing = (): void => {
    throw new Error("a bug");
  };
  // The second item is too heavy for the same transaction.
  const works = [
    commits.submit("exchange", failing),
    commits.submit("exchange", insert(1), { weight: 5_000 }),
    commits.submit("exchange", insert(2)),
  ];
  expect((await Promise.allSettled(works)).map(({ status }) => status)).toEqual([
    "rejected",
    "rejected",
    "rejected",
  ]);
  expect([halts, sql.all("SELECT n FROM t")]).toEqual([1, []]);
});

test("[N1] later work gets a transaction of its own, and each one runs the `alongside` work", async () => {
  const sql = new NodeSql();
  sql.database.exec("CREATE TABLE t (n INTEGER NOT NULL)");
  let alongside = 0;
  const commits = new GroupCommit(
    { sql, clock: new VirtualClock(), halt: () => {} },
    { current: alwaysWorks },
    () => void (alongside += 1),
  );
  const insert = (n: number) => () => void sql.all("INSERT INTO t (n) VALUES (?)", n);
  for (const n of [1, 2]) await commits.submit("exchange", insert(n));
  // With the default weight, 500 items fit into one transaction.
  await Promise.all(Array.from({ length: 501 }, (_, n) => commits.submit("exchange", insert(n))));
  expect([alongside, sql.counts.transactions]).toEqual([4, 4]);
});

test("[C2] submitted work is not answered before it is durable", async () => {
  const sql = new NodeSql();
  const commits = new GroupCommit(
    { sql, clock: new VirtualClock(), halt: () => {} },
    { current: alwaysWorks },
  );
  const release = sql.holdFlushes();
  let answered = false;
  const work = commits.submit("exchange", () => ok(7)).finally(() => (answered = true));
  await new VirtualClock().pass(0);
  expect(answered).toBe(false);
  release();
  expect(await work).toEqual(ok(7));
});

test("a slot is what the kernel does by itself, until one capability provides it", () => {
  const slot = new Slot("nothing");
  expect(slot.current).toBe("nothing");
  slot.provide("something");
  expect(slot.current).toBe("something");
  expect(() => slot.provide("something else")).toThrow("two capabilities provide the same slot");
});
