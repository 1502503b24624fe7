import type { Fetch } from "../../client/connection.ts";
import type { CellDatabase } from "../local.ts";
import type { AnyTable } from "../table.ts";

/** The part of a test runner that the suites use. Vitest, Jest and Bun have it. */

type Check = (...expected: never[]) => unknown;

/** The checks that the suites use. All of them throw, or reject after `rejects` and `resolves`. */
interface Matchers {
  toBe: Check;
  toEqual: Check;
  toMatch: Check;
  toMatchObject: Check;
  toContain: Check;
  toHaveLength: Check;
  toHaveProperty: Check;
  toBeInstanceOf: Check;
  toBeUndefined: Check;
  toThrow: Check;
}

interface Checks {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatch(expected: RegExp): void;
  toMatchObject(expected: object): void;
  toContain(expected: unknown): void;
  toHaveLength(length: number): void;
  toHaveProperty(name: string): void;
  toBeInstanceOf(expected: unknown): void;
  toBeUndefined(): void;
  toThrow(expected?: unknown): void;
}

type AsyncChecks = { [Name in keyof Checks]: (...expected: Parameters<Checks[Name]>) => Promise<void> };

/** The functions of a test runner, such as Vitest's. Pass its module, or an object with its globals. */
export interface TestRunner {
  describe: (name: string, body: () => void) => unknown;
  test: (name: string, body: () => Promise<void>, timeoutMs: number) => unknown;
  beforeAll: (body: () => Promise<void>, timeoutMs: number) => unknown;
  beforeEach: (body: () => Promise<void>, timeoutMs: number) => unknown;
  afterAll: (body: () => Promise<void>, timeoutMs: number) => unknown;
  expect: ((
    actual: unknown,
  ) => Matchers & { not: Matchers; rejects: Matchers & { not: Matchers }; resolves: Matchers }) & {
    any(constructor: unknown): unknown;
  };
}

interface Expected extends Checks {
  not: Checks;
  rejects: AsyncChecks & { not: AsyncChecks };
  resolves: AsyncChecks;
}

/** A test runner as the suites see it. */
export interface Suites {
  describe: (name: string, body: () => void) => void;
  test: (name: string, body: () => Promise<void>) => void;
  beforeAll: (body: () => Promise<void>) => void;
  beforeEach: (body: () => Promise<void>) => void;
  afterAll: (body: () => Promise<void>) => void;
  expect: ((actual: unknown) => Expected) & { any(constructor: unknown): unknown };
}

/** The suite has thousands of statements, and no test depends on the speed of the machine. */
const TIMEOUT_MS = 120_000;

export function suitesOf(runner: TestRunner): Suites {
  const { describe, test, beforeAll, beforeEach, afterAll, expect } = runner;
  return {
    describe: (name, body) => void describe(name, body),
    test: (name, body) => void test(name, body, TIMEOUT_MS),
    beforeAll: (body) => void beforeAll(body, TIMEOUT_MS),
    beforeEach: (body) => void beforeEach(body, TIMEOUT_MS),
    afterAll: (body) => void afterAll(body, TIMEOUT_MS),
    expect: expect as unknown as Suites["expect"],
  };
}

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

/** Deadlines that every machine meets, because no test depends on its speed. */
const PATIENCE_MS = 60_000;

export const patientClient = { attemptMs: PATIENCE_MS, deadlineMs: PATIENCE_MS };

export const patientCell = {
  beginDeadlineMs: PATIENCE_MS,
  preflightDeadlineMs: PATIENCE_MS,
  decideDeadlineMs: PATIENCE_MS,
};
