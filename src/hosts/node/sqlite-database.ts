import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import type { PartTables } from "./part-tables.ts";
import type { Sql, SqlValue, Synchronous } from "../../coordinator/kernel/ports.ts";
import type { WritePoint } from "../../coordinator/kernel/write-points.ts";

/** Makes the writes of one database durable. */
export interface Durability {
  /** Whether everything that was written so far is durable. */
  readonly isDurable: boolean;
  /** Must be called after each write, in the same turn. */
  written(): void;
  /** Resolves when everything that was written so far is durable. */
  flush(): Promise<void>;
  /** Gets each error of SQLite before it is thrown. */
  failed(error: unknown): void;
  /** Must be called once the database is closed. */
  closed(): void;
}

/** A database in memory has nothing to make durable. */
const inMemory: Durability = {
  isDurable: true,
  written: () => {},
  flush: async () => {},
  failed: () => {},
  closed: () => {},
};

/** A statement that is not known to only read counts as a write. That costs a flush of nothing. */
const WRITES = /\b(?:INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|VACUUM|REINDEX)\b/i;

/** The most prepared statements that a database keeps: more than the core has, for any number of rows. */
const MAX_STATEMENTS = 512;

interface Prepared {
  statement: StatementSync;
  /** The numbers of its parameters, in their order. Empty if they have none. */
  numbers: readonly number[];
  writes: boolean;
}

/**
 * Gives every `?1` of a statement a value of its own, because Node 22.19 and older cannot bind numbered
 * parameters. A statement has either only numbered ones or none.
 */
function prepare(prepareText: (sql: string) => StatementSync, sql: string): Prepared {
  return {
    statement: prepareText(sql.replaceAll(/\?\d+/g, "?")),
    numbers: [...sql.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number)),
    writes: WRITES.test(sql),
  };
}

/** The tables of one part of a database. */
interface DatabasePart {
  name: string;
  tables: PartTables;
}

/**
 * A SQLite database of the host, or a part of one. It keeps prepared statements, and knows what is not
 * durable yet.
 */
export class SqliteDatabase {
  readonly connection: DatabaseSync;
  readonly #durability: Durability;
  readonly #part: DatabasePart | undefined;
  /** The one that was used last is the last one. */
  readonly #statements = new Map<string, Prepared>();
  #isInTransaction = false;
  #hasWritten = false;
  #pageBytes: number | undefined;

  constructor(
    connection = new DatabaseSync(":memory:"),
    durability: Durability = inMemory,
    part?: DatabasePart,
  ) {
    this.connection = connection;
    this.#durability = durability;
    this.#part = part;
  }

  /** Whether a transaction is open in this turn. */
  get isInTransaction(): boolean {
    return this.#isInTransaction;
  }

  get isDurable(): boolean {
    return this.#durability.isDurable;
  }

  /** Whether a crash keeps a write to one of them only with all earlier writes to both. */
  sharesLogWith(other: SqliteDatabase): boolean {
    return this.connection === other.connection;
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    try {
      const { statement, numbers, writes } = this.#prepare(sql);
      const inOrder = numbers.length === 0 ? values : numbers.map((number) => values[number - 1] ?? null);
      const rows = statement.all(...inOrder) as Row[];
      if (writes) this.#wrote();
      return rows;
    } catch (error) {
      this.#durability.failed(error);
      throw error;
    }
  }

  /** Runs `work` in one transaction. If it throws, nothing of it is kept. */
  transaction<T>(work: () => T): T {
    this.#run("BEGIN");
    this.#isInTransaction = true;
    this.#hasWritten = false;
    try {
      const value = work();
      this.#run("COMMIT");
      if (this.#hasWritten) this.#durability.written();
      return value;
    } catch (error) {
      this.#rollBack();
      throw error;
    } finally {
      this.#isInTransaction = false;
    }
  }

  /** Resolves when everything that was written so far is durable. */
  flush(): Promise<void> {
    return this.#durability.flush();
  }

  /** The size in bytes of the whole file without free pages: all of its parts share the limits of one. */
  sizeBytes(): number {
    this.#pageBytes ??= this.#pragma("page_size");
    return (this.#pragma("page_count") - this.#pragma("freelist_count")) * this.#pageBytes;
  }

  /** A part only forgets its statements. */
  close(): void {
    this.#statements.clear();
    if (this.#part !== undefined) return;
    this.connection.close();
    this.#durability.closed();
  }

  /** Faster than a SELECT from `pragma_page_count`, for which SQLite prepares the pragma each time. */
  #pragma(name: "page_size" | "page_count" | "freelist_count"): number {
    const [row] = this.all<Record<typeof name, number>>(`PRAGMA ${name}`);
    return row?.[name] ?? 0;
  }

  #wrote(): void {
    if (this.#isInTransaction) this.#hasWritten = true;
    else this.#durability.written();
  }

  /** Begins or commits. */
  #run(sql: string): void {
    try {
      this.#prepare(sql).statement.run();
    } catch (error) {
      this.#durability.failed(error);
      throw error;
    }
  }

  /** SQLite has already rolled back if, for example, the disk is full. */
  #rollBack(): void {
    try {
      this.#prepare("ROLLBACK").statement.run();
    } catch {
      // The error that caused the rollback is the one to report.
    }
  }

  #prepare(sql: string): Prepared {
    const known = this.#statements.get(sql);
    const prepared = known ?? prepare((text) => this.#prepareText(text), sql);
    if (known !== undefined) this.#statements.delete(sql);
    this.#statements.set(sql, prepared);
    const [oldest] = this.#statements.keys();
    if (this.#statements.size > MAX_STATEMENTS && oldest !== undefined) this.#statements.delete(oldest);
    return prepared;
  }

  #prepareText(sql: string): StatementSync {
    return this.#part === undefined
      ? this.connection.prepare(sql)
      : this.#part.tables.prepare(sql, this.#part.name);
  }
}

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
