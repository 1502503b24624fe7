/** Slots for verifications, in the directory. */
import { expect, test } from "vitest";
import { placementOf } from "../../../src/core/placement.ts";
import { Cluster } from "../../support/cluster.ts";

const VERIFICATION_SLOT_MS = 60_000;

const start = (verificationSlots = 2): Promise<Cluster> =>
  Cluster.start({ limits: { verificationSlots, verificationSlotMs: VERIFICATION_SLOT_MS } });

const take = (c: Cluster, cell: string, uuid: string) =>
  c.clock.runUntil(c.directory.object.takeSlot({ ...c.envelope, cell, uuid }));
const release = (c: Cluster, cell: string, uuid: string) =>
  c.clock.runUntil(c.directory.object.releaseSlot({ ...c.envelope, cell, uuid }));

const slot = (c: Cluster, cell: string, uuid: string): object => ({
  ok: true,
  value: { cell, uuid, expiresAtMs: c.clock.now() + VERIFICATION_SLOT_MS, expiresInMs: VERIFICATION_SLOT_MS },
});
const none = (retryAfterMs: number): object => ({
  ok: false,
  refusal: expect.objectContaining({
    code: "RESOURCE_EXHAUSTED",
    reason: "NO_VERIFICATION_SLOT",
    retryAfterMs,
  }) as unknown,
});
const stored = (c: Cluster): unknown[] =>
  c.directory.database.prepare("SELECT cell, uuid FROM verification_slot ORDER BY cell").all();

test("[A3] so many cells have a slot at a time; the next one hears when the first of them ends", async () => {
  const c = await start();
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
  c.clock.jump(10_000);
  expect(await take(c, "2", "b")).toEqual(slot(c, "2", "b"));
  expect(await take(c, "3", "c")).toEqual(none(VERIFICATION_SLOT_MS - 10_000));
  c.clock.jump(VERIFICATION_SLOT_MS - 10_000);
  expect(await take(c, "3", "c")).toEqual(slot(c, "3", "c"));
  expect(stored(c)).toEqual([
    { cell: "2", uuid: "b" },
    { cell: "3", uuid: "c" },
  ]);
});

test("[A3] the same run renews its slot, also when all are taken; another run of the cell waits for it", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(40_000);
  expect(await take(c, "1", "b")).toEqual(none(VERIFICATION_SLOT_MS - 40_000));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
  c.clock.jump(40_000);
  expect(await take(c, "2", "c")).toEqual(none(VERIFICATION_SLOT_MS - 40_000));
  expect(stored(c)).toEqual([{ cell: "1", uuid: "a" }]);
});

test("[A3] a slot is released by its own run, once; somebody else has it at once", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  expect(await release(c, "1", "b")).toEqual({ ok: true, value: false });
  expect(await release(c, "2", "a")).toEqual({ ok: true, value: false });
  expect(await take(c, "2", "c")).toEqual(none(VERIFICATION_SLOT_MS));
  expect(await release(c, "1", "a")).toEqual({ ok: true, value: true });
  expect(await release(c, "1", "a")).toEqual({ ok: true, value: false });
  expect(await take(c, "2", "c")).toEqual(slot(c, "2", "c"));
});

test("[A3] an expired slot is nobody's: there is nothing to release", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(VERIFICATION_SLOT_MS);
  expect(await release(c, "1", "a")).toEqual({ ok: true, value: false });
  expect(stored(c)).toEqual([]);
});

test("[A3] slots outlive the directory's instance", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.directory.restart();
  expect(await take(c, "2", "b")).toEqual(none(VERIFICATION_SLOT_MS));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
});

test("[A3] [M4] a clock that is put right a little takes no slot away", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(-VERIFICATION_SLOT_MS);
  expect(await take(c, "2", "b")).toEqual(none(2 * VERIFICATION_SLOT_MS));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
});

test("[A3] [M4] a clock that was set back keeps nobody out for longer than two slots last", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(-86_400_000);
  expect(await take(c, "2", "b")).toEqual(slot(c, "2", "b"));
});

test("[A3] a refused take and an idle release write nothing", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  const before = c.directory.sql.counts.transactions;
  await take(c, "2", "b");
  await release(c, "2", "b");
  expect(c.directory.sql.counts.transactions).toBe(before);
});

test("[A3] [M5] [P1] another version or placement is refused, and takes nothing", async () => {
  const c = await start();
  for (const envelope of [
    { ...c.envelope, version: c.envelope.version + 1 },
    { ...c.envelope, placement: placementOf(5) },
  ]) {
    const request = { ...envelope, cell: "1", uuid: "a" };
    expect(await c.clock.runUntil(c.directory.object.takeSlot(request))).toMatchObject({
      ok: false,
      refusal: { code: "UNAVAILABLE" },
    });
    expect(await c.clock.runUntil(c.directory.object.releaseSlot(request))).toMatchObject({
      ok: false,
      refusal: { code: "UNAVAILABLE" },
    });
  }
  expect(stored(c)).toEqual([]);
});
