/** A part of the conformance suite with the adapters of plain drivers, another one each day. */
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { Pool, type PoolClient } from "pg";
import * as vitest from "vitest";
import { cellConformance, type Values } from "../../../src/cell/conformance/index.ts";
import { mysql2 } from "../../../src/cell/mysql2/index.ts";
import { pg } from "../../../src/cell/pg/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startMariadb } from "../../support/databases/mariadb.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { partOfSuite } from "../../support/part-of-suite.ts";
import { tables } from "./tables.ts";

const where = (_: unknown, values: Values): Values => values;

vitest.describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  let server: DatabaseServer;
  vitest.beforeAll(async () => {
    server = await startPostgres();
  });
  vitest.afterAll(() => server.stop());

  cellConformance<PoolClient>(partOfSuite(vitest, 3), {
    name: "pg",
    dialect: "postgres",
    isConcurrent: true,
    looksAtCommit: true,
    open: async () => {
      const pool = new Pool({ connectionString: server.url(await server.createDatabase()), max: 10 });
      return {
        tables,
        database: () => pg(pool, { fenceWaitMs: 300 }),
        where,
        query: async (statement) => (await pool.query<Values>(statement)).rows,
        write: (client, statement) => client.query(statement),
        stop: () => pool.end(),
      };
    },
  });
});

vitest.describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  let server: DatabaseServer;
  vitest.beforeAll(async () => {
    server = await startMariadb();
  });
  vitest.afterAll(() => server.stop());

  cellConformance<PoolConnection>(partOfSuite(vitest, 3), {
    name: "mysql2",
    dialect: "mysql",
    isConcurrent: true,
    looksAtCommit: true,
    open: async () => {
      const pool = createPool({ uri: server.url(await server.createDatabase()), connectionLimit: 10 });
      return {
        tables,
        database: () => mysql2(pool, { fenceWaitMs: 300 }),
        where,
        query: async (statement) => (await pool.query<RowDataPacket[]>(statement))[0],
        write: (connection, statement) => connection.query(statement),
        stop: () => pool.end(),
      };
    },
  });
});
