import { DatabaseSync } from "node:sqlite";
import type { LocalLease, LocalLeases } from "../src/users/cell/reconcile.ts";

const schema = `
  PRAGMA busy_timeout = 10000;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS outstanding_lease (
    uuid TEXT PRIMARY KEY, created_at_ms INTEGER NOT NULL, is_fence INTEGER NOT NULL DEFAULT 0
  ) STRICT;
`;

const selectLeases = "SELECT uuid, created_at_ms FROM outstanding_lease WHERE NOT is_fence";

/**
 * The part of a database that every cell needs: transactions, and the outstanding leases for reconciliation.
 */
export abstract class LeaseDatabase implements LocalLeases {
  protected readonly database: DatabaseSync;

  /** `rows` is the SQL that creates the cell's own tables. */
  constructor(path: string, rows: string) {
    this.database = new DatabaseSync(path);
    this.database.exec(schema);
    this.database.exec(rows);
  }

  /** Runs `work` in a transaction. Rolls back and rethrows if `work` or the COMMIT throws. */
  transaction(work: () => void): void {
    this.database.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.database.exec("COMMIT");
    } catch (error) {
      if (this.database.isTransaction) this.database.exec("ROLLBACK");
      throw error;
    }
  }

  /** Must be called in the transaction that saves the lease's rows. */
  insertLease(uuid: string): void {
    this.database
      .prepare("INSERT INTO outstanding_lease (uuid, created_at_ms) VALUES (?, ?)")
      .run(uuid, Date.now());
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    const sql = `${selectLeases} AND uuid > ? ORDER BY uuid LIMIT ?`;
    return this.database.prepare(sql).all(afterUuid, limit).map(leaseOf);
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    const sql = `${selectLeases} AND uuid IN (SELECT value FROM json_each(?))`;
    return this.database.prepare(sql).all(JSON.stringify(uuids)).map(leaseOf);
  }

  async remove(uuid: string): Promise<void> {
    this.database.prepare("DELETE FROM outstanding_lease WHERE NOT is_fence AND uuid = ?").run(uuid);
  }

  /** A running local transaction locks the whole database, so this insert waits until it has ended. */
  async fence(uuid: string): Promise<"fenced" | "saved"> {
    const insert =
      "INSERT INTO outstanding_lease (uuid, created_at_ms, is_fence) VALUES (?, ?, 1) ON CONFLICT DO NOTHING";
    if (Number(this.database.prepare(insert).run(uuid, Date.now()).changes) === 1) return "fenced";
    const row = this.database.prepare("SELECT is_fence FROM outstanding_lease WHERE uuid = ?").get(uuid);
    return row?.["is_fence"] === 1 ? "fenced" : "saved";
  }

  async removeFences(olderThanMs: number): Promise<number> {
    const sql = "DELETE FROM outstanding_lease WHERE is_fence AND created_at_ms <= ?";
    return Number(this.database.prepare(sql).run(Date.now() - olderThanMs).changes);
  }

  /** The demo has no verification. The lease's row stays, so every reconciliation reports it again. */
  async queueForVerification(): Promise<void> {}

  close(): void {
    this.database.close();
  }
}

const leaseOf = (row: Record<string, unknown>): LocalLease => ({
  uuid: String(row["uuid"]),
  ageMs: Date.now() - Number(row["created_at_ms"]),
});
