/** Tests for database adapters of cells, with any test runner like Jest. Needs Node 22.13. */
import { cellDatabaseSuite, notInstalledSuite } from "./cell-database.ts";
import { localLeasesSuite, localWorldOf } from "./local-leases.ts";
import { dropTables } from "./schema.ts";
import {
  suitesOf,
  type ConformanceCoordinator,
  type ConformanceDatabase,
  type ConformanceTarget,
  type TestRunner,
} from "./target.ts";
import { transactionSuite } from "./transactions.ts";
import { verificationSuite } from "./verification/suite.ts";

export type {
  ConformanceCoordinator,
  ConformanceDatabase,
  ConformanceRows,
  ConformanceTables,
  ConformanceTarget,
  TestRunner,
  Values,
} from "./target.ts";

/**
 * Declares the tests that a database adapter must pass: its methods, the rows of leases, what it can change
 * about the transactions of two cells with a coordinator, and about verification. Call it in a file of your
 * test runner. What a cell does is the same with every adapter, so Leasehold tests it once, elsewhere.
 *
 * @param runner - The functions of Vitest, Jest or `bun:test`, or of `node:test` with Jest's `expect`. Each
 *   test has 120 s, except with `node:test`.
 * @param target - The adapter, and its databases.
 *
 * @example
 * ```ts
 * import * as vitest from "vitest";
 * import { cellConformance } from "leasehold/cell/conformance";
 * import { pg, table } from "leasehold/cell/pg";
 * import { Pool, type PoolClient } from "pg";
 *
 * // Creates an empty database, and answers its URL.
 * declare function createDatabase(): Promise<string>;
 *
 * cellConformance<PoolClient>(vitest, {
 *   name: "pg",
 *   dialect: "postgres",
 *   isConcurrent: true,
 *   open: async () => {
 *     const pool = new Pool({ connectionString: await createDatabase() });
 *     return {
 *       tables: {
 *         users: table("users"),
 *         emails: table("emails"),
 *         organizations: table("organizations"),
 *         redirects: table("redirects"),
 *         projects: table("projects"),
 *         accounts: table("accounts"),
 *         teams: table("teams"),
 *       },
 *       database: () => pg(pool, { fenceWaitMs: 300 }),
 *       where: (_, values) => values,
 *       query: async (statement) => (await pool.query(statement)).rows,
 *       write: (client, statement) => client.query(statement),
 *       stop: () => pool.end(),
 *     };
 *   },
 * });
 * ```
 */
export function cellConformance<Tx>(runner: TestRunner, target: ConformanceTarget<Tx>): void {
  const suites = suitesOf(runner);
  const databases = new ReusedDatabases(target);
  const tested = databases.target;
  const coordinator = target.coordinator ?? testCoordinator;
  suites.describe(target.name, () => {
    suites.afterAll(() => databases.stop());
    cellDatabaseSuite(suites, tested);
    localLeasesSuite(suites, "the leases in the database", () => localWorldOf(tested));
    notInstalledSuite(suites, tested, coordinator);
    transactionSuite(suites, tested, coordinator);
    verificationSuite(suites, tested);
  });
}

/** Starts the coordinator of `leasehold/testing`. */
async function testCoordinator(): Promise<ConformanceCoordinator> {
  const { startTestCoordinator } = await import("../../testing/index.ts");
  const coordinator = await startTestCoordinator();
  const { url, keys } = coordinator;
  return { url, keys, fetch: (to, init) => coordinator.fetch(to, init), stop: () => coordinator.close() };
}

/**
 * Opens a target's database only if all opened ones are in use. A suite that stops its database leaves it
 * empty for the next suite.
 */
class ReusedDatabases {
  readonly target: ConformanceTarget<unknown>;
  readonly #free: ConformanceDatabase<unknown>[] = [];
  readonly #opened: ConformanceDatabase<unknown>[] = [];

  constructor(target: ConformanceTarget<unknown>) {
    const open = async (): Promise<ConformanceDatabase<unknown>> => {
      const database = this.#free.pop() ?? (await target.open());
      if (!this.#opened.includes(database)) this.#opened.push(database);
      const stop = async (): Promise<void> => {
        await database.query(dropTables);
        this.#free.push(database);
      };
      return {
        tables: database.tables,
        database: () => database.database(),
        where: (table, values) => database.where(table, values),
        query: (statement) => database.query(statement),
        write: (db, statement) => database.write(db, statement),
        stop,
      };
    };
    this.target = { ...target, open };
  }

  async stop(): Promise<void> {
    for (const database of this.#opened) await database.stop();
  }
}
