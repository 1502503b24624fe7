import { DatabaseSync } from "node:sqlite";
import type { Sql, SqlValue, Synchronous } from "../core/ports.ts";
import type { WritePoint } from "../core/write-points.ts";

/**
 * The Sql port over node:sqlite, for one instance of an object. After `revoke`, the instance has no storage.
 */
export class NodeSql implements Sql {
  readonly database: DatabaseSync;
  #revoked = false;
  #isInTransaction = false;

  constructor(database: DatabaseSync = new DatabaseSync(":memory:")) {
    this.database = database;
  }

  all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    this.#check();
    const { text, values } = inOrder(statement, bindings);
    return this.database.prepare(text).all(...values) as Row[];
  }

  transaction<T>(_points: readonly WritePoint[], work: () => Synchronous<T>): T {
    this.#check();
    this.database.exec("BEGIN");
    this.#isInTransaction = true;
    try {
      const value = work();
      this.database.exec("COMMIT");
      return value;
    } catch (error) {
      this.database.exec("ROLLBACK");
      throw error;
    } finally {
      this.#isInTransaction = false;
    }
  }

  /** A database in memory has nothing to flush. */
  async flush(): Promise<void> {
    this.#check();
  }

  sizeBytes(): number {
    this.#check();
    return databaseSize(this.database);
  }

  revoke(): void {
    this.#revoked = true;
  }

  protected get isInTransaction(): boolean {
    return this.#isInTransaction;
  }

  #check(): void {
    if (this.#revoked) throw new Error("the instance has ended: it has no storage");
  }
}

/**
 * Gives every `?1` of a statement a value of its own, because Node 22.19 and older cannot bind numbered
 * parameters. A statement has either only numbered ones or none.
 */
function inOrder(
  statement: string,
  bindings: readonly SqlValue[],
): { text: string; values: readonly SqlValue[] } {
  const numbers = [...statement.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number));
  if (numbers.length === 0) return { text: statement, values: bindings };
  return {
    text: statement.replaceAll(/\?\d+/g, "?"),
    values: numbers.map((number) => bindings[number - 1] ?? null),
  };
}

/** The size of a database without free pages, as a Durable Object reports it. */
export function databaseSize(database: DatabaseSync): number {
  const [row] = database
    .prepare(
      `SELECT (page_count - freelist_count) * page_size AS bytes
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
    )
    .all() as { bytes: number }[];
  return row?.bytes ?? 0;
}
