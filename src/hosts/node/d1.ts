import type { SQLInputValue } from "node:sqlite";
import type { SqliteDatabase } from "./sqlite-database.ts";

type Row = Record<string, unknown>;

/** The parts of D1's answer that are about the statement. */
interface Answer {
  success: true;
  results: Row[];
  meta: { changes: number; size_after: number };
}

/** The part of D1's interface that drizzle uses. Like D1, it answers when what it has written is durable. */
export class SqliteD1 {
  readonly #database: SqliteDatabase;
  #hasEnded = false;

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  prepare(sql: string): Statement {
    this.#check();
    return new Statement(this.#database, sql, []);
  }

  /** Runs all statements in one transaction. */
  async batch(statements: readonly Statement[]): Promise<Answer[]> {
    this.#check();
    const answers = this.#database.transaction(() => statements.map((statement) => statement.execute()));
    await this.#database.flush();
    return answers;
  }

  /** Accepts no more statements. */
  end(): void {
    this.#hasEnded = true;
  }

  close(): void {
    this.end();
    this.#database.close();
  }

  #check(): void {
    if (this.#hasEnded) throw new Error("the database was closed");
  }
}

class Statement {
  readonly #database: SqliteDatabase;
  readonly #sql: string;
  readonly #values: readonly SQLInputValue[];

  constructor(database: SqliteDatabase, sql: string, values: readonly SQLInputValue[]) {
    this.#database = database;
    this.#sql = sql;
    this.#values = values;
  }

  bind(...values: SQLInputValue[]): Statement {
    return new Statement(this.#database, this.#sql, values);
  }

  async all(): Promise<Answer> {
    const answer = this.execute();
    await this.#database.flush();
    return answer;
  }

  async run(): Promise<Answer> {
    return this.all();
  }

  async raw(): Promise<unknown[][]> {
    return (await this.all()).results.map((row) => Object.values(row));
  }

  async first(column?: string): Promise<unknown> {
    const [row] = (await this.all()).results;
    if (row === undefined) return null;
    return column === undefined ? row : (row[column] ?? null);
  }

  execute(): Answer {
    const before = this.#changes();
    const results = this.#database.all<Row>(this.#sql, ...this.#values);
    const meta = { changes: this.#changes() - before, size_after: this.#database.sizeBytes() };
    return { success: true, results, meta };
  }

  #changes(): number {
    const [row] = this.#database.all<{ n: number }>("SELECT total_changes() AS n");
    return row?.n ?? 0;
  }
}
