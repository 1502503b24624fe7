import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Reads the files that a coordinator left on disk when it ended. */

interface Stored {
  /** `shard-3`, `cell-1`, `directory`. */
  name: string;
  database: DatabaseSync;
}

const rowsOf = <Row>({ database }: Stored, sql: string): Row[] =>
  database.prepare(sql).all() as unknown as Row[];

/** The databases of a folder of `npm run standalone`. Undefined for a folder of `npm start`. */
function standaloneFolder(stateFolder: string): string | undefined {
  const folder = join(stateFolder, "databases");
  return existsSync(folder) ? folder : undefined;
}

function objectFiles(stateFolder: string, className: string): string[] {
  const standalone = standaloneFolder(stateFolder);
  const folder = standalone ?? join(stateFolder, "storage", "do", `leasehold-${className}`);
  const prefix = standalone === undefined ? "" : className === "ClaimShard" ? "shard-" : "cell-";
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix) && name.endsWith(".sqlite") && !name.startsWith("metadata"))
    .map((name) => join(folder, name));
}

function storedObjects(stateFolder: string, className: string): Stored[] {
  return objectFiles(stateFolder, className).flatMap((file) => {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 60_000 });
    // An object that died before its first write has no tables.
    if (database.prepare("SELECT 1 FROM sqlite_schema WHERE name IN ('hold', 'lease')").get() === undefined) {
      database.close();
      return [];
    }
    const name = database.prepare("SELECT value FROM meta WHERE name = 'object_name'").get()?.["value"];
    return [{ name: String(name), database }];
  });
}

/** Returns the database file of an object by the object's name: `shard-3`, `cell-1` or `directory`. */
export function objectFile(stateFolder: string, name: string): string {
  const standalone = standaloneFolder(stateFolder);
  if (standalone !== undefined) return join(standalone, `${name}.sqlite`);
  if (name === "directory") return onlyFile(join(stateFolder, "storage", "do", "leasehold-Directory"));
  const className = name.startsWith("shard-") ? "ClaimShard" : "CellLedger";
  const stored = storedObjects(stateFolder, className);
  const file = stored.find((each) => each.name === name)?.database.location();
  for (const { database } of stored) database.close();
  if (file === undefined || file === null) throw new Error(`there is no file of ${name}`);
  return file;
}

/** Returns the database file of D1. */
export function d1File(stateFolder: string): string {
  const standalone = standaloneFolder(stateFolder);
  if (standalone !== undefined) return join(standalone, "projection.sqlite");
  return onlyFile(join(stateFolder, "storage", "d1", "miniflare-D1DatabaseObject"));
}

function onlyFile(folder: string): string {
  const names = readdirSync(folder).filter(
    (name) => name.endsWith(".sqlite") && !name.startsWith("metadata"),
  );
  const [name] = names;
  if (name === undefined || names.length > 1) throw new Error(`${folder} has ${names.length} databases`);
  return join(folder, name);
}

interface StoredClaim {
  bucket: string;
  cell: string;
}

export interface StoredLease {
  cell: string;
  lease: string;
  state: string;
  position: number;
}

export interface Stores {
  claims: StoredClaim[];
  leases: StoredLease[];
  /** One sentence for each hold and open lease. After recovery there must be none. */
  leftovers: string[];
}

export function readStores(stateFolder: string): Stores {
  const stores: Stores = { claims: [], leases: [], leftovers: [] };
  for (const shard of storedObjects(stateFolder, "ClaimShard")) {
    stores.claims.push(
      ...rowsOf<StoredClaim>(shard, "SELECT bucket_type || ' ' || canonical AS bucket, cell FROM claim"),
    );
    for (const { kind, bucket, cell, lease } of rowsOf<Record<string, string>>(
      shard,
      "SELECT kind, canonical AS bucket, cell, lease FROM hold",
    )) {
      stores.leftovers.push(`${shard.name} holds ${bucket} for a ${kind} of lease ${lease} of cell ${cell}`);
    }
    shard.database.close();
  }
  for (const ledger of storedObjects(stateFolder, "CellLedger")) {
    const cell = ledger.name.replace(/^cell-/, "");
    stores.leases.push(
      ...rowsOf<Omit<StoredLease, "cell">>(ledger, "SELECT lease, state, position FROM lease").map((row) => ({
        cell,
        ...row,
      })),
    );
    const open = "SELECT lease, state FROM lease WHERE decided = 0";
    for (const { lease, state } of rowsOf<Record<string, string>>(ledger, open)) {
      stores.leftovers.push(`${ledger.name} still has lease ${lease} open, which is ${state}`);
    }
    ledger.database.close();
  }
  return stores;
}

/** Differences between the projection and the ledgers. Only meaningful right after a completed cron run. */
export function judgeRecord(stateFolder: string, leases: readonly StoredLease[]): string[] {
  const d1: Stored = { name: "D1", database: new DatabaseSync(d1File(stateFolder), { readOnly: true }) };
  const copies = rowsOf<Pick<StoredLease, "cell" | "lease">>(
    d1,
    "SELECT cell_id AS cell, uuid AS lease FROM open_leases",
  );
  const cursors = new Map(
    rowsOf<{ cell: string; position: number }>(
      d1,
      "SELECT cell_id AS cell, pulled_position AS position FROM cells",
    ).map((row) => [row.cell, row.position]),
  );
  d1.database.close();
  const outdated = leases.filter(({ cell, position }) => position > (cursors.get(cell) ?? 0));
  return [
    ...copies.map(({ cell, lease }) => `D1 shows lease ${lease} of cell ${cell} as granted`),
    ...outdated.slice(0, 1).map(({ cell }) => `D1's cursor of cell ${cell} is behind its ledger`),
  ];
}

/** The total size in bytes of all files below a folder whose name has this ending. */
export function sizeOf(folder: string, ending: string): number {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .reduce(
      (sum, entry) =>
        sum + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
}
