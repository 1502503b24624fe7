/** Opens the database files of a stopped coordinator's objects for writing. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { NodeSql } from "../../src/hosts/node/sqlite-database.ts";

/** Large enough to fill the largest table without reading its pages repeatedly. */
const CACHE_KIB = 1_000_000;

/** The `Sql` port for one object's file. */
export class FileSql extends NodeSql {
  constructor(path: string) {
    const connection = new DatabaseSync(path);
    // The rows only have to be durable at the end, where `close` writes them to disk.
    connection.exec(`PRAGMA synchronous = OFF; PRAGMA cache_size = -${CACHE_KIB}`);
    super(connection);
  }

  /**
   * Writes everything to disk and empties the write-ahead log, so that the coordinator starts without
   * recovery.
   */
  close(): void {
    this.database.exec("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)");
    this.database.close();
  }
}

/**
 * The objects of one class by name. Throws unless all of `names` exist and have confirmed their placement.
 */
export function openObjects(
  stateFolder: string,
  className: "ClaimShard" | "CellLedger",
  names: readonly string[],
): Map<string, FileSql> {
  const opened = new Map<string, FileSql>();
  for (const path of databasesIn(join(stateFolder, "storage", "do", `leasehold-${className}`))) {
    const sql = new FileSql(path);
    const name = sql.all<{ value: string }>("SELECT value FROM meta WHERE name = 'object_name'")[0]?.value;
    const isConfirmed = sql.all("SELECT 1 FROM meta WHERE name = 'placement'").length > 0;
    if (name !== undefined && isConfirmed && names.includes(name)) opened.set(name, sql);
    else sql.close();
  }
  const missing = names.filter((name) => !opened.has(name));
  if (missing.length > 0) throw new Error(`the state has no confirmed object ${missing.join(", ")}`);
  return opened;
}

const databasesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"))
    .map((name) => join(folder, name));
