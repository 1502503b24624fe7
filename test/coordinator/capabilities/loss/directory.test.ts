/** Tests of a directory whose storage goes back to an earlier state (H1 to H5, H8). */
import { describe, expect, test } from "vitest";
import type { Snapshot } from "../../../../src/coordinator/kernel/directory/messages.ts";
import type { MintedKey } from "../../../../src/coordinator/capabilities/keys/messages.ts";
import type { HistoryPoint } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { addCell as add } from "../cells/add-cell.ts";
import { LOST, saveDirectory } from "../../../support/go-back.ts";
import { operator } from "../../../support/ops.ts";

const REASON = "restored from a backup";

const key = (keyId: string, revokedAtMs: number | null = null): MintedKey => ({
  keyId,
  role: "router",
  cell: null,
  note: null,
  createdAtMs: 1,
  expiresAtMs: 2e12,
  revokedAtMs,
});

const record = (c: Cluster, keyId: string) =>
  c.clock.runUntil(c.directory.object.recordKey({ ...c.envelope, key: key(keyId) }));
const revoke = (c: Cluster, keyId: string) =>
  c.clock.runUntil(c.directory.object.revokeKey({ ...c.envelope, key: key(keyId) }));
const snapshot = (c: Cluster, seen?: HistoryPoint | null) =>
  c.clock.runUntil(c.directory.object.snapshot({ ...c.envelope, ...(seen ? { seen } : {}) }));

async function read(c: Cluster): Promise<Snapshot> {
  const answer = await snapshot(c);
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

const pointOf = async (c: Cluster): Promise<HistoryPoint> => {
  const { point } = await read(c);
  if (point === null) throw new Error("the directory has made no change");
  return point;
};

const compare = (c: Cluster, point: HistoryPoint) =>
  c.clock.runUntil(
    c.directory.object.compare({
      ...c.envelope,
      points: [{ noticedBy: "the ledger of cell 1", point }],
    }),
  );

/** What the cron tells the ledger of cell 1 once a minute. Returns what the ledger has seen. */
async function maintain(
  c: Cluster,
  point: HistoryPoint,
  confirmed: HistoryPoint | null,
): Promise<HistoryPoint | null> {
  const message = { ...c.envelope, directory: { point, confirmed } };
  const answer = await c.clock.runUntil(c.ledger("1").object.maintain(message));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.directory;
}

const rowsOf = (c: Cluster, table: string): number =>
  Number(c.directory.database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]);

describe("the history of a directory", () => {
  test("[H1] every change of a cell or a key takes a later position, and a slot takes none", async () => {
    const c = await Cluster.start();
    const points = [await pointOf(c)];
    const cell = (await read(c)).cells[0];
    const changes: (() => Promise<unknown>)[] = [
      () => add(c, "3"),
      () => record(c, "a"),
      () => revoke(c, "a"),
      () => c.directory.object.changeCell({ ...c.envelope, cell: "1", updatedAtMs: cell?.updatedAtMs ?? 0 }),
    ];
    for (const change of changes) {
      expect(await c.clock.runUntil(change())).toMatchObject({ ok: true });
      points.push(await pointOf(c));
    }
    const positions = points.map(({ position }) => position);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    expect(new Set(positions).size).toBe(5);
    expect(new Set(points.map(({ incarnation }) => incarnation)).size).toBe(1);
    await c.clock.runUntil(c.directory.object.takeSlot({ ...c.envelope, cell: "1", uuid: c.uuid() }));
    expect(await pointOf(c)).toEqual(points.at(-1));
    // A repeated change that changes nothing takes no position either.
    await record(c, "a");
    expect(await pointOf(c)).toEqual(points.at(-1));
  });

  test("[H1] a new instance raises the incarnation with its first change", async () => {
    const c = await Cluster.start();
    const before = await pointOf(c);
    c.directory.restart();
    expect(await pointOf(c)).toEqual(before);
    await record(c, "a");
    const after = await pointOf(c);
    expect(after.incarnation).toBeGreaterThan(before.incarnation);
    expect(await snapshot(c, before)).toMatchObject({ ok: true });
    expect(rowsOf(c, "incarnation")).toBe(2);
  });
});

test("[H2] a snapshot tells the point of the rows that it shows", async () => {
  const c = await Cluster.start();
  const restore = saveDirectory(c);
  const { sql } = c.directory;
  const flush = sql.flush.bind(sql);
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  sql.flush = async () => {
    await gate;
    return flush();
  };
  const { object } = c.directory;
  const cell = { cell: "3", name: "cell-3", address: "https://cell-3.example", locationHint: null };
  const adding = object.addCell({ ...c.envelope, ...cell });
  // The cell is written, and not durable yet.
  await c.clock.pass(1);
  const reading = object.snapshot(c.envelope);
  open();
  await c.clock.runUntil(adding);
  const answer = await c.clock.runUntil(reading);
  const { cells, point } = answer.ok ? answer.value : { cells: [], point: null };
  expect(cells).toHaveLength(3);
  restore();
  expect(await snapshot(c, point)).toEqual(LOST);
});

