/** Tests of the verification slots in the directory. */
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

test("[A3] the number of slots is limited, and a refusal says when the first one ends", async () => {
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

test("[A3] the same run renews its slot, even if all are taken; another run of the cell waits", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(40_000);
  expect(await take(c, "1", "b")).toEqual(none(VERIFICATION_SLOT_MS - 40_000));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
  c.clock.jump(40_000);
  expect(await take(c, "2", "c")).toEqual(none(VERIFICATION_SLOT_MS - 40_000));
  expect(stored(c)).toEqual([{ cell: "1", uuid: "a" }]);
});

test("[A3] only its own run releases a slot, once, and another cell can take it at once", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  expect(await release(c, "1", "b")).toEqual({ ok: true, value: false });
  expect(await release(c, "2", "a")).toEqual({ ok: true, value: false });
  expect(await take(c, "2", "c")).toEqual(none(VERIFICATION_SLOT_MS));
  expect(await release(c, "1", "a")).toEqual({ ok: true, value: true });
  expect(await release(c, "1", "a")).toEqual({ ok: true, value: false });
  expect(await take(c, "2", "c")).toEqual(slot(c, "2", "c"));
});

test("[A3] an expired slot cannot be released", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(VERIFICATION_SLOT_MS);
  expect(await release(c, "1", "a")).toEqual({ ok: true, value: false });
  expect(stored(c)).toEqual([]);
});

test("[A3] slots survive a restart of the directory", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.directory.restart();
  expect(await take(c, "2", "b")).toEqual(none(VERIFICATION_SLOT_MS));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
});

test("[A3] [M4] a small correction of the clock ends no slot", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(-VERIFICATION_SLOT_MS);
  expect(await take(c, "2", "b")).toEqual(none(2 * VERIFICATION_SLOT_MS));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
});

test("[A3] [M4] a clock that was set back delays others by at most the length of two slots", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(-86_400_000);
  expect(await take(c, "2", "b")).toEqual(slot(c, "2", "b"));
});

test("[A3] a refused take, and a release without a slot, write nothing", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  const before = c.directory.sql.counts.transactions;
  await take(c, "2", "b");
  await release(c, "2", "b");
  expect(c.directory.sql.counts.transactions).toBe(before);
});

test("[A3] [M5] [P1] another version or placement is refused and takes no slot", async () => {
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
