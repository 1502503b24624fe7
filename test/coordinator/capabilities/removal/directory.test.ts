/** Tests of what the directory does with cells that were removed (X5). */
import { expect, test } from "vitest";
import type { AuditEntry } from "../../../../src/coordinator/capabilities/audit/audit.ts";
import type { Cell } from "../../../../src/coordinator/kernel/directory/messages.ts";
import type { MintedKey } from "../../../../src/coordinator/capabilities/keys/messages.ts";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Operator } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { addCell } from "../cells/add-cell.ts";

const ada: Operator = { keyId: "ada", requestId: "request-7", reason: "its hardware is lost" };

const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});
const isRemoved = no("FAILED_PRECONDITION", { reason: "CELL_REMOVED" });

const start = (limits: Partial<Limits> = {}): Promise<Cluster> =>
  Cluster.start({ cells: ["1", "2"], limits });
const remove = (c: Cluster, cell: string, removedAtMs: number) =>
  c.clock.runUntil(c.directory.object.removeCell({ ...c.envelope, operator: ada, cell, removedAtMs }));

async function cellOf(c: Cluster, id: string): Promise<Cell> {
  const answer = await c.clock.runUntil(c.directory.object.snapshot(c.envelope));
  const cell = answer.ok ? answer.value.cells.find((each) => each.cell === id) : undefined;
  if (cell === undefined) throw new Error("no cell");
  return cell;
}

async function entriesOf(c: Cluster): Promise<AuditEntry[]> {
  const answer = await c.clock.runUntil(
    c.directory.object.pullAudit({ ...c.envelope, copied: null, limit: 100 }),
  );
  return answer.ok ? answer.value.entries.filter(({ action }) => action === "remove_cell") : [];
}

const keyOf = (c: Cluster, cell: string): MintedKey => ({
  keyId: `key of ${cell}`,
  role: "cell",
  cell,
  note: null,
  createdAtMs: c.clock.now(),
  expiresAtMs: c.clock.now() + 1_000_000,
  revokedAtMs: null,
});

test("[X5] [O1] a cell is marked once, with who removed it, and keeps the first time", async () => {
  const c = await start();
  const before = await cellOf(c, "1");
  expect(await remove(c, "1", 1_000)).toMatchObject({ ok: true, value: { removedAtMs: 1_000 } });
  c.directory.restart();
  expect(await remove(c, "1", 2_000)).toMatchObject({ ok: true, value: { removedAtMs: 1_000 } });
  const after = await cellOf(c, "1");
  expect(after).toEqual({ ...before, removedAtMs: 1_000, updatedAtMs: after.updatedAtMs });
  expect(after.updatedAtMs).toBeGreaterThan(before.updatedAtMs);
  expect(await cellOf(c, "2")).toMatchObject({ removedAtMs: null });
  expect(await entriesOf(c)).toMatchObject([
    { ...ada, cell: "1", before: '{"removed_at_ms":null}', after: '{"removed_at_ms":1000}' },
  ]);
  expect(await remove(c, "3", 1_000)).toEqual(no("NOT_FOUND", { reason: "CELL_UNKNOWN" }));
});

test("[X5] nothing of a removed cell is changed, and its id is never used again", async () => {
  const c = await start();
  const { updatedAtMs } = await cellOf(c, "1");
  await remove(c, "1", 1_000);
  const { object } = c.directory;
  const run = <T>(work: Promise<T>): Promise<T> => c.clock.runUntil(work);
  expect(await addCell(c, "1")).toEqual(
    no("FAILED_PRECONDITION", { reason: "CELL_REMOVED", field: "cell_id" }),
  );
  expect(await run(object.recordKey({ ...c.envelope, key: keyOf(c, "1") }))).toEqual(isRemoved);
  expect(await run(object.changeCell({ ...c.envelope, cell: "1", name: "new", updatedAtMs }))).toEqual(
    isRemoved,
  );
  expect(await run(object.takeSlot({ ...c.envelope, cell: "1", uuid: "run" }))).toEqual(isRemoved);
  expect(await run(object.recordKey({ ...c.envelope, key: keyOf(c, "2") }))).toMatchObject({ ok: true });
});

test("[X5] [A3] a removed cell gives up its verification slot and its place in the queue", async () => {
  const c = await start({ verificationSlots: 1 });
  const take = (cell: string) =>
    c.clock.runUntil(c.directory.object.takeSlot({ ...c.envelope, cell, uuid: cell }));
  expect(await take("1")).toMatchObject({ ok: true });
  expect(await take("2")).toEqual(no("RESOURCE_EXHAUSTED", { reason: "NO_VERIFICATION_SLOT" }));
  await remove(c, "1", 1_000);
  expect(await take("2")).toMatchObject({ ok: true });
});

test("[X5] [M6] a removed cell takes no place of a cell, but its id counts", async () => {
  const c = await start({ maxCells: 2, maxCellIds: 3 });
  expect(await addCell(c, "3")).toEqual(no("RESOURCE_EXHAUSTED"));
  await remove(c, "1", 1_000);
  expect(await addCell(c, "3")).toMatchObject({ ok: true });
  await remove(c, "2", 1_000);
  expect(await addCell(c, "4")).toEqual(
    no("RESOURCE_EXHAUSTED", { detail: expect.stringContaining("LEASEHOLD_MAX_CELL_IDS") as unknown }),
  );
});

test("[X5] [H8] a reconciled directory takes over removals that D1 has, and forgets none", async () => {
  const c = await start();
  const copies = [await cellOf(c, "1"), await cellOf(c, "2")];
  await remove(c, "2", 2_000);
  const part = await c.clock.runUntil(c.directory.object.part(c.envelope));
  const declared = { incarnation: part.ok ? (part.value.point?.incarnation ?? 0) : 0 };
  // The copy of cell 1 is older than the cell, but it has the removal. The copy of cell 2 lacks it.
  const cells = copies.map((cell) => ({ ...cell, removedAtMs: cell.cell === "1" ? 1_000 : null }));
  const page = { keys: [], types: null, isLast: true, dryRun: false, isPlacementConfirmed: true };
  const message = { ...c.envelope, operator: ada, cells, declared, ...page };
  expect(await c.clock.runUntil(c.directory.object.reconcile(message))).toMatchObject({
    ok: true,
    value: { cells: ["1"], status: { state: "complete" } },
  });
  expect(await cellOf(c, "1")).toMatchObject({ name: copies[0]?.name, removedAtMs: 1_000 });
  expect(await cellOf(c, "2")).toMatchObject({ removedAtMs: 2_000 });
});
