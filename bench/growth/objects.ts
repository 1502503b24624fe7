/** The files of a stopped coordinator's objects, opened to be written. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Sql, SqlValue, Synchronous } from "../../src/core/ports.ts";

/** Enough for the largest table to be filled without reading its pages again and again. */
const CACHE_KIB = 1_000_000;

/** The Sql port over one object's file. Each statement is prepared once: there are millions of calls. */
export class FileSql implements Sql {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    // Nobody waits for these rows: they are made durable once, at the end.
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

  /** With an empty log, so that the coordinator starts with nothing to catch up on. */
  close(): void {
    this.#database.exec("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)");
    this.#database.close();
  }
}

/** The objects of one class by their names. Throws unless `names` are there, and confirmed. */
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
  if (missing.length > 0) throw new Error(`the state has no ${missing.join(", ")} that was used once`);
  return opened;
}

/** D1's only file. */
export function openProjection(stateFolder: string): FileSql {
  const [path] = databasesIn(join(stateFolder, "storage", "d1", "miniflare-D1DatabaseObject"));
  if (path === undefined) throw new Error("the state has no fleet record");
  return new FileSql(path);
}

const databasesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"))
    .map((name) => join(folder, name));
