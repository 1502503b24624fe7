import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { migrations } from "./migrations.ts";

type Row = Record<string, unknown>;

/** The parts of D1's answer that are about the statement. */
interface Answer {
  success: true;
  results: Row[];
  meta: { changes: number; size_after: number };
}

/**
 * The part of D1's interface that drizzle uses, over a database in memory with the tables of the projection.
 */
export class SqliteD1 {
  readonly #database = new DatabaseSync(":memory:");

  constructor() {
    for (const migration of migrations) this.#database.exec(migration);
  }

  prepare(sql: string): Statement {
    return new Statement(this.#database, sql, []);
  }

  /** Runs all statements in one transaction. */
  async batch(statements: readonly Statement[]): Promise<Answer[]> {
    this.#database.exec("BEGIN");
    try {
      const answers = statements.map((statement) => statement.execute());
      this.#database.exec("COMMIT");
      return answers;
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    this.#database.close();
  }
}

class Statement {
  readonly #database: DatabaseSync;
  readonly #sql: string;
  readonly #values: readonly SQLInputValue[];

  constructor(database: DatabaseSync, sql: string, values: readonly SQLInputValue[]) {
    this.#database = database;
    this.#sql = sql;
    this.#values = values;
  }

  bind(...values: SQLInputValue[]): Statement {
    return new Statement(this.#database, this.#sql, values);
  }

  async all(): Promise<Answer> {
    return this.execute();
  }

  async run(): Promise<Answer> {
    return this.execute();
  }

  async raw(): Promise<unknown[][]> {
    return this.execute().results.map((row) => Object.values(row));
  }

  async first(column?: string): Promise<unknown> {
    const [row] = this.execute().results;
    if (row === undefined) return null;
    return column === undefined ? row : (row[column] ?? null);
  }

  execute(): Answer {
    const before = this.#changes();
    const results = this.#database.prepare(this.#sql).all(...this.#values);
    return { success: true, results, meta: { changes: this.#changes() - before, size_after: this.#size() } };
  }

  #size(): number {
    const [pages, free, bytes] = ["page_count", "freelist_count", "page_size"].map((name) =>
      Number(this.#database.prepare(`PRAGMA ${name}`).get()?.[name]),
    );
    return ((pages ?? 0) - (free ?? 0)) * (bytes ?? 0);
  }

  #changes(): number {
    return Number(this.#database.prepare("SELECT total_changes() AS n").get()?.["n"]);
  }
}
