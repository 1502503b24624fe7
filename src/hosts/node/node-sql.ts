import type { DatabaseSync } from "node:sqlite";
import type { Sql, SqlValue, Synchronous } from "../../coordinator/kernel/ports.ts";
import type { WritePoint } from "../../coordinator/kernel/write-points.ts";
import { SqliteDatabase } from "./sqlite-database.ts";

/**
 * The Sql port over node:sqlite, for one instance of an object. After `revoke`, the instance has no storage.
 */
export class NodeSql implements Sql {
  readonly #database: SqliteDatabase;
  #revoked = false;

  constructor(database: SqliteDatabase | DatabaseSync = new SqliteDatabase()) {
    this.#database = database instanceof SqliteDatabase ? database : new SqliteDatabase(database);
  }

  get database(): DatabaseSync {
    return this.#database.connection;
  }

  all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    this.#check();
    return this.#database.all<Row>(statement, ...bindings);
  }

  transaction<T>(_points: readonly WritePoint[], work: () => Synchronous<T>): T {
    this.#check();
    return this.#database.transaction(work);
  }

  /** Resolves at once, because the output gate of the object holds back what needs to wait. */
  async flush(): Promise<void> {
    this.#check();
  }

  sizeBytes(): number {
    this.#check();
    return this.#database.sizeBytes();
  }

  revoke(): void {
    this.#revoked = true;
  }

  protected get isInTransaction(): boolean {
    return this.#database.isInTransaction;
  }

  #check(): void {
    if (this.#revoked) throw new Error("the instance has ended: it has no storage");
  }
}
