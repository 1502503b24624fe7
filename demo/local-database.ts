import { DatabaseSync } from "node:sqlite";
import type { LocalLease, LocalLeases } from "../src/cell/reconcile.ts";
import type { Entry, Kind } from "./entry.ts";

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, username TEXT NOT NULL COLLATE NOCASE UNIQUE) STRICT;
  CREATE TABLE IF NOT EXISTS routes (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL COLLATE NOCASE UNIQUE, kind TEXT NOT NULL, user_id INTEGER REFERENCES users (id)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS outstanding_leases (uuid TEXT PRIMARY KEY, created_at_ms INTEGER NOT NULL) STRICT;
`;

/** A cell's own database: its rows, and the leases that it saved something under and has not seen committed. */
export class LocalDatabase implements LocalLeases {
  readonly #database: DatabaseSync;
  #lastId: number;

  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    this.#database.exec(schema);
    this.#lastId = this.#number("SELECT max((SELECT coalesce(max(id), 0) FROM users), (SELECT coalesce(max(id), 0) FROM routes)) AS value");
  }

  /** As from a sequence: known before the row is written, and never given twice, so that a lease can name its source. */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
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

  insert({ kind, name, routeId, userId }: Entry): void {
    if (userId !== undefined) this.#run("INSERT INTO users (id, username) VALUES (?, ?)", userId, name);
    this.#run("INSERT INTO routes (id, path, kind, user_id) VALUES (?, ?, ?, ?)", routeId, name, kind, userId ?? null);
  }

  delete({ routeId, userId }: Entry): void {
    this.#run("DELETE FROM routes WHERE id = ?", routeId);
    if (userId !== undefined) this.#run("DELETE FROM users WHERE id = ?", userId);
  }

  rename({ routeId, userId }: Entry, name: string): void {
    this.#run("UPDATE routes SET path = ? WHERE id = ?", name, routeId);
    if (userId !== undefined) this.#run("UPDATE users SET username = ? WHERE id = ?", name, userId);
  }

  entries(): Entry[] {
    const rows = this.#database.prepare("SELECT id, path, kind, user_id FROM routes ORDER BY id").all();
    return rows.map(({ id, path, kind, user_id: userId }) => ({
      kind: kind as Kind,
      name: String(path),
      routeId: Number(id),
      userId: userId === null ? undefined : Number(userId),
    }));
  }

  /** In the transaction of the rows that the lease is for. */
  insertLease(uuid: string): void {
    this.#run("INSERT INTO outstanding_leases (uuid, created_at_ms) VALUES (?, ?)", uuid, Date.now());
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    const sql = "SELECT uuid, created_at_ms FROM outstanding_leases WHERE uuid > ? ORDER BY uuid LIMIT ?";
    return this.#database.prepare(sql).all(afterUuid, limit).map(leaseOf);
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    const sql = "SELECT uuid, created_at_ms FROM outstanding_leases WHERE uuid IN (SELECT value FROM json_each(?))";
    return this.#database.prepare(sql).all(JSON.stringify(uuids)).map(leaseOf);
  }

  async remove(uuid: string): Promise<void> {
    this.#run("DELETE FROM outstanding_leases WHERE uuid = ?", uuid);
  }

  close(): void {
    this.#database.close();
  }

  #run(sql: string, ...values: (string | number | null)[]): void {
    this.#database.prepare(sql).run(...values);
  }

  #number(sql: string): number {
    return Number(this.#database.prepare(sql).get()?.["value"]);
  }
}

const leaseOf = (row: Record<string, unknown>): LocalLease => ({ uuid: String(row["uuid"]), createdAtMs: Number(row["created_at_ms"]) });
