/** Tests of what the directory remembers of its operators' changes. */
import { expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { AuditEntry } from "../../../../src/coordinator/capabilities/audit/audit.ts";
import type { Operator } from "../../../../src/coordinator/kernel/messages.ts";
import type { MintedKey } from "../../../../src/coordinator/capabilities/keys/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { shipped } from "../../../support/types.ts";
import { addCell } from "../cells/add-cell.ts";

const ada: Operator = { keyId: "ada", requestId: "request-7", reason: "it has moved" };

const HOUR_MS = 3_600_000;

function keyOf(c: Cluster, keyId: string, more: Partial<MintedKey> = {}): MintedKey {
  const now = c.clock.now();
  return {
    keyId,
    role: "cell",
    cell: "1",
    note: "for a test",
    createdAtMs: now,
    expiresAtMs: now + HOUR_MS,
    revokedAtMs: null,
    ...more,
  };
}

/** An operator has registered a cell, which has an entry. */
async function start(limits: Partial<Limits> = {}): Promise<Cluster> {
  const c = await Cluster.start({ cells: [], limits });
  await addCell(c, "1");
  return c;
}

const record = (c: Cluster, key: MintedKey) =>
  c.clock.runUntil(c.directory.object.recordKey({ ...c.envelope, key }));
const revoke = (c: Cluster, key: MintedKey) =>
  c.clock.runUntil(c.directory.object.revokeKey({ ...c.envelope, key }));

async function change(c: Cluster, updatedAtMs: number, more: { name?: string }, operator = ada) {
  return c.clock.runUntil(
    c.directory.object.changeCell({ ...c.envelope, operator, cell: "1", updatedAtMs, ...more }),
  );
}

async function versionOf(c: Cluster): Promise<number> {
  const answer = await c.clock.runUntil(c.directory.object.snapshot(c.envelope));
  return answer.ok ? (answer.value.cells[0]?.updatedAtMs ?? 0) : 0;
}

const pull = (c: Cluster, copied: string | null = null, limit = 100) =>
  c.clock.runUntil(c.directory.object.pullAudit({ ...c.envelope, copied, limit }));

async function entriesOf(c: Cluster): Promise<AuditEntry[]> {
  const answer = await pull(c);
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.entries;
}

const declare = (c: Cluster, position: number, names: readonly string[]) =>
  c.clock.runUntil(
    c.directory.object.changeTypes({
      ...c.envelope,
      operator: ada,
      position,
      entries: [
        ...shipped.entries,
        ...names.map((name, n) => ({
          kind: "subject" as const,
          name,
          number: 500 + n,
          rule: null,
          isInUse: false,
        })),
      ],
      copiedAt: 0,
    }),
  );

test("[O1] a change has one entry: who, when, why, what it was and what it is", async () => {
  const c = await start();
  const version = await versionOf(c);
  c.clock.jump(1_000);
  await change(c, version, { name: "moved" });
  const [added, changed, ...more] = await entriesOf(c);
  expect(more).toEqual([]);
  expect(added).toMatchObject({ action: "add_cell", keyId: "operator-key", reason: null, before: null });
  expect(changed).toEqual({
    id: expect.stringMatching(/^[\da-f-]{36}$/),
    atMs: c.clock.now(),
    keyId: "ada",
    requestId: "request-7",
    reason: "it has moved",
    action: "change_cell",
    cell: "1",
    target: "1",
    before: JSON.stringify({ name: "cell-1", address: "https://cell-1.example", location_hint: "weur" }),
    after: JSON.stringify({ name: "moved", address: "https://cell-1.example", location_hint: "weur" }),
  });
});

test("[O1] keys have entries when they are made and revoked, without anything secret", async () => {
  const c = await start();
  const key = keyOf(c, "k1");
  await record(c, key);
  await revoke(c, key);
  await revoke(c, keyOf(c, "elsewhere"));
  const [, minted, revoked, elsewhere] = await entriesOf(c);
  const state = {
    role: "cell",
    cell_id: "1",
    note: "for a test",
    expires_at_ms: key.expiresAtMs,
    is_revoked: false,
  };
  expect(minted).toMatchObject({
    action: "mint_key",
    target: "k1",
    before: null,
    after: JSON.stringify(state),
  });
  expect(revoked).toMatchObject({
    action: "revoke_key",
    target: "k1",
    cell: "1",
    before: JSON.stringify(state),
    after: JSON.stringify({ ...state, is_revoked: true }),
  });
  expect(elsewhere).toMatchObject({ action: "revoke_key", target: "elsewhere", before: null });
});

test("[O1] the entry of a set of types names what changed, up to 20 of them", async () => {
  const c = await start();
  const names = Array.from({ length: 30 }, (_, n) => `T${n}`);
  expect(await declare(c, 0, names)).toMatchObject({ ok: true });
  const entry = (await entriesOf(c)).at(-1);
  expect(entry).toMatchObject({ action: "change_types", target: "types", cell: null, keyId: "ada" });
  const before = JSON.parse(entry?.before ?? "") as object;
  const after = JSON.parse(entry?.after ?? "") as { changed: string[] };
  expect(before).toEqual({ version: 0, types: shipped.entries.length });
  expect(after).toMatchObject({ types: shipped.entries.length + 30, changes: 30 });
  expect(after.changed).toEqual(names.slice(0, 20).map((name) => `add subject_types.${name}`));
});

test("[O1] a call that changes nothing or is refused has no entry", async () => {
  const c = await start();
  const version = await versionOf(c);
  await declare(c, 0, ["NEW"]);
  const key = keyOf(c, "k1");
  await record(c, key);
  await revoke(c, key);
  const before = (await entriesOf(c)).length;
  await addCell(c, "1");
  await change(c, version, {});
  await change(c, version - 1, { name: "too late" });
  await declare(c, 0, ["NEW"]);
  await declare(c, 0, ["OTHER"]);
  await record(c, key);
  await revoke(c, key);
  await record(c, keyOf(c, "k2", { cell: "99" }));
  expect((await entriesOf(c)).length).toBe(before);
});

test.each(["INSERT ON audit", "UPDATE ON cell"])(
  "[O1] if the disk fails at the %s, neither the change nor its entry is made",
  async (write) => {
    const c = await start();
    const version = await versionOf(c);
    const { database } = c.directory;
    database.exec(`CREATE TRIGGER fails BEFORE ${write} BEGIN SELECT RAISE(ABORT, 'the disk fails'); END`);
    await expect(change(c, version, { name: "moved" })).rejects.toThrow("the disk fails");
    database.exec("DROP TRIGGER fails");
    c.directory.restart();
    expect((await entriesOf(c)).map(({ action }) => action)).toEqual(["add_cell"]);
    expect(await versionOf(c)).toBe(version);
  },
);

test("[O2] entries come oldest first, in pages, and are dropped only when they were copied", async () => {
  const c = await Cluster.start({ cells: [] });
  for (const cell of ["1", "2", "3"]) await addCell(c, cell);
  const targets = async (copied: string | null, limit = 2) => {
    const answer = await pull(c, copied, limit);
    if (!answer.ok) throw new Error(answer.refusal.detail);
    const { entries, more } = answer.value;
    return { more, targets: entries.map(({ target }) => target), last: entries.at(-1)?.id ?? "" };
  };
  const first = await targets(null);
  expect(first).toMatchObject({ targets: ["1", "2"], more: true });
  // Nobody has said that the page was copied.
  expect(await targets(null)).toEqual(first);
  c.directory.restart();
  expect(await targets(first.last)).toMatchObject({ targets: ["3"], more: false });
  await addCell(c, "4");
  // The message comes a second time.
  expect(await targets(first.last)).toMatchObject({ targets: ["3", "4"], more: false });
  expect(await targets("another entry")).toMatchObject({ targets: ["3", "4"] });
});

test("[O3] without room for its entry, a change is refused, and calls of cells are not", async () => {
  const c = await start({ auditEntries: 2 });
  const version = await versionOf(c);
  const key = keyOf(c, "k1");
  await record(c, key);
  const full = { ok: false, refusal: { code: "UNAVAILABLE", reason: "AUDIT_FULL" } };
  expect(await addCell(c, "2")).toMatchObject(full);
  expect(await change(c, version, { name: "x" })).toMatchObject(full);
  expect(await record(c, keyOf(c, "k2"))).toMatchObject(full);
  expect(await revoke(c, key)).toMatchObject(full);
  // The ledger of the cell is only told of a revocation that the directory may make.
  expect(
    await c.clock.runUntil(c.directory.object.keyToRevoke({ ...c.envelope, keyId: key.keyId })),
  ).toMatchObject(full);
  expect(await declare(c, 0, ["NEW"])).toMatchObject(full);
  const entries = [{ ...shipped.entries[0], isInUse: false }] as typeof shipped.entries;
  expect(
    await c.clock.runUntil(c.directory.object.useTypes({ ...c.envelope, entries, copiedAt: 0 })),
  ).toMatchObject({ ok: true });
  expect(await versionOf(c)).toBe(version);

  const copied = (await entriesOf(c)).at(-1)?.id ?? "";
  expect(await pull(c, copied)).toMatchObject({ ok: true, value: { entries: [] } });
  expect(await revoke(c, key)).toMatchObject({ ok: true });
});
