/**
 * All rows of all objects and of D1, read from their files while the server runs, independently of its
 * answers. `npm start` has a file for each. The standalone server has one file for all of them, in which the
 * tables of an object begin with its name (`cell-7/lease`).
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { inPart } from "../../../src/hosts/node/part-tables.ts";
import { HOLDS } from "../../support/holds.ts";
import { isStandalone } from "./hosts.ts";

export type Row = Readonly<Record<string, unknown>>;

/** The name of D1 in `Change.object`. */
export const D1 = "d1";

export interface Change {
  /** `cell-1`, `shard-7`, `directory`, `d1`. */
  object: string;
  table: string;
  /** The values of the primary key. */
  key: string;
  before: Row | undefined;
  after: Row | undefined;
}

/**
 * State that is left out because it changes with any request:
 * - the incarnations and the log of shards, which a refused begin may write (docs/reference/limits.md, "A
 *   refused begin writes nothing where it is refused")
 * - how far the alarms and the cron have come
 * - the segments of past claims, which begin by themselves with time
 * The runtime's own tables and files are left out too. They contain alarms, which reads may set (M3).
 */
const BOOKKEEPING = new Set(["applied", "pruned_position"]);
const BOOKKEEPING_TABLES = new Set(["incarnation", "log", "host_alarm", "past_segment"]);

interface OpenDatabase {
  database: DatabaseSync;
  version: StatementSync;
  seen: number;
  /** What has the tables without an object in their names. */
  object: string;
  /** A table's name is as in the file. */
  rows: Map<string, [name: string, key: string, row: Row]>;
}

export class StateOnDisk {
  readonly #folder: string;
  readonly #open = new Map<string, OpenDatabase>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Returns the changes since the last call. The first call returns all rows. The objects are read again
   * while D1 changes, so if a run of the cron has written to an object, one call returns both.
   */
  changes(): Change[] {
    const { d1 = [], objects = [] } = Object.groupBy(this.#files(), (file) =>
      this.#hasD1(file) ? "d1" : "objects",
    );
    const changes = this.#changesIn(d1);
    for (;;) {
      changes.push(...this.#changesIn(objects));
      const later = this.#changesIn(d1);
      if (later.length === 0) return changes;
      changes.push(...later);
    }
  }

  #changesIn(files: readonly string[]): Change[] {
    return files.flatMap((file) => {
      const known = this.#open.get(file);
      if (known === undefined) return this.#openFirst(file);
      // `data_version` changes with every transaction of another connection.
      const version = versionOf(known.version);
      if (version === known.seen) return [];
      known.seen = version;
      return this.#readAgain(known);
    });
  }

