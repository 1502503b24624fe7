/** Tests of the directory over node:sqlite. */
import { noIdentities } from "../../../../src/coordinator/capabilities/identities/identities.ts";
import { expect, test } from "vitest";
import type { Cell } from "../../../../src/coordinator/kernel/directory/messages.ts";
import type { MintedKey } from "../../../../src/coordinator/capabilities/keys/messages.ts";
import { placementOf } from "../../../../src/coordinator/kernel/placement.ts";
import { Cluster } from "../../../support/cluster.ts";
import { shipped } from "../../../support/types.ts";
import { addCell as add } from "./add-cell.ts";

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

async function cellOf(c: Cluster): Promise<Cell> {
  const answer = await snapshot(c);
  const cell = answer.ok ? answer.value.cells[0] : undefined;
  if (cell === undefined) throw new Error("no cell");
  return cell;
}

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

test("cells are registered once, changed in part, and listed in the order of their ids", async () => {
  const c = await Cluster.start({ cells: [] });
  const createdAtMs = c.clock.now();
  for (const cell of ["10", "2", "x"]) {
    const made = {
      cell,
      name: `cell-${cell}`,
      address: `https://cell-${cell}.example`,
      locationHint: "weur",
      createdAtMs,
      updatedAtMs: createdAtMs,
      removedAtMs: null,
    };
    expect(await add(c, cell)).toEqual(ok(made));
  }
  expect(await add(c, "2")).toEqual(no("ALREADY_EXISTS", { reason: "CELL_EXISTS" }));
  c.clock.jump(1_000);
  const change = (cell: string, more: { name?: string; address?: string }) =>
    c.clock.runUntil(
      c.directory.object.changeCell({ ...c.envelope, cell, updatedAtMs: createdAtMs, ...more }),
    );
  expect(await change("2", { name: "two" })).toMatchObject({
    value: { name: "two", address: "https://cell-2.example" },
  });
  expect(await change("10", { address: "https://ten.example" })).toMatchObject({
    value: { name: "cell-10", address: "https://ten.example" },
  });
  expect(await change("3", { name: "three" })).toEqual(no("NOT_FOUND", { reason: "CELL_UNKNOWN" }));
  const updatedAtMs = createdAtMs + 1_000;
  expect(await snapshot(c)).toEqual(
    ok({
      placement: c.envelope.placement,
      growth: null,
      point: expect.anything() as unknown,
      isPlaced: true,
      revokedKeys: [],
      revokedThroughMs: 0,
      types: { position: 0, declaredAt: 0, entries: shipped.entries },
      identities: noIdentities,
      cells: [
        {
          cell: "2",
          name: "two",
          address: "https://cell-2.example",
          locationHint: "weur",
          createdAtMs,
          updatedAtMs,
          removedAtMs: null,
        },
        {
          cell: "10",
          name: "cell-10",
          address: "https://ten.example",
          locationHint: "weur",
          createdAtMs,
          updatedAtMs,
          removedAtMs: null,
        },
        {
          cell: "x",
          name: "cell-x",
          address: "https://cell-x.example",
          locationHint: "weur",
          createdAtMs,
          updatedAtMs: createdAtMs,
          removedAtMs: null,
        },
      ],
    }),
  );
});

test("[A2] a late change of a cell undoes nothing, and a repeated one is made once", async () => {
  const c = await Cluster.start({ cells: ["1"] });
  const seen = (await cellOf(c)).updatedAtMs;
  const change = (updatedAtMs: number, more: { name?: string; address?: string }) =>
    c.clock.runUntil(c.directory.object.changeCell({ ...c.envelope, cell: "1", updatedAtMs, ...more }));
  expect(await change(seen, { name: "one" })).toMatchObject({ ok: true, value: { name: "one" } });
  // The clock has not moved, but the version has grown.
  const first = (await cellOf(c)).updatedAtMs;
  expect(first).toBeGreaterThan(seen);
  // The same change again is acknowledged again. A change that was based on the version in between is
  // refused.
  expect(await change(seen, { name: "one" })).toMatchObject({ ok: true, value: { name: "one" } });
  expect(await change(first, { name: "between" })).toEqual(
    no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" }),
  );
  const { updatedAtMs } = await cellOf(c);
  expect(await change(seen, { name: "late" })).toEqual(
    no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" }),
  );
  expect(await change(seen, { address: "https://late.example" })).toEqual(
    no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" }),
  );
  // This change is based on the current version and changes nothing, but it still makes a new version.
  expect(await change(updatedAtMs, { name: "one" })).toMatchObject({ ok: true });
  expect(await change(updatedAtMs, { name: "late" })).toEqual(
    no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" }),
  );
  expect(await cellOf(c)).toMatchObject({ name: "one", address: "https://cell-1.example" });
});

test("[M6] the number of cells is limited", async () => {
  const c = await Cluster.start({ cells: ["1"], limits: { maxCells: 2 } });
  expect(await add(c, "2")).toMatchObject({ ok: true });
  expect(await add(c, "3")).toEqual(no("RESOURCE_EXHAUSTED"));
  // A registered cell is still reported as registered when the limit is reached.
  expect(await add(c, "2")).toEqual(no("ALREADY_EXISTS"));
});