describe("a directory that went back in time", () => {
  test("[H2] [H4] refuses everything once it is told, and after a restart", async () => {
    const c = await Cluster.start();
    const restore = saveDirectory(c);
    await add(c, "3");
    const seen = await pointOf(c);
    restore();
    // Nobody has told it yet.
    expect((await read(c)).cells.map(({ cell }) => cell)).toEqual(["1", "2"]);
    expect(await snapshot(c, seen)).toEqual(LOST);
    c.directory.restart();
    const { object } = c.directory;
    const calls = {
      confirm: () => object.confirm({ ...c.envelope, cell: "1" }),
      snapshot: () => object.snapshot(c.envelope),
      addCell: () => add(c, "4"),
      changeCell: () => object.changeCell({ ...c.envelope, cell: "1", updatedAtMs: 1, name: "new" }),
      recordKey: () => record(c, "b"),
      keyToRevoke: () => object.keyToRevoke({ ...c.envelope, keyId: "a" }),
      listKeys: () => object.listKeys({ ...c.envelope, afterPosition: 0, limit: 1 }),
      revokeKey: () => revoke(c, "a"),
      takeSlot: () => object.takeSlot({ ...c.envelope, cell: "1", uuid: c.uuid() }),
      releaseSlot: () => object.releaseSlot({ ...c.envelope, cell: "1", uuid: c.uuid() }),
      compare: () => object.compare({ ...c.envelope, points: [] }),
    };
    for (const [call, send] of Object.entries(calls))
      expect(await c.clock.runUntil<unknown>(send()), call).toEqual(LOST);
    const events = c.logged.filter(({ event }) => event === "history_lost");
    expect(events).toMatchObject([{ fields: { part: "the directory", seen_position: seen.position } }]);
  });

  test("[H1] [H2] is noticed although it has made as many changes since", async () => {
    const c = await Cluster.start();
    const restore = saveDirectory(c);
    await record(c, "a");
    await revoke(c, "a");
    const seen = await pointOf(c);
    restore();
    for (const id of ["b", "c", "d"]) await record(c, id);
    expect((await pointOf(c)).position).toBeGreaterThan(seen.position);
    expect(await snapshot(c, seen)).toEqual(LOST);
  });

  test("[H2] [H3] is noticed by what a ledger stored, also after the ledger was restarted", async () => {
    const c = await Cluster.start();
    const restore = saveDirectory(c);
    await revoke(c, "a");
    const seen = await pointOf(c);
    expect(await maintain(c, seen, null)).toEqual(seen);
    restore();
    await record(c, "b");
    c.ledger("1").restart();
    const remembered = await maintain(c, await pointOf(c), null);
    expect(remembered).toEqual(seen);
    expect(await compare(c, seen)).toEqual(LOST);
    const part = await c.clock.runUntil(c.directory.object.part(c.envelope));
    expect(part).toMatchObject({
      value: { state: "lost", loss: { noticedBy: "the ledger of cell 1", seen } },
    });
  });

  test("[H5] cannot make a ledger forget its point, and a directory that has it can replace it", async () => {
    const c = await Cluster.start();
    const first = await pointOf(c);
    await maintain(c, first, null);
    c.directory.restart();
    await record(c, "a");
    const second = await pointOf(c);
    expect(second.incarnation).toBeGreaterThan(first.incarnation);
    expect(await maintain(c, second, null)).toEqual(first);
    expect(await maintain(c, second, { ...first, position: first.position - 1 })).toEqual(first);
    expect(await compare(c, first)).toMatchObject({ ok: true });
    expect(await maintain(c, second, first)).toEqual(second);
    // Within an incarnation, the later position wins.
    await record(c, "b");
    const third = await pointOf(c);
    expect(await maintain(c, third, null)).toEqual(third);
    expect(await maintain(c, second, null)).toEqual(third);
  });

  test("[H3] a ledger that has nothing new of the directory writes nothing", async () => {
    const c = await Cluster.start();
    const point = await pointOf(c);
    await maintain(c, point, null);
    const { counts } = c.ledger("1").sql;
    const before = counts.transactions;
    await maintain(c, point, null);
    expect(counts.transactions).toBe(before);
  });

  test("[H4] a change that waits for its transaction while the loss is noticed is not made", async () => {
    const c = await Cluster.start();
    const restore = saveDirectory(c);
    await record(c, "a");
    const seen = await pointOf(c);
    restore();
    const adding = c.directory.object.addCell({
      ...c.envelope,
      cell: "9",
      name: "cell-9",
      address: "https://cell-9.example",
      locationHint: null,
    });
    const told = snapshot(c, seen);
    expect(await c.clock.runUntil(adding)).toEqual(LOST);
    expect(await told).toEqual(LOST);
    expect(rowsOf(c, "cell")).toBe(2);
  });
});

