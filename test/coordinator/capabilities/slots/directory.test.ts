/** Tests of the verification slots in the directory. */
import { expect, test } from "vitest";
import { placementOf } from "../../../../src/coordinator/kernel/placement.ts";
import { Cluster } from "../../../support/cluster.ts";
import { seeded } from "../../../support/seeded.ts";

const VERIFICATION_SLOT_MS = 60_000;
/** After this time, the next cell in the queue asks again. */
const NEXT_MS = VERIFICATION_SLOT_MS / 4;

const start = (verificationSlots = 2): Promise<Cluster> =>
  Cluster.start({
    cells: ["1", "2", "3"],
    limits: { verificationSlots, verificationSlotMs: VERIFICATION_SLOT_MS },
  });

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
const places = (c: Cluster): unknown[] =>
  c.directory.database
    .prepare("SELECT cell FROM verification_place ORDER BY place")
    .all()
    .map(({ cell }) => cell);
const stored = (c: Cluster): unknown[] =>
  c.directory.database.prepare("SELECT cell, uuid FROM verification_slot ORDER BY cell").all();

test("[A3] the number of slots is limited, and a refusal says when to ask again", async () => {
  const c = await start();
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
  c.clock.jump(10_000);
  expect(await take(c, "2", "b")).toEqual(slot(c, "2", "b"));
  expect(await take(c, "3", "c")).toEqual(none(NEXT_MS));
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
  expect(await take(c, "2", "c")).toEqual(none(NEXT_MS));
  expect(stored(c)).toEqual([{ cell: "1", uuid: "a" }]);
});

test("[A3] a run renews its slot beyond its turn only as long as no other cell needs it", async () => {
  const c = await Cluster.start({
    cells: ["1", "2", "3"],
    limits: { verificationSlots: 2, verificationSlotMs: VERIFICATION_SLOT_MS, verificationTurnMs: 120_000 },
  });
  const renewFor = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 30_000) {
      c.clock.jump(30_000);
      for (const [cell, run] of [
        ["1", "a"],
        ["2", "b"],
      ] as const)
        expect(await take(c, cell, run)).toEqual(slot(c, cell, run));
    }
  };
  await take(c, "1", "a");
  await take(c, "2", "b");
  await renewFor(600_000);
  const holders = [
    { cell: "1", heldMs: 600_000 },
    { cell: "2", heldMs: 600_000 },
  ];
  const metrics = c.directory.object.metrics(c.envelope);
  expect(await c.clock.runUntil(metrics)).toMatchObject({ value: { verificationSlots: holders } });
  // The first renewal after somebody waits ends the slot, and its cell goes to the end of the queue.
  expect(await take(c, "3", "c")).toEqual(none(NEXT_MS));
  expect(await take(c, "2", "b")).toEqual(none(NEXT_MS));
  expect(places(c)).toEqual(["3", "2"]);
  expect(await take(c, "3", "c")).toEqual(slot(c, "3", "c"));
  // Cell 2 waits now, so cell 1 is next.
  expect(await take(c, "1", "a")).toEqual(none(NEXT_MS));
  expect(await take(c, "2", "b")).toEqual(slot(c, "2", "b"));
  // A new turn has begun for both.
  c.clock.jump(30_000);
  expect(await take(c, "3", "c")).toEqual(slot(c, "3", "c"));
});

test("[A3] only its own run releases a slot, once, and another cell can take it at once", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  expect(await release(c, "1", "b")).toEqual({ ok: true, value: false });
  expect(await release(c, "2", "a")).toEqual({ ok: true, value: false });
  expect(await take(c, "2", "c")).toEqual(none(NEXT_MS));
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
  expect(await take(c, "2", "b")).toEqual(none(NEXT_MS));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
});

test("[A3] [M4] a small correction of the clock ends no slot", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(-VERIFICATION_SLOT_MS);
  expect(await take(c, "2", "b")).toEqual(none(NEXT_MS));
  expect(await take(c, "1", "a")).toEqual(slot(c, "1", "a"));
});

test("[A3] [M4] a clock that was set back delays others by at most the length of two slots", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  c.clock.jump(-86_400_000);
  expect(await take(c, "2", "b")).toEqual(slot(c, "2", "b"));
});

test("[A3] a release without a slot writes nothing, and gives up no place", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  await take(c, "2", "b");
  const before = c.directory.sql.counts.transactions;
  expect(await release(c, "2", "b")).toEqual({ ok: true, value: false });
  expect(places(c)).toEqual(["2"]);
  expect(c.directory.sql.counts.transactions).toBe(before);
});

test("[A3] cells get slots in the order of their first calls, whoever asks at the right moment", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  for (const cell of ["2", "3"]) expect(await take(c, cell, "x")).toMatchObject({ ok: false });
  expect(await take(c, "3", "x")).toMatchObject({ ok: false });
  c.directory.restart();
  await release(c, "1", "a");
  expect(await take(c, "3", "x")).toEqual(none(NEXT_MS));
  expect(await take(c, "1", "b")).toEqual(none(2 * NEXT_MS));
  // Another run of the cell may ask: the place is the cell's.
  expect(await take(c, "2", "y")).toEqual(slot(c, "2", "y"));
  expect(places(c)).toEqual(["3", "1"]);
  await release(c, "2", "y");
  expect(await take(c, "1", "b")).toEqual(none(NEXT_MS));
  expect(await take(c, "3", "x")).toEqual(slot(c, "3", "x"));
});

