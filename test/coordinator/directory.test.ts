/** Tests of the directory over node:sqlite. */
import { expect, test } from "vitest";
import type { MintedKey } from "../../src/coordinator/capabilities/keys/messages.ts";
import { placementOf } from "../../src/coordinator/kernel/placement.ts";
import { Cluster } from "../support/cluster.ts";
import { addCell as add } from "./capabilities/cells/add-cell.ts";

const ok = (value: unknown): object => ({ ok: true, value });
const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const HOUR_MS = 3_600_000;

function keyOf(c: Cluster, keyId: string, more: Partial<MintedKey> = {}): MintedKey {
  const now = c.clock.now();
  return {
    keyId,
    role: "cell",
    cell: "1",
    note: null,
    createdAtMs: now,
    expiresAtMs: now + HOUR_MS,
    revokedAtMs: null,
    ...more,
  };
}

const find = (c: Cluster, keyId: string) =>
  c.clock.runUntil(c.directory.object.keyToRevoke({ ...c.envelope, keyId }));
const snapshot = (c: Cluster) => c.clock.runUntil(c.directory.object.snapshot(c.envelope));

const CONFIRMED = ok({ placement: placementOf(4), growth: null });

test("[P2] the first cell fixes the placement for every later instance", async () => {
  const c = await Cluster.start({ cells: [], shards: 4 });
  const other = { ...c.envelope, placement: placementOf(5) };
  expect(await add(c, "1")).toMatchObject({ ok: true });
  for (let instance = 0; instance < 2; instance += 1) {
    expect(await c.clock.runUntil(c.directory.object.snapshot(other))).toEqual(
      no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement: c.envelope.placement }),
    );
    // An object that asks is told the placement in force.
    for (const message of [other, c.envelope])
      expect(await c.clock.runUntil(c.directory.object.confirm(message))).toEqual(CONFIRMED);
    c.directory.restart();
  }
});

test("[P2] nothing but the first cell fixes the placement", async () => {
  const c = await Cluster.start({ cells: [], shards: 4 });
  const other = { ...c.envelope, placement: placementOf(5) };
  const { object } = c.directory;
  const key = keyOf(c, "k", { role: "router", cell: null });
  const cell = { cell: "1", name: "a" };
  const slot = { cell: "1", uuid: "run" };
  const calls = [
    object.confirm(other),
    object.confirm({ ...other, cell: "1" }),
    object.snapshot(other),
    object.changeCell({ ...other, ...cell, updatedAtMs: 1 }),
    object.recordKey({ ...other, key }),
    object.keyToRevoke({ ...other, keyId: "k" }),
    object.listKeys({ ...other, afterPosition: 0, limit: 10 }),
    object.revokeKey({ ...other, key }),
    object.takeSlot({ ...other, ...slot }),
    object.releaseSlot({ ...other, ...slot }),
  ];
  const answers = await c.clock.runUntil(Promise.all(calls as Promise<{ ok: boolean }>[]));
  expect(answers.map((answer) => answer.ok)).toEqual([
    false,
    false,
    true,
    false,
    true,
    true,
    true,
    true,
    false,
    true,
  ]);
  expect(answers[0]).toEqual(no("UNAVAILABLE", { reason: "NO_CELLS" }));
  expect(answers[1]).toEqual(no("PERMISSION_DENIED", { reason: "CELL_UNKNOWN" }));
  expect(answers[2]).toMatchObject({ value: { cells: [] } });
  expect(await add(c, "1")).toMatchObject({ ok: true });
  expect(await c.clock.runUntil(object.snapshot(other))).toEqual(
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
  );
  // What was stored before is there.
  expect(await find(c, "k")).toMatchObject({ ok: true, value: { keyId: "k" } });
});