describe("the reconciliation of a directory", () => {
  /** A directory that has lost a cell, a change of a cell, a key and two revocations, and knows it. */
  async function lost() {
    const c = await Cluster.start();
    await record(c, "old");
    const restore = saveDirectory(c);
    await c.clock.pass(1_000);
    await add(c, "3");
    const cell = (await read(c)).cells[0];
    const changing = { cell: "1", address: "https://new.example", updatedAtMs: cell?.updatedAtMs ?? 0 };
    await c.clock.runUntil(c.directory.object.changeCell({ ...c.envelope, ...changing }));
    await record(c, "new");
    await revoke(c, "old");
    await revoke(c, "offline");
    const { cells, point, revokedKeys } = await read(c);
    restore();
    expect(await snapshot(c, point)).toEqual(LOST);
    const keys = [key("old", 7), key("new"), key("offline", 8)];
    return { c, cells, keys, revokedKeys, point };
  }

  const reconcile = (c: Cluster, more: object) =>
    c.clock.runUntil(
      c.directory.object.reconcile({
        ...c.envelope,
        cells: [],
        keys: [],
        types: null,
        isLast: true,
        dryRun: false,
        isPlacementConfirmed: false,
        operator: { ...operator, reason: REASON },
        ...more,
      }),
    );

  test("[H8] a dry run says what is missing, and changes nothing", async () => {
    const { c, cells, keys } = await lost();
    expect(await reconcile(c, { cells, keys, dryRun: true })).toMatchObject({
      value: { status: { state: "lost" }, cells: ["1", "3"], keys: 2, revocations: 2 },
    });
    expect(await snapshot(c)).toEqual(LOST);
    expect(rowsOf(c, "cell")).toBe(2);
    expect(rowsOf(c, "minted_key")).toBe(1);
  });

  test("[H8] takes over what the copies have, and accepts the loss with the last page", async () => {
    const { c, cells, keys, revokedKeys, point } = await lost();
    expect(await reconcile(c, { cells, isLast: false })).toMatchObject({
      value: { status: { state: "lost" } },
    });
    expect(await snapshot(c)).toEqual(LOST);
    expect(await reconcile(c, { keys })).toMatchObject({
      value: { status: { state: "complete", loss: null }, keys: 2, revocations: 2 },
    });
    const after = await read(c);
    expect(after.cells).toEqual(cells);
    expect(after.revokedKeys.toSorted()).toEqual(revokedKeys.toSorted());
    // Its point is above everything that was seen, and what was seen counts as included.
    expect(after.point?.incarnation).toBeGreaterThan(point?.incarnation ?? Infinity);
    expect(after.point?.position).toBeGreaterThan(point?.position ?? Infinity);
    expect(await snapshot(c, point)).toMatchObject({ ok: true });
    expect(c.logged.at(-1)).toMatchObject({ event: "history_reconciled", fields: { reason: REASON } });
    c.directory.restart();
    expect(await read(c)).toEqual(after);
  });

  test("[H8] keeps what is newer than the copies", async () => {
    const c = await Cluster.start();
    const { cells: copies } = await read(c);
    const restore = saveDirectory(c);
    await record(c, "a");
    const seen = await pointOf(c);
    restore();
    await c.clock.pass(1_000);
    const changing = { cell: "1", name: "newer", updatedAtMs: copies[0]?.updatedAtMs ?? 0 };
    await c.clock.runUntil(c.directory.object.changeCell({ ...c.envelope, ...changing }));
    await revoke(c, "b");
    await snapshot(c, seen);
    expect(await reconcile(c, { cells: copies, keys: [key("b")] })).toMatchObject({
      value: { cells: [], keys: 0, revocations: 0 },
    });
    const { cells, revokedKeys } = await read(c);
    expect(cells[0]?.name).toBe("newer");
    expect(revokedKeys).toEqual(["b"]);
  });

  test("[H8] [P2] a directory that has lost its placement gets it back with its cells", async () => {
    const empty = await Cluster.start({ cells: [] });
    const restore = saveDirectory(empty);
    await add(empty, "1");
    const { cells, point } = await read(empty);
    restore();
    await snapshot(empty, point);
    expect(await reconcile(empty, { cells })).toMatchObject({ ok: true });
    const other = { ...empty.envelope, placement: "another" as never };
    expect(await empty.clock.runUntil(empty.directory.object.snapshot(other))).toMatchObject({
      refusal: { reason: "PLACEMENT_MISMATCH" },
    });
  });

  test("[H8] a directory that is complete changes nothing", async () => {
    const c = await Cluster.start();
    const before = await read(c);
    expect(await reconcile(c, { keys: [key("x", 1)] })).toMatchObject({
      value: { status: { state: "complete" }, keys: 0 },
    });
    expect(await read(c)).toEqual(before);
  });

  test("[H4] [H8] [O1] an operator can declare a loss that nobody has noticed", async () => {
    const c = await Cluster.start();
    const restore = saveDirectory(c);
    await add(c, "3");
    const { cells } = await read(c);
    restore();
    const declared = { incarnation: (await pointOf(c)).incarnation };
    expect(await reconcile(c, { cells, declared, dryRun: true })).toMatchObject({
      value: { status: { state: "complete" }, cells: ["3"] },
    });
    expect(rowsOf(c, "cell")).toBe(2);
    expect(await reconcile(c, { cells, declared, isLast: false })).toMatchObject({
      value: { status: { state: "lost", loss: { noticedBy: "an operator", seen: null } } },
    });
    expect(await snapshot(c)).toEqual(LOST);
    await reconcile(c, {});
    expect((await read(c)).cells).toEqual(cells);
    // The first page arrives once more, after the loss was accepted.
    expect(await reconcile(c, { cells, declared, isLast: false })).toMatchObject({
      value: { status: { state: "complete" } },
    });
    expect((await read(c)).cells).toEqual(cells);
    const pulled = await c.clock.runUntil(
      c.directory.object.pullAudit({ ...c.envelope, copied: null, limit: 100 }),
    );
    const entries = pulled.ok ? pulled.value.entries : [];
    expect(entries.filter(({ action }) => action === "reconcile_part")).toMatchObject([
      { target: "directory", reason: REASON, before: '{"state":"lost"}', after: '{"state":"complete"}' },
    ]);
  });

  test("[H4] [H8] a dry run tells no loss that is not durable yet", async () => {
    const { c } = await lost();
    let flushes = 0;
    const { sql } = c.directory;
    const flush = sql.flush.bind(sql);
    sql.flush = () => {
      flushes += 1;
      return flush();
    };
    expect(await reconcile(c, { dryRun: true })).toMatchObject({ value: { status: { state: "lost" } } });
    expect(flushes).toBe(1);
  });

  test("[H8] writes each restored key once, and forgets expired keys beyond the limit", async () => {
    const c = await Cluster.start({ limits: { maxKeys: 2 } });
    const restore = saveDirectory(c);
    await record(c, "a");
    const seen = await pointOf(c);
    restore();
    const { position } = await pointOf(c);
    await snapshot(c, seen);
    await reconcile(c, { keys: [key("a", 5)], isLast: false });
    const rows = c.directory.database.prepare("SELECT key_id, position FROM minted_key").all();
    expect(rows).toEqual([{ key_id: "a", position: position + 1 }]);
    const expired = [1, 2, 3].map((n) => ({ ...key(`expired-${n}`), expiresAtMs: n }));
    await reconcile(c, { keys: expired });
    expect(rowsOf(c, "minted_key")).toBe(2);
  });

  test("[P2] [H8] a placement comes back without cells if a shard has confirmed it", async () => {
    const c = await Cluster.start({ cells: [] });
    const restore = saveDirectory(c);
    await add(c, "1");
    const seen = await pointOf(c);
    restore();
    await snapshot(c, seen);
    await reconcile(c, { isPlacementConfirmed: true });
    expect(await read(c)).toMatchObject({ isPlaced: true, cells: [] });
    expect(await add(c, "1")).toMatchObject({ ok: true });
  });

  test("[A1] [H8] a revoked key that was forgotten counts as revoked", async () => {
    const c = await Cluster.start({ limits: { maxKeys: 1 } });
    const { object } = c.directory;
    const expiresAtMs = c.clock.now() + 1_000;
    const revoked = { ...key("old"), expiresAtMs };
    await c.clock.runUntil(object.revokeKey({ ...c.envelope, key: revoked }));
    await c.clock.pass(2_000);
    await record(c, "new");
    expect(await c.clock.runUntil(object.isRevoked({ ...c.envelope, keyId: "old", expiresAtMs }))).toEqual({
      ok: true,
      value: true,
    });
  });

  test("[H8] says whether a key is revoked from the rows that are left", async () => {
    const { c } = await lost();
    const { object } = c.directory;
    const isRevoked = (keyId: string, expiresAtMs = 2e12) =>
      c.clock.runUntil(object.isRevoked({ ...c.envelope, keyId, expiresAtMs }));
    expect(await isRevoked("old")).toEqual({ ok: true, value: false });
    await reconcile(c, { keys: [key("old", 5)], isLast: false });
    expect(await isRevoked("old")).toEqual({ ok: true, value: true });
  });
});
