import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { objectTablesFault } from "../node/part-tables.ts";
import { DIRECTORY_NAME } from "../../coordinator/objects/identity.ts";
import type { SqliteDatabase } from "../node/sqlite-database.ts";
import type { ObjectStore } from "../node/object-store.ts";

/** The part of a database whose tables have no part in their names. */
export const PROJECTION = "projection";

const OBJECT = /^(?:cell-\d+|shard-\d+|directory)$/;

export const isObject = (name: string): boolean => OBJECT.test(name);

export const isPart = (name: string): boolean => isObject(name) || name === PROJECTION;

/** A table or an index, as SQLite's schema has it. */
interface Entry {
  type: string;
  name: string;
  table: string;
  sql: string;
}

/** Returns the names of the parts that have tables. */
export function partsIn(connection: DatabaseSync, database = "main"): string[] {
  return [...new Set(entriesIn(connection, database).map(({ table }) => partOf(table)))];
}

/** Reads every page of a part. Throws what is wrong. */
export function checkPart(connection: DatabaseSync, database: string, part: string): void {
  for (const { type, name, table } of entriesIn(connection, database)) {
    if (type !== "table" || partOf(table) !== part) continue;
    const check = `PRAGMA ${database}.quick_check(${quoted(name)})`;
    const [finding] = connection.prepare(check).all() as { quick_check: string }[];
    if (finding?.quick_check !== "ok") throw new Error(finding?.quick_check ?? "the check has no result");
  }
}

/** Returns why this code cannot work with the tables of a part. */
export function partFault(connection: DatabaseSync, database: string, part: string): string | undefined {
  if (part === PROJECTION) return undefined;
  return objectTablesFault(connection, {
    isDirectory: part === DIRECTORY_NAME,
    database,
    prefix: `${part}/`,
  });
}

/** Removes the tables of a part. */
export function dropPart(connection: DatabaseSync, part: string): void {
  for (const { type, name, table } of entriesIn(connection, "main"))
    if (type === "table" && partOf(table) === part) connection.exec(`DROP TABLE ${quoted(name)}`);
}

/**
 * Attaches a database that nothing writes, and changes none of its files.
 *
 * @param hasLog - false for a database that was closed, so that no log is made for it
 */
export function attach(connection: DatabaseSync, path: string, name: string, hasLog: boolean): void {
  const { href } = pathToFileURL(path);
  connection.prepare(`ATTACH ? AS ${name}`).run(`${href}?${hasLog ? "mode=ro" : "immutable=1"}`);
}

/**
 * Copies the tables of a part that has none yet from an attached database. Throws if they have other rows
 * afterwards. Returns the number of rows.
 */
export function copyPart(connection: DatabaseSync, from: string, part: string): number {
  const entries = entriesIn(connection, from).filter(({ table }) => partOf(table) === part);
  let rows = 0;
  for (const { type, name, sql } of entries) {
    connection.exec(sql);
    if (type !== "table") continue;
    const [target, source] = [`main.${quoted(name)}`, `${from}.${quoted(name)}`];
    connection.exec(`INSERT INTO ${target} SELECT * FROM ${source}`);
    const [copied, there] = [target, source].map(
      (of) => (connection.prepare(`SELECT count(*) AS n FROM ${of}`).get() as { n: number }).n,
    );
    if (copied !== there) throw new Error(`${part} was not copied: ${name} has ${copied} of ${there} rows`);
    rows += there ?? 0;
  }
  return rows;
}

/** Tables come before their indexes, so that the copy of one can be filled first. */
const entriesIn = (connection: DatabaseSync, database: string): Entry[] =>
  connection
    .prepare(
      `SELECT type, name, tbl_name AS "table", sql FROM ${database}.sqlite_schema
        WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY type DESC, rowid`,
    )
    .all() as unknown as Entry[];

const partOf = (table: string): string => {
  const end = table.indexOf("/");
  return end === -1 ? PROJECTION : table.slice(0, end);
};

const quoted = (name: string): string => `"${name}"`;

const ALARM_TABLE = "CREATE TABLE IF NOT EXISTS host_alarm (at_ms INTEGER NOT NULL) STRICT";

/** What an object has in the file. Its alarm is one of its tables, so both are of the same moment. */
export class PartStore implements ObjectStore {
  readonly database: SqliteDatabase;
  alarmAtMs: number | null;

  constructor(database: SqliteDatabase) {
    this.database = database;
    this.database.all(ALARM_TABLE);
    const [row] = this.database.all<{ at_ms: number }>("SELECT at_ms FROM host_alarm");
    this.alarmAtMs = row?.at_ms ?? null;
  }

  setAlarm(atMs: number | null): void {
    this.alarmAtMs = atMs;
    const write = (): void => {
      this.database.all("DELETE FROM host_alarm");
      if (atMs !== null) this.database.all("INSERT INTO host_alarm (at_ms) VALUES (?)", atMs);
    };
    // An alarm that is set in a transaction belongs to it.
    if (this.database.isInTransaction) write();
    else this.database.transaction(write);
  }

  close(): void {
    this.database.close();
  }
}