test("[P2] of two first cells with different placements, exactly one is registered", async () => {
  const c = await Cluster.start({ cells: [] });
  const cell = { name: "a", address: "https://a.example", locationHint: null };
  const other = { ...c.envelope, placement: placementOf(5) };
  const both = await c.clock.runUntil(
    Promise.all([
      c.directory.object.addCell({ ...c.envelope, ...cell, cell: "1" }),
      c.directory.object.addCell({ ...other, ...cell, cell: "2" }),
    ]),
  );
  expect(both).toEqual([
    expect.objectContaining({ ok: true }),
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
  ]);
  expect(await snapshot(c)).toMatchObject({ value: { cells: [{ cell: "1" }] } });
});

test("[P2] a shard without a cell answers no call, and answers once there is one", async () => {
  const c = await Cluster.start({ cells: [], shards: 4 });
  const ping = (envelope = c.envelope) => c.clock.runUntil(c.shard(0).object.ping(envelope));
  const other = { ...c.envelope, placement: placementOf(5) };
  expect(await ping(other)).toEqual(no("UNAVAILABLE", { reason: "NO_CELLS" }));
  expect(await add(c, "1")).toMatchObject({ ok: true });
  expect(await ping()).toMatchObject({ ok: true });
  expect(await ping(other)).toEqual(no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }));
});

test("[P1] every call with another placement is refused first", async () => {
  const c = await Cluster.start();
  const key = keyOf(c, "k1");
  const envelope = { ...c.envelope, placement: placementOf(5) };
  const { object } = c.directory;
  const calls: Promise<unknown>[] = [
    object.snapshot(envelope),
    object.addCell({
      ...envelope,
      cell: "9",
      name: "nine",
      address: "https://nine.example",
      locationHint: null,
    }),
    object.changeCell({ ...envelope, cell: "1", name: "changed", updatedAtMs: 0 }),
    object.recordKey({ ...envelope, key }),
    object.keyToRevoke({ ...envelope, keyId: "k1" }),
    object.listKeys({ ...envelope, afterPosition: 0, limit: 10 }),
    object.revokeKey({ ...envelope, key }),
  ];
  for (const answer of await c.clock.runUntil(Promise.all(calls)))
    expect(answer).toEqual(no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }));
  expect(await find(c, "k1")).toEqual(ok(null));
  const seen = await snapshot(c);
  expect(seen.ok && seen.value.cells.map(({ cell, name }) => [cell, name])).toEqual([
    ["1", "cell-1"],
    ["2", "cell-2"],
  ]);
});

test("only a registered cell is confirmed; a call without a cell needs none", async () => {
  const c = await Cluster.start({ cells: ["1"] });
  const confirm = (cell: string) => c.clock.runUntil(c.directory.object.confirm({ ...c.envelope, cell }));
  expect(await confirm("1")).toEqual(CONFIRMED);
  expect(await confirm("3")).toEqual(no("PERMISSION_DENIED", { reason: "CELL_UNKNOWN" }));
  expect(await c.clock.runUntil(c.directory.object.confirm(c.envelope))).toEqual(CONFIRMED);
});

test("the directory counts cells, keys, and cells that verify or wait for it", async () => {
  const c = await Cluster.start({ limits: { verificationSlots: 1 } });
  const { object } = c.directory;
  const key = {
    keyId: "k1",
    role: "router" as const,
    cell: null,
    note: null,
    createdAtMs: 0,
    expiresAtMs: c.clock.now() + 60_000,
    revokedAtMs: null,
  };
  await c.clock.runUntil(object.recordKey({ ...c.envelope, key }));
  await c.clock.runUntil(object.recordKey({ ...c.envelope, key: { ...key, keyId: "k2" } }));
  const metrics = () => c.clock.runUntil(object.metrics(c.envelope));
  expect(await metrics()).toMatchObject({ value: { cells: 2, keys: 2, revokedKeys: 0 } });
  await c.clock.runUntil(object.revokeKey({ ...c.envelope, key }));
  for (const cell of ["1", "2"])
    await c.clock.runUntil(object.takeSlot({ ...c.envelope, cell, uuid: c.uuid() }));
  expect(await metrics()).toMatchObject({
    value: {
      keys: 2,
      revokedKeys: 1,
      verificationSlots: [{ cell: "1", heldMs: 0 }],
      verificationWaiting: 1,
    },
  });
});
