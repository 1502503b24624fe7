import type { SQL } from "drizzle-orm";
import { drizzle, type DrizzleD1Database } from "drizzle-orm/d1";
import { SQLiteAsyncDialect } from "drizzle-orm/sqlite-core";
import { ask } from "../kernel/ask.ts";
import { ok, refused, type Result, type Refusal } from "../kernel/refusal.ts";
import type { Env } from "../env.ts";
import { defaultRuntime, type Runtime } from "../runtime.ts";

export type Orm = DrizzleD1Database;

/** What is used of D1 itself. */
interface Client {
  prepare(sql: string): { bind(...values: unknown[]): unknown };
  batch(statements: readonly unknown[]): Promise<{ results: Record<string, unknown>[] }[]>;
}

const dialect = new SQLiteAsyncDialect();

/**
 * Runs statements in one transaction, and returns the rows of each. drizzle's own `batch` fails with
 * statements that are written in SQL.
 */
export async function runBatch(orm: Orm, statements: readonly SQL[]): Promise<Record<string, unknown>[][]> {
  const { $client: client } = orm as unknown as { $client: Client };
  const answers = await client.batch(
    statements.map((statement) => {
      const { sql, params } = dialect.sqlToQuery(statement);
      return client.prepare(sql).bind(...params);
    }),
  );
  return answers.map(({ results }) => results);
}

interface Bounds {
  timeoutMs: number;
  attempts: number;
}

/** D1 sometimes fails, and has stalled for a minute. So an access has at most two attempts of this length. */
export const DEFAULT_BOUNDS: Bounds = { timeoutMs: 10_000, attempts: 2 };
/**
 * D1 allows a Worker 1,000 statements per invocation (developers.cloudflare.com/d1/platform/limits). Each
 * statement of a batch counts.
 */
const MAX_STATEMENTS = 1_000;
/** The pause between two attempts. It is long enough for a database that has moved to be found again. */
const PAUSE_MS = 100;

/** Statements that an instance may still run. */
export interface Statements {
  left: number;
}

/**
 * The only access to D1. Every access is limited in time and returns a result. A failed access is tried once
 * more, so all work must be idempotent, even if the first attempt was carried out. Each request or run makes
 * its own instance, which doesn't ask D1 again after a stall.
 */
export class Database {
  readonly #orm: Orm;
  readonly #bounds: Bounds;
  readonly #runtime: Runtime;
  #stalled = false;
  readonly #statements: Statements = { left: MAX_STATEMENTS };

  constructor(env: Env, bounds: Partial<Bounds> = {}, runtime = defaultRuntime) {
    this.#orm = drizzle(env.DB);
    this.#bounds = { ...DEFAULT_BOUNDS, ...bounds };
    this.#runtime = runtime;
  }

  /** The statements that this instance may still run. Failed attempts count. */
  get statementsLeft(): number {
    return this.#statements.left;
  }

  /** Keeps statements for one later access, so that other accesses cannot use them up. */
  reserve(count: number): Statements {
    this.#statements.left -= count;
    return { left: count };
  }

  /**
   * Runs one access. `name` identifies it in the log.
   *
   * @param count the number of statements that the access runs
   * @param statements those that it may use
   */
  async run<T>(
    name: string,
    work: (orm: Orm) => Promise<T>,
    count = 1,
    statements = this.#statements,
  ): Promise<Result<T>> {
    const { timeoutMs, attempts } = this.#bounds;
    const { clock, log } = this.#runtime;
    let cause = this.#stalled
      ? "it did not answer an earlier access in time"
      : "the statements of this invocation are used up";
    for (let attempt = 1; attempt <= attempts && !this.#stalled; attempt += 1) {
      if (statements.left < count) break;
      statements.left -= count;
      if (attempt > 1) await new Promise<void>((resume) => void clock.after(PAUSE_MS, resume));
      const answer = await ask(clock, timeoutMs, () => outcomeOf(work(this.#orm)));
      if (answer.kind === "ok") return ok(answer.value);
      // A stall affects all queries at once, so later queries don't wait for it again.
      if (answer.kind === "unknown" && attempt === attempts) this.#stalled = true;
      cause = answer.kind === "unknown" ? answer.cause : answer.refusal.detail;
      log("database_failed", { name, attempt, cause });
    }
    const detail = `the projection in D1 cannot be reached: ${cause}`;
    return refused("UNAVAILABLE", detail, { retryAfterMs: 1_000 });
  }
}

async function outcomeOf<T>(work: Promise<T>): Promise<Result<T>> {
  try {
    return ok(await work);
  } catch (error) {
    return refused("UNAVAILABLE", messageOf(error));
  }
}

/** The message of D1 itself. The error of drizzle around it repeats the bound values, which contain names. */
export function messageOf(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause !== undefined) inner = inner.cause;
  return withoutQuotes(inner instanceof Error ? inner.message : String(inner));
}

/** The longest text of a failure that is stored and logged. */
const MAX_CHARS = 200;

/** The cause of a failure of a peer or of D1, short enough for a column. */
export const causeOf = (failure: { refusal: Refusal } | { cause: string }): string =>
  withoutQuotes("refusal" in failure ? failure.refusal.detail : failure.cause);

/** Runtime errors quote values, which may be names. So the text is cut at the first quotation mark. */
export const withoutQuotes = (text: string): string => (text.split('"')[0] ?? "").trim().slice(0, MAX_CHARS);

/**
 * A row for a bulk statement. D1 binds at most 100 values per statement, so all rows are bound as one JSON
 * array.
 */
export interface JsonRow {
  json: string;
}

/**
 * The characters per statement. D1 limits a bound value to 2 MB, and a character takes up to 3 bytes. A
 * longer row goes into a statement of its own.
 */
const STATEMENT_CHARS = 500_000;

/** Groups rows, in order, so that each group fits into one statement. */
export function inStatements<Row extends JsonRow>(rows: readonly Row[]): [Row, ...Row[]][] {
  const groups: [Row, ...Row[]][] = [];
  let room = 0;
  for (const row of rows) {
    const group = groups.at(-1);
    if (group === undefined || row.json.length > room) {
      groups.push([row]);
      room = STATEMENT_CHARS - row.json.length;
    } else {
      group.push(row);
      room -= row.json.length;
    }
  }
  return groups;
}

export const jsonArray = (rows: readonly JsonRow[]): string => `[${rows.map(({ json }) => json).join(",")}]`;
