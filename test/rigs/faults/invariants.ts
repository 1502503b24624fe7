/** What must be true at the end of every row. */
import { expect } from "vitest";
import type { TypeSet } from "../../../src/coordinator/capabilities/types/messages.ts";
import { HOLDS } from "../../support/holds.ts";
import { UNFINISHED } from "../../support/leases.ts";
import { env } from "../../support/workerd/api.ts";
import { rowsOf } from "./objects.ts";
import { SHARDS, type Batch, type Cell, type Known, type Stage } from "./stage.ts";

interface LeaseRow {
  lease: string;
  state: string;
  open: number;
}

interface HoldRow {
  canonical: string;
  lease: string;
}

interface ClaimRow {
  canonical: string;
  cell: string;
  subject_id: string;
  epoch: number;
}

const shards = Array.from({ length: SHARDS }, (_, shard) => `shard${shard}`);

const ledgersOf = ({ deployment }: Stage): Cell[] =>
  ([1, 2] as const).filter((cell) => deployment.used.has(`ledger${cell}`));

/** Reads the rows of all ledgers, by lease. */
async function leaseRows(stage: Stage): Promise<Map<string, LeaseRow & { cell: Cell }>> {
  const rows = new Map<string, LeaseRow & { cell: Cell }>();
  for (const cell of ledgersOf(stage)) {
    const isOpen = `decided = 1 AND ${UNFINISHED}`;
    const statement = `SELECT lease, state, ${isOpen} AS open FROM lease`;
    for (const row of await rowsOf<LeaseRow>(stage.deployment, `ledger${cell}`, statement))
      rows.set(row.lease, { ...row, cell });
  }
  return rows;
}

const inShards = async <Row>(stage: Stage, statement: string): Promise<Row[]> => {
  const used = shards.filter((label) => stage.deployment.used.has(label));
  return (await Promise.all(used.map((label) => rowsOf<Row>(stage.deployment, label, statement)))).flat();
};

const namesOf = ({ create = [], destroy = [], replace = [] }: Batch): string[] => [
  ...create,
  ...destroy,
  ...replace,
];

/** A lease's state in its ledger or, if it was pruned, its last acknowledged state. */
const stateOf = (known: Known, rows: Map<string, LeaseRow>): string | undefined =>
  rows.get(known.uuid)?.state ?? known.states.at(-1);

/** The claims that the committed leases leave, in the order of the scenario. */
function expectedClaims(stage: Stage, rows: Map<string, LeaseRow>): object[] {
  const claims = new Map<string, object>();
  for (const known of stage.leases.values()) {
    if (stateOf(known, rows) !== "COMMITTED" || stage.removed.has(known.cell)) continue;
    const { create = [], destroy = [], replace = [] } = known.batch;
    const cell = stage.deployment.cell(known.cell);
    for (const canonical of create) claims.set(canonical, { canonical, cell, subject: "1" });
    for (const canonical of replace) claims.set(canonical, { canonical, cell, subject: "2" });
    for (const canonical of destroy) claims.delete(canonical);
  }
  return [...claims].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, claim]) => claim);
}

/** Holds must belong to granted leases and claims to committed ones, and acknowledged states must hold. */
export async function expectConsistent(stage: Stage): Promise<void> {
  const rows = await leaseRows(stage);
  for (const [name, known] of stage.leases) expectKept(name, known, rows.get(known.uuid));
  const uuids = new Set([...stage.leases.values()].map(({ uuid }) => uuid));
  const unknown = [...rows.values()].filter(
    ({ lease, cell }) => !uuids.has(lease) && !stage.removed.has(cell),
  );
  expect(unknown).toEqual([]);
  expect(
    [...rows.values()]
      .filter(({ open }) => open === 1)
      .map(({ lease, state }) => `${state} ${lease} is not applied`),
  ).toEqual([]);

  const granted = [...stage.leases.values()].filter(({ uuid }) => rows.get(uuid)?.state === "GRANTED");
  const expected = granted.flatMap(({ uuid, batch }) =>
    namesOf(batch).map((canonical) => ({ canonical, lease: uuid })),
  );
  const holds = await inShards<HoldRow>(stage, `SELECT canonical, lease FROM ${HOLDS}`);
  expect(byName(holds)).toEqual(byName(expected));

  const claims = await inShards<ClaimRow>(stage, "SELECT canonical, cell, subject_id, epoch FROM claim");
  expect(
    byName(claims.map(({ canonical, cell, subject_id: subject }) => ({ canonical, cell, subject }))),
  ).toEqual(expectedClaims(stage, rows));
}

const byName = <Row extends { canonical: string }>(rows: Row[]): Row[] =>
  rows.toSorted((a, b) => (a.canonical < b.canonical ? -1 : 1));

/** An acknowledged state must be durable, and a decision must not change. */
function expectKept(name: string, { states }: Known, row: LeaseRow | undefined): void {
  const decided = [...new Set(states.filter((state) => state !== "GRANTED"))];
  expect({ name, decided: decided.length <= 1, states }).toEqual({ name, decided: true, states });
  const firstDecided = states.findIndex((state) => state !== "GRANTED");
  if (firstDecided >= 0)
    expect({ name, after: states.slice(firstDecided) }).toEqual({
      name,
      after: states.slice(firstDecided).map(() => decided[0]),
    });
  if (states.length === 0) return;
  // A decided lease may be pruned after its retention, but a granted one never.
  if (decided.length === 0) expect({ name, isThere: row !== undefined }).toEqual({ name, isThere: true });
  else if (row !== undefined) expect({ name, state: row.state }).toEqual({ name, state: decided[0] });
}

