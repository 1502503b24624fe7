import { DatabaseSync } from "node:sqlite";
import type { LocalLease, LocalLeases } from "../../src/cell/reconcile.ts";
import type { Claim } from "../../src/cell/remote-leases.ts";

const schema = `
  PRAGMA busy_timeout = 10000;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS name (
    type TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, subject INTEGER NOT NULL, source INTEGER NOT NULL, PRIMARY KEY (type, key)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS outstanding_lease (uuid TEXT PRIMARY KEY, created_at_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS sequence (last INTEGER NOT NULL) STRICT;
  INSERT INTO sequence SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM sequence);
`;

/** A row of the cell's: a name that it has. */
export interface Row {
  type: string;
  value: string;
  subject: number;
  source: number;
}

export const sourceTypes: Readonly<Record<string, string>> = { ROUTES: "RAILS_TABLE_ROUTES", USERNAMES: "RAILS_TABLE_USERS" };

export const claimOf = ({ type, value, subject, source }: Row): Claim => ({
  bucket: { type, value },
  subject: { type: "USER", id: String(subject) },
  source: { type: sourceTypes[type] ?? "", id: String(source) },
});

/** The database of a cell, which all of its processes share: its rows, and the leases that it saved something under. */
export class LocalDatabase implements LocalLeases {
  readonly #database: DatabaseSync;

  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    this.#database.exec(schema);
  }

  /** Never given twice, to no process. */
  nextId(): number {
    return Number(this.#database.prepare("UPDATE sequence SET last = last + 1 RETURNING last").get()?.["last"]);
  }

  /** All of it or nothing. Throws what `work` or the database throws. */
  transaction(work: () => void): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  find(type: string, value: string): Row | undefined {
    return this.#database.prepare("SELECT type, value, subject, source FROM name WHERE type = ? AND key = ?").get(type, value.toLowerCase()) as
      | Row
      | undefined;
  }

  rows(): Row[] {
    return this.#database.prepare("SELECT type, value, subject, source FROM name ORDER BY type, key").all() as unknown as Row[];
  }

  insert({ type, value, subject, source }: Row): void {
    this.#change("INSERT INTO name (type, key, value, subject, source) VALUES (?, ?, ?, ?, ?)", type, value.toLowerCase(), value, subject, source);
  }

  delete({ type, value }: Row): void {
    this.#change("DELETE FROM name WHERE type = ? AND key = ?", type, value.toLowerCase());
  }

  replace({ type, value, subject, source }: Row): void {
    const key = value.toLowerCase();
    this.#change("UPDATE name SET value = ?, subject = ?, source = ? WHERE type = ? AND key = ?", value, subject, source, type, key);
  }

  /** In the transaction of the rows that the lease is for. */
  insertLease(uuid: string): void {
    this.#change("INSERT INTO outstanding_lease (uuid, created_at_ms) VALUES (?, ?)", uuid, Date.now());
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    const sql = "SELECT uuid, created_at_ms FROM outstanding_lease WHERE uuid > ? ORDER BY uuid LIMIT ?";
    return this.#database.prepare(sql).all(afterUuid, limit).map(leaseOf);
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    const sql = "SELECT uuid, created_at_ms FROM outstanding_lease WHERE uuid IN (SELECT value FROM json_each(?))";
    return this.#database.prepare(sql).all(JSON.stringify(uuids)).map(leaseOf);
  }

  async remove(uuid: string): Promise<void> {
    this.#database.prepare("DELETE FROM outstanding_lease WHERE uuid = ?").run(uuid);
  }

  close(): void {
    this.#database.close();
  }

  /** A lease promises that the row is as the cell thinks: one row, or something is very wrong. */
  #change(sql: string, ...values: (string | number)[]): void {
    const { changes } = this.#database.prepare(sql).run(...values);
    if (Number(changes) !== 1) throw new Error(`${changes} rows instead of one: ${sql} ${JSON.stringify(values)}`);
  }
}

const leaseOf = (row: Record<string, unknown>): LocalLease => ({ uuid: String(row["uuid"]), createdAtMs: Number(row["created_at_ms"]) });
