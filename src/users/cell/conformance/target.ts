import type { Fetch } from "../../client/connection.ts";
import type { CellDatabase } from "../local.ts";
import type { AnyTable } from "../table.ts";

/** The rows of the suite's tables. */
export interface ConformanceRows {
  users: { id: number; username: string; bio: string | null };
  emails: { id: number; owner: number; email: string | null; confirmed: boolean | number };
  organizations: { id: number; path: string };
  redirects: { id: number; path: string };
  /** The application makes the ids of this table. */
  projects: { id: string; path: string };
  /** Several rows may have the same name. Verification reads the time of their last change. */
  accounts: { id: number; username: string; bot: boolean | number; updated_at: Date | string };
  /** The ids are UUIDs, which the application makes. */
  teams: { id: string; path: string };
}

export type TableName = keyof ConformanceRows;

/** The tables of the suite as the adapter knows them: what `claimable` and the methods of `tx` are given. */
export type ConformanceTables = Readonly<Record<TableName, AnyTable>>;

/** A running coordinator with cells 1 and 2. */
export interface ConformanceCoordinator {
  url: string;
  fetch: Fetch;
  keys: { cell(id: string): string };
  stop(): Promise<void>;
}

/** The values of a row. `where` also gets arrays, for columns that must have one of several values. */
export type Values = Readonly<Record<string, unknown>>;

/** An empty database of one cell. */
export interface ConformanceDatabase<Tx> {
  tables: ConformanceTables;
  /**
   * Makes the adapter under test, with a short wait for fences. Every call stands for another process of the
   * cell.
   */
  database(): CellDatabase<Tx>;
  /** The adapter's condition for rows that have all these values. An array means any of its values. */
  where: (table: AnyTable, values: Values) => unknown;
  /**
   * Runs a statement on a connection of its own. Answers the rows, with the names of the columns in the
   * database.
   */
  query: (statement: string) => Promise<readonly Values[]>;
  /** Runs a statement within the transaction `db`, which is `tx.db`. Rejects if it fails. */
  write(db: Tx, statement: string): Promise<unknown>;
  stop: () => Promise<void>;
}

/** An adapter to test, and the few facts in which databases and drivers differ. */
export interface ConformanceTarget<Tx> {
  name: string;
  /** The SQL of the suite's own statements. MariaDB is `mysql`. */
  dialect: "postgres" | "mysql";
  /** Whether transactions can run at the same time. An embedded database may have one connection. */
  isConcurrent: boolean;
  /** Opens an empty database. The suite creates and drops the tables, and calls `stop` at the end. */
  open(): Promise<ConformanceDatabase<Tx>>;
  /**
   * Starts a coordinator for transactions and recovery. By default it is the one of `leasehold/testing`. The
   * tests of verification always use that one, because they advance its clock.
   */
  coordinator?: () => Promise<ConformanceCoordinator>;
}
