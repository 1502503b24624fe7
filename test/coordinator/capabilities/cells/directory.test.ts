/** Tests of the cells in the directory (A2). */
import { expect, test } from "vitest";
import { noIdentities } from "../../../../src/coordinator/capabilities/identities/identities.ts";
import type { Cell } from "../../../../src/coordinator/kernel/directory/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { shipped } from "../../../support/types.ts";
import { addCell as add } from "./add-cell.ts";

const ok = (value: unknown): object => ({ ok: true, value });
const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const snapshot = (c: Cluster) => c.clock.runUntil(c.directory.object.snapshot(c.envelope));

async function cellOf(c: Cluster): Promise<Cell> {
  const answer = await snapshot(c);
  const cell = answer.ok ? answer.value.cells[0] : undefined;
  if (cell === undefined) throw new Error("no cell");
  return cell;
}

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