/** The opposite decision of every decided lease must be refused. */
export async function expectFinal(stage: Stage): Promise<void> {
  const rows = await leaseRows(stage);
  for (const [name, known] of stage.leases) {
    // The key of a removed cell is refused (X4).
    if (stage.removed.has(known.cell)) continue;
    const state = rows.get(known.uuid)?.state;
    if (state === "COMMITTED")
      await stage.decide(name, "rollback", [{ status: 409, reason: "LEASE_COMMITTED" }]);
    if (state === "ROLLED_BACK")
      await stage.decide(name, "commit", [{ status: 409, reason: "LEASE_ROLLED_BACK" }]);
  }
}

/** D1 must have the open leases of each ledger and the cells of the directory. */
export async function expectRecordToMatch(stage: Stage): Promise<void> {
  const db = (env as unknown as Record<string, D1Database>)[stage.deployment.database];
  if (db === undefined) throw new Error("the deployment has no D1");
  await expectTypesToMatch(stage, db);
  const rows = await leaseRows(stage);
  for (const cell of ledgersOf(stage)) {
    const id = stage.deployment.cell(cell);
    const found = await db
      .prepare("SELECT uuid AS lease FROM open_leases WHERE cell_id = ? ORDER BY lease")
      .bind(id)
      .all<{ lease: string }>();
    const held = [...rows.values()].filter((row) => row.cell === cell);
    const open = held.filter(({ state }) => state === "GRANTED").map(({ lease }) => ({ lease }));
    expect(found.results).toEqual(open.toSorted((a, b) => (a.lease < b.lease ? -1 : 1)));
    const copy = await db
      .prepare("SELECT last_error AS error, name FROM cells WHERE cell_id = ?")
      .bind(id)
      .first();
    expect(copy).toEqual({ error: null, name: stage.cells.get(id) });
  }
}

/** The set that the directory has stored. Undefined if no type was declared or used. */
async function storedTypes({ deployment }: Stage): Promise<TypeSet | undefined> {
  const statement = "SELECT value FROM meta WHERE name = 'types'";
  const [stored] = await rowsOf<{ value: string }>(deployment, "directory", statement);
  if (stored === undefined) return undefined;
  const { position, entries } = JSON.parse(stored.value) as TypeSet;
  return { position, entries };
}

/** D1 must have the set of types as the directory has it. */
async function expectTypesToMatch(stage: Stage, db: D1Database): Promise<void> {
  const stored = await storedTypes(stage);
  if (stored === undefined) return;
  const copy = await db.prepare("SELECT position, entries FROM type_sets").first<{ entries: string }>();
  expect(copy && { ...copy, entries: JSON.parse(copy.entries) as unknown }).toEqual(stored);
}

/**
 * Revoked keys must be refused and others accepted. The directory must list every cell once, and must know
 * those that were removed (X5).
 */
export async function expectDirectory(stage: Stage): Promise<void> {
  const { json } = await stage.until("the list of cells", [{ status: 200 }], () =>
    stage.client.send("GET", "/v1/admin/cells?include_removed=true"),
  );
  const listed = json["cells"] as { cell_id: string; name: string; removed_at: string | null }[];
  const shown = listed.map(({ cell_id: id, name, removed_at: removedAt }) => ({
    id,
    name,
    isRemoved: removedAt !== null,
  }));
  const { json: identities } = await stage.until("the identities", [{ status: 200 }], () =>
    stage.client.send("GET", "/v1/admin/identities"),
  );
  const issuers = identities["issuers"] as { name: string }[];
  expect(issuers.map(({ name }) => name)).toEqual([...stage.issuers]);
  const removed = new Set([...stage.removed].map((cell) => stage.deployment.cell(cell)));
  expect(shown).toEqual([...stage.cells].map(([id, name]) => ({ id, name, isRemoved: removed.has(id) })));
  for (const [name, { key, cell, isRevoked }] of stage.keys) {
    const expected = isRevoked ? [{ status: 401, reason: "KEY_REVOKED" }] : [{ status: 200 }];
    await stage.until(`a call with the key ${name}`, expected, () =>
      stage.client.send("GET", `/v1/cells/${stage.deployment.cell(cell)}/leases`, { key }),
    );
  }
}

/** Names have only types in use, the directory has all declared types, and D1 has a copy of the set. */
export async function expectTypes(stage: Stage): Promise<void> {
  const set = await storedTypes(stage);
  const entries = set?.entries.filter(({ kind }) => kind === "bucket") ?? [];
  const numbers = new Map(entries.map(({ name, number }) => [name, number]));
  for (const [name, number] of stage.types) expect([name, numbers.get(name)]).toEqual([name, number]);
  const used = new Set(entries.filter(({ isInUse }) => isInUse).map(({ number }) => number));
  const names = await inShards<{ type: number }>(
    stage,
    `SELECT bucket_type AS type FROM claim UNION SELECT bucket_type FROM ${HOLDS}`,
  );
  expect(names.filter(({ type }) => !used.has(type))).toEqual([]);
}

/**
 * The keys in D1 must match the directory. Only for a D1 database that belongs to one deployment, because
 * keys have one cursor.
 */
export async function expectKeysToMatch(stage: Stage): Promise<void> {
  const statement = "SELECT key_id AS id, position, revoked_at_ms AS revoked FROM";
  const made = await rowsOf<object>(
    stage.deployment,
    "directory",
    `${statement} minted_key ORDER BY position`,
  );
  const db = (env as unknown as Record<string, D1Database>)[stage.deployment.database];
  expect((await db?.prepare(`${statement} keys ORDER BY position`).all())?.results).toEqual(made);
}
