/** The conformance suite with plain pg and mysql2. A test file of each runner calls it. */
import { appendFileSync } from "node:fs";
import {
  cellConformance,
  type ConformanceTarget,
  type TestRunner,
  type Values,
} from "leasehold/cell/conformance";
import { mysql2 } from "leasehold/cell/mysql2";
import { pg, table } from "leasehold/cell/pg";
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { Pool, type PoolClient } from "pg";
import { createDatabase, dialects } from "./databases.ts";

const names = ["users", "emails", "organizations", "redirects", "projects", "accounts", "teams"] as const;
const tables = Object.fromEntries(names.map((name) => [name, table(name)])) as Record<
  (typeof names)[number],
  ReturnType<typeof table>
>;

const where = (_: unknown, values: Values): Values => values;

const common = { isConcurrent: true };

const withPg: ConformanceTarget<PoolClient> = {
  ...common,
  name: "pg",
  dialect: "postgres",
  open: async () => {
    const pool = new Pool({ connectionString: await createDatabase("postgres"), max: 10 });
    return {
      tables,
      database: () => pg(pool, { fenceWaitMs: 300 }),
      where,
      query: async (statement) => (await pool.query<Values>(statement)).rows,
      write: (client, statement) => client.query(statement),
      stop: () => pool.end(),
    };
  },
};

const withMysql2: ConformanceTarget<PoolConnection> = {
  ...common,
  name: "mysql2",
  dialect: "mysql",
  open: async () => {
    const pool = createPool({ uri: await createDatabase("mysql"), connectionLimit: 10 });
    return {
      tables,
      database: () => mysql2(pool, { fenceWaitMs: 300 }),
      where,
      query: async (statement) => (await pool.query<RowDataPacket[]>(statement))[0],
      write: (connection, statement) => connection.query(statement),
      stop: () => pool.end(),
    };
  },
};

/** Counts tests in a file, because every runner reports them in its own format. */
const count = (what: "declared" | "passed"): void => appendFileSync(process.env["COUNTS"] ?? "", `${what}\n`);

export function runConformance(runner: TestRunner): void {
  const counting: TestRunner = {
    ...runner,
    test: (name, body, timeoutMs) => {
      count("declared");
      const counted = async (): Promise<void> => {
        await body();
        count("passed");
      };
      return runner.test(name, counted, timeoutMs);
    },
  };
  if (dialects.includes("postgres")) cellConformance(counting, withPg);
  if (dialects.includes("mysql")) cellConformance(counting, withMysql2);
}
