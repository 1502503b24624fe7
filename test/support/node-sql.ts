import { DatabaseSync } from "node:sqlite";
import type { Sql, SqlValue, Synchronous } from "../../src/core/ports.ts";
import type { WritePoint } from "../../src/core/write-points.ts";
import { checkNamed } from "./named-writes.ts";

export interface SqlCounts {
  /** Transactions that wrote something. */
  transactions: number;
  rowsRead: number;
}

/** The Sql port over node:sqlite. `revoke` makes a replaced instance's storage fail, as the platform does. */
export class NodeSql implements Sql {
  readonly database: DatabaseSync;
  readonly counts: SqlCounts = { transactions: 0, rowsRead: 0 };
  #revoked = false;
  #isInTransaction = false;
  #failing: Error | undefined;
  #held: Promise<void> | undefined;

  constructor(database: DatabaseSync = new DatabaseSync(":memory:")) {
    this.database = database;
  }

  all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    this.#check();
    checkNamed(statement, this.#isInTransaction);
    const rows = this.database.prepare(statement).all(...bindings) as Row[];
    this.counts.rowsRead += rows.length;
    return rows;
  }

  transaction<T>(_points: readonly WritePoint[], work: () => Synchronous<T>): T {
    this.#check();
    const before = this.#changes();
    this.database.exec("BEGIN");
    this.#isInTransaction = true;
    try {
      const value = work();
      this.database.exec("COMMIT");
      if (this.#changes() > before) this.counts.transactions += 1;
      return value;
    } catch (error) {
      this.database.exec("ROLLBACK");
      throw error;
    } finally {
      this.#isInTransaction = false;
    }
  }

  async flush(): Promise<void> {
    this.#check();
    if (this.#failing !== undefined) throw this.#failing;
    await this.#held;
  }

  /** Until the returned function is called nothing counts as durable. */
  holdFlushes(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return resolve;
  }

  /** From now on a flush fails although the write is durable: the ambiguous case. */
  failFlushes(): void {
    this.#failing = new Error("the disk did not answer");
  }

  revoke(): void {
    this.#revoked = true;
  }

  #changes(): number {
    return (this.database.prepare("SELECT total_changes() AS n").get() as { n: number }).n;
  }

  #check(): void {
    if (this.#revoked) throw new Error("this instance was replaced");
  }
}
