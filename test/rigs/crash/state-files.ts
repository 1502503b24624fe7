import { cpSync, existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { inPart } from "../../../src/hosts/node/part-tables.ts";
import { DATABASE } from "../../../src/hosts/standalone/database-file.ts";
import { dropPart, partsIn } from "../../../src/hosts/standalone/parts.ts";
import { restorePart } from "../../../src/hosts/standalone/recover.ts";
import { HOLDS } from "../../support/holds.ts";

/** Reads the files that a coordinator left on disk when it ended. */

interface Stored {
  /** `shard-3`, `cell-1`, `directory`. */
  name: string;
  database: DatabaseSync;
  /** The part of the database that its tables are in. "": they have no part in their names. */
  part: string;
}

const rowsOf = <Row>({ database, part }: Stored, sql: string): Row[] =>
  database.prepare(part === "" ? sql : inPart(sql, part)).all() as unknown as Row[];

/** The database of a folder of `npm run standalone`. Undefined for a folder of `npm start`. */
function standaloneFile(stateFolder: string): string | undefined {
  const file = join(stateFolder, "databases", DATABASE);
  return existsSync(file) ? file : undefined;
}

const openStored = (file: string): DatabaseSync =>
  new DatabaseSync(file, { readOnly: true, timeout: 60_000 });

function storedParts(file: string, kind: string): Stored[] {
  const database = openStored(file);
  const parts = partsIn(database).filter((part) => part.startsWith(kind));
  database.close();
  return parts.map((name) => ({ name, database: openStored(file), part: name }));
}

function storedObjects(stateFolder: string, className: string): Stored[] {
  const standalone = standaloneFile(stateFolder);
  if (standalone !== undefined)
    return storedParts(standalone, className === "ClaimShard" ? "shard-" : "cell-");
  const folder = join(stateFolder, "storage", "do", `leasehold-${className}`);
  const files = readdirSync(folder).filter(
    (name) => name.endsWith(".sqlite") && !name.startsWith("metadata"),
  );
  return files.flatMap((name) => {
    const file = join(folder, name);
    const database = openStored(file);
    // An object that died before its first write has no tables.
    if (
      database.prepare("SELECT 1 FROM sqlite_schema WHERE name IN ('claim', 'lease')").get() === undefined
    ) {
      database.close();
      return [];
    }
    const object = database.prepare("SELECT value FROM meta WHERE name = 'object_name'").get()?.["value"];
    return [{ name: String(object), database, part: "" }];
  });
}

/** Makes all outcomes older, while no server runs. */
export function ageOutcomes(stateFolder: string, ms: number): void {
  for (const { database, part } of storedObjects(stateFolder, "CellLedger")) {
    const file = database.location();
    database.close();
    const ledger = new DatabaseSync(file ?? "");
    const sql = `UPDATE lease SET created_at_ms = created_at_ms - ?, decided_at_ms = decided_at_ms - ?
       WHERE decided > 0`;
    ledger.prepare(part === "" ? sql : inPart(sql, part)).run(ms, ms);
    ledger.close();
  }
}

/**
 * Returns the database file of a part by its name: `shard-3`, `cell-1`, `directory` or `projection`. All
 * parts of `npm run standalone` have the same file.
 */
export function fileOf(stateFolder: string, name: string): string {
  const standalone = standaloneFile(stateFolder);
  if (standalone !== undefined) return standalone;
  if (name === "projection")
    return onlyFile(join(stateFolder, "storage", "d1", "miniflare-D1DatabaseObject"));
  if (name === "directory") return onlyFile(join(stateFolder, "storage", "do", "leasehold-Directory"));
  const className = name.startsWith("shard-") ? "ClaimShard" : "CellLedger";
  const stored = storedObjects(stateFolder, className);
  const file = stored.find((each) => each.name === name)?.database.location();
  for (const { database } of stored) database.close();
  if (file === undefined || file === null) throw new Error(`there is no file of ${name}`);
  return file;
}

/**
 * Damages the file of one part. For `npm run standalone`, it damages a copy of the file, and gives the part
 * what the copy still has of it.
 */
export async function losePart(
  stateFolder: string,
  part: string,
  damage: (file: string) => void,
): Promise<void> {
  const file = standaloneFile(stateFolder);
  if (file === undefined) return damage(fileOf(stateFolder, part));
  const from = `${stateFolder}-damaged`;
  cpSync(stateFolder, from, { recursive: true });
  const damaged = join(from, "databases", DATABASE);
  damage(damaged);
  const left = new DatabaseSync(damaged);
  const isThere = partsIn(left).includes(part);
  left.close();
  if (isThere) await restorePart(stateFolder, { part, from }, { trustCopy: true });
  else {
    const database = new DatabaseSync(file);
    dropPart(database, part);
    database.close();
  }
  rmSync(from, { recursive: true });
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

interface StoredLease {
  cell: string;
  lease: string;
  state: string;
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
      `SELECT kind, canonical AS bucket, cell, lease FROM ${HOLDS}`,
    )) {
      stores.leftovers.push(`${shard.name} holds ${bucket} for a ${kind} of lease ${lease} of cell ${cell}`);
    }
    shard.database.close();
  }
  for (const ledger of storedObjects(stateFolder, "CellLedger")) {
    const cell = ledger.name.replace(/^cell-/, "");
    stores.leases.push(
      ...rowsOf<Omit<StoredLease, "cell">>(ledger, "SELECT lease, state FROM lease").map((row) => ({
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

/** Complains about the leases that the projection has. After recovery and a run of the cron, none is open. */
export function judgeRecord(stateFolder: string): string[] {
  const d1: Stored = { name: "D1", database: openStored(fileOf(stateFolder, "projection")), part: "" };
  const copies = rowsOf<Pick<StoredLease, "cell" | "lease">>(
    d1,
    "SELECT cell_id AS cell, uuid AS lease FROM open_leases",
  );
  d1.database.close();
  return copies.map(({ cell, lease }) => `D1 shows lease ${lease} of cell ${cell} as granted`);
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
