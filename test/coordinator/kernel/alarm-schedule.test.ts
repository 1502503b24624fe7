import { expect, test } from "vitest";
import { AlarmSchedule } from "../../../src/coordinator/kernel/alarm-schedule.ts";
import { Cluster } from "../../support/cluster.ts";
import { beginRequest } from "../../support/ops.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

function start(setMs: number | null): { clock: VirtualClock; sets: number[]; schedule: AlarmSchedule } {
  const clock = new VirtualClock();
  const sets: number[] = [];
  return {
    clock,
    sets,
    schedule: new AlarmSchedule({ get: async () => setMs, set: (atMs) => void sets.push(atMs) }, clock),
  };
}

test("[M3] an alarm that is set early enough is kept; a later one is moved forward", async () => {
  const now = new VirtualClock().now();
  const { sets, schedule } = start(now + 5_000);
  await schedule.load();
  schedule.setBy(now + 9_000);
  schedule.setBy(now + 5_000);
  expect(sets).toEqual([]);
  schedule.setBy(now + 2_000);
  schedule.setBy(now + 3_000);
  expect(sets).toEqual([now + 2_000]);
});

test("[M3] an alarm is always set in the future", async () => {
  const { clock, sets, schedule } = start(null);
  await schedule.load();
  schedule.setBy(clock.now() - 10);
  expect(sets).toEqual([clock.now() + 1]);
});

test("[M3] an alarm that is overdue by more than a minute counts as lost", async () => {
  const { clock, sets, schedule } = start(new VirtualClock().now() + 10);
  await schedule.load();
  clock.jump(30_000);
  schedule.setBy(clock.now() + 5_000);
  expect(sets).toEqual([]);
  clock.jump(60_000);
  schedule.setBy(clock.now() + 5_000);
  expect(sets).toEqual([clock.now() + 5_000]);
});

test("[M3] an instance that an alarm woke sets no other alarm before it has run", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["ada"])));
  const shard = c.shard(0);
  const { alarmAtMs } = shard;
  shard.restart();
  expect(shard.alarmAtMs).toBe(alarmAtMs);
  shard.alarmAtMs = undefined;
  await c.clock.runUntil(shard.object.alarm());
  expect(shard.alarmAtMs).toBeGreaterThan(c.clock.now());
});

test("[M3] an instance that could not read its alarm tries again at the next message", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  c.failAlarms = 1;
  c.shard(0).restart();
  await expect(c.clock.runUntil(c.shard(0).object.ping(c.envelope))).rejects.toThrow("alarm");
  expect(await c.clock.runUntil(c.shard(0).object.ping(c.envelope))).toMatchObject({ ok: true });
});
