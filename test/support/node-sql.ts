import type { SqlValue, Synchronous } from "../../src/coordinator/kernel/ports.ts";
import type { WritePoint } from "../../src/coordinator/kernel/write-points.ts";
import { NodeSql as PlainSql } from "../../src/hosts/node/sqlite-database.ts";
import { checkInParts } from "./in-parts.ts";
import { checkNamed } from "./named-writes.ts";

export interface SqlCounts {
  /** The number of transactions that wrote something. */
  transactions: number;
  rowsRead: number;
}

/** The Sql port over node:sqlite. It counts statements, and its flushes may be delayed or fail. */
export class NodeSql extends PlainSql {
  readonly counts: SqlCounts = { transactions: 0, rowsRead: 0 };
  #failing: Error | undefined;
  #held: Promise<void> | undefined;

  override all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    checkNamed(statement, this.isInTransaction);
    const rows = super.all<Row>(statement, ...bindings);
    checkInParts(this.database, statement);
    this.counts.rowsRead += rows.length;
    return rows;
  }

  override transaction<T>(points: readonly WritePoint[], work: () => Synchronous<T>): T {
    const before = this.#changes();
    const value = super.transaction(points, work);
    if (this.#changes() > before) this.counts.transactions += 1;
    return value;
  }

  override async flush(): Promise<void> {
    await super.flush();
    if (this.#failing !== undefined) throw this.#failing;
    await this.#held;
  }

  /** Delays all flushes until the returned function is called. */
  holdFlushes(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return resolve;
  }

  /** Makes flushes fail from now on, although their writes are durable: the ambiguous case (B5). */
  failFlushes(): void {
    this.#failing = new Error("the disk did not answer");
  }

  #changes(): number {
    return (this.database.prepare("SELECT total_changes() AS n").get() as { n: number }).n;
  }
}
