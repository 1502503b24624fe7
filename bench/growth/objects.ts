/** Opens the database files of a stopped coordinator's objects for writing. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Sql, SqlValue, Synchronous } from "../../src/core/ports.ts";
import { databaseSize } from "../../src/node-host/sqlite-database.ts";

/** Large enough to fill the largest table without reading its pages repeatedly. */
const CACHE_KIB = 1_000_000;

/**
 * The `Sql` port for one object's file. It prepares each statement once, because there are millions of calls.
 */
export class FileSql implements Sql {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    // The rows only have to be durable at the end, where `close` writes them to disk.
    this.#database.exec(`PRAGMA synchronous = OFF; PRAGMA cache_size = -${CACHE_KIB}`);
  }

  all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    let prepared = this.#statements.get(statement);
    if (prepared === undefined)
      this.#statements.set(statement, (prepared = this.#database.prepare(statement)));
    return prepared.all(...bindings) as Row[];
  }

  transaction<T>(_points: readonly never[], work: () => Synchronous<T>): T {
    this.#database.exec("BEGIN");
    const value = work();
    this.#database.exec("COMMIT");
    return value;
  }

  async flush(): Promise<void> {}

  sizeBytes(): number {
    return databaseSize(this.#database);
  }

  /**
   * Writes everything to disk and empties the write-ahead log, so that the coordinator starts without
   * recovery.
   */
  close(): void {
    this.#database.exec("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)");
    this.#database.close();
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