test("[A3] with two free slots, the first two cells in the queue may come in any order", async () => {
  const c = await start(2);
  await take(c, "1", "a");
  await take(c, "2", "b");
  await take(c, "3", "c");
  await release(c, "1", "a");
  await release(c, "2", "b");
  expect(await take(c, "1", "d")).toEqual(slot(c, "1", "d"));
  expect(await take(c, "2", "e")).toEqual(none(NEXT_MS));
  expect(await take(c, "3", "c")).toEqual(slot(c, "3", "c"));
});

test("[A3] a cell that stops asking loses its place, and one that is a little late does not", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  await take(c, "2", "b");
  await take(c, "3", "c");
  await release(c, "1", "a");
  c.clock.jump(NEXT_MS + VERIFICATION_SLOT_MS - 1);
  expect(await take(c, "3", "c")).toEqual(none(NEXT_MS));
  c.clock.jump(1);
  expect(await take(c, "3", "c")).toEqual(slot(c, "3", "c"));
  expect(await take(c, "2", "b")).toEqual(none(NEXT_MS));
});

test("[A3] [M4] a clock that was set back ends the places of cells that have stopped asking", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  await take(c, "2", "b");
  c.clock.jump(-86_400_000);
  expect(await take(c, "3", "c")).toEqual(slot(c, "3", "c"));
  expect(places(c)).toEqual([]);
});

test("[A3] the queue is bounded by the registered cells, with one place for each", async () => {
  const c = await start(1);
  await take(c, "1", "a");
  for (const uuid of ["b", "c", "d"]) await take(c, "2", uuid);
  expect(places(c)).toEqual(["2"]);
  expect(await take(c, "99", "e")).toMatchObject({ ok: false, refusal: { reason: "CELL_UNKNOWN" } });
  expect(places(c)).toEqual(["2"]);
});

test("[A3] 100 cells that ask at once are all verified within 4 hours, in their order", async () => {
  const cells = Array.from({ length: 100 }, (_, n) => String(n + 1));
  const c = await Cluster.start({ cells, limits: { verificationSlotMs: VERIFICATION_SLOT_MS } });
  const random = seeded(7);
  const startMs = c.clock.now();
  const runMs = 240_000;
  /** Every tenth cell dies while it waits. */
  const dies = (cell: string): boolean => Number(cell) % 10 === 0;
  const served: string[] = [];
  const asks = new Map<string, number>();
  const queue = cells.map((cell, n) => ({ cell, atMs: startMs + n, endMs: 0 }));
  for (let step = 0; queue.length > 0; step += 1) {
    queue.sort((a, b) => a.atMs - b.atMs);
    const next = queue.shift();
    if (next === undefined) break;
    const { cell, atMs, endMs } = next;
    c.clock.jump(Math.max(0, atMs - c.clock.now()));
    if (step % 500 === 499) c.directory.restart();
    if (endMs > 0 && atMs >= endMs) {
      await release(c, cell, "run");
      continue;
    }
    const answer = await take(c, cell, "run");
    asks.set(cell, (asks.get(cell) ?? 0) + 1);
    if (answer.ok) {
      if (endMs === 0) served.push(cell);
      const until = endMs === 0 ? c.clock.now() + runMs : endMs;
      queue.push({ cell, atMs: Math.min(until, c.clock.now() + VERIFICATION_SLOT_MS * 0.75), endMs: until });
    } else if (!(dies(cell) && (asks.get(cell) ?? 0) > 3)) {
      const waitMs = (answer.refusal.retryAfterMs ?? 0) * (1 + random() / 10);
      queue.push({ cell, atMs: c.clock.now() + Math.round(waitMs), endMs: 0 });
    }
  }
  const living = cells.filter((cell) => !dies(cell));
  expect(served.toSorted((a, b) => Number(a) - Number(b))).toEqual(living);
  // The first two in the queue may take the two slots in any order.
  for (const [index, cell] of served.entries())
    expect(Math.abs(living.indexOf(cell) - index)).toBeLessThanOrEqual(2);
  expect(c.clock.now() - startMs).toBeLessThan(4 * 3_600_000);
  // A waiting cell asks at most as often as a running one renews its slot, until it is one of the next.
  expect(Math.max(...asks.values())).toBeLessThan((4 * 3_600_000) / VERIFICATION_SLOT_MS);
});

test("[A3] [P1] another placement is refused and takes no slot", async () => {
  const c = await start();
  const request = { ...c.envelope, placement: placementOf(5), cell: "1", uuid: "a" };
  const calls: Promise<object>[] = [
    c.directory.object.takeSlot(request),
    c.directory.object.releaseSlot(request),
  ];
  for (const asked of calls)
    expect(await c.clock.runUntil(asked)).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
  expect(stored(c)).toEqual([]);
});