  /** The rows of a table in matching objects, as of the last `changes()`. */
  rows(object: RegExp, table: string): Row[] {
    const found: Row[] = [];
    for (const each of this.#open.values())
      for (const [name, , row] of each.rows.values()) {
        const its = splitName(name, each.object);
        if (its.table === table && object.test(its.object)) found.push(row);
      }
    return found;
  }

  /** Inserts a row into D1 without the server. */
  insert(table: string, row: Row): void {
    const [names, marks] = [Object.keys(row).join(", "), Object.keys(row).fill("?").join(", ")];
    this.execute(`INSERT INTO ${table} (${names}) VALUES (${marks})`, ...Object.values(row));
  }

  /** Runs a statement in D1 without the server. */
  execute(statement: string, ...bindings: unknown[]): void {
    const [file = ""] = [...this.#open].find(([, { object }]) => object === D1) ?? [];
    const database = new DatabaseSync(file, { timeout: 120_000 });
    database.prepare(statement).run(...(bindings as SQLInputValue[]));
    database.close();
  }

  close(): void {
    for (const { database } of this.#open.values()) database.close();
  }

  #files(): string[] {
    const kinds = isStandalone ? [""] : ["do", "d1"];
    return kinds.flatMap((kind) =>
      readdirSync(join(this.#folder, kind), { recursive: true, withFileTypes: true })
        .filter(({ name }) => name.endsWith(".sqlite") && !name.startsWith("metadata"))
        .map(({ parentPath, name }) => join(parentPath, name)),
    );
  }

  #hasD1(file: string): boolean {
    return isStandalone || file.startsWith(join(this.#folder, "d1"));
  }

  #openFirst(file: string): Change[] {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 120_000 });
    const version = database.prepare("PRAGMA data_version");
    const object = this.#hasD1(file) ? D1 : "";
    const opened: OpenDatabase = { database, version, seen: versionOf(version), object, rows: new Map() };
    this.#open.set(file, opened);
    return this.#readAgain(opened);
  }

  #readAgain(known: OpenDatabase): Change[] {
    const before = known.rows;
    known.rows = readRows(known.database);
    if (known.object !== D1) known.object = nameOf(known.rows);
    const changes: Change[] = [];
    for (const [id, [name, key, row]] of known.rows) {
      const was = before.get(id)?.[2];
      if (was === undefined || JSON.stringify(was) !== JSON.stringify(row))
        changes.push({ ...splitName(name, known.object), key, before: was, after: row });
    }
    for (const [id, [name, key, row]] of before) {
      if (!known.rows.has(id))
        changes.push({ ...splitName(name, known.object), key, before: row, after: undefined });
    }
    return changes;
  }
}

const versionOf = (statement: StatementSync): number => Number(statement.get()?.["data_version"]);

/** Returns the object and the table of a name in a file. */
function splitName(name: string, fileObject: string): Pick<Change, "object" | "table"> {
  const [table = "", object = fileObject] = name.split("/").toReversed();
  return { object, table };
}

function readRows(database: DatabaseSync): OpenDatabase["rows"] {
  const rows: OpenDatabase["rows"] = new Map();
  // One transaction, so that all tables are read at one moment.
  database.exec("BEGIN");
  const tables = database
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name " +
        "NOT GLOB '_cf_*' AND name NOT GLOB 'sqlite_*'",
    )
    .all();
  for (const { name: found } of tables) {
    const name = String(found);
    const { object, table } = splitName(name, "");
    const columns = database
      .prepare(`SELECT name FROM pragma_table_info('${name}') WHERE pk > 0 ORDER BY pk`)
      .all();
    for (const row of database.prepare(`SELECT * FROM "${name}"`).all()) {
      // A new lease may take the row of a forgotten one, so its key is not that of the table.
      const names = table === "lease" ? ["lease"] : columns.map(({ name: column }) => String(column));
      const key = names.map((column) => String(row[column])).join(" ");
      const kept = keptOf(table, row);
      if (kept !== undefined) rows.set(`${name} ${key}`, [name, key, kept]);
    }
    if (table !== "claim") continue;
    // The log has the holds of a shard. They are shown as the rows of a table.
    const holds = `SELECT * FROM ${HOLDS}`;
    const shown = name.replace("claim", "hold");
    for (const row of database.prepare(object === "" ? holds : inPart(holds, object)).all()) {
      const key = `${String(row["bucket_type"])} ${String(row["canonical"])}`;
      rows.set(`${shown} ${key}`, [shown, key, row]);
    }
  }
  database.exec("COMMIT");
  return rows;
}

function keptOf(table: string, row: Row): Row | undefined {
  if (BOOKKEEPING_TABLES.has(table)) return undefined;
  if (table === "meta") return BOOKKEEPING.has(String(row["name"])) ? undefined : row;
  if (table !== "lease") return row;
  const { pending: _, ...kept } = row;
  return kept;
}

/** Objects store their name, except the directory. */
function nameOf(rows: OpenDatabase["rows"]): string {
  const name = rows.get("meta object_name")?.[2]["value"];
  return typeof name === "string" ? name : "directory";
}
