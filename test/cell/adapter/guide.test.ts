/** The adapter of docs/guides/write-an-adapter.md is the one that the conformance suite tests here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import postgresJs, { type TransactionSql } from "postgres";
import * as vitest from "vitest";
import { cellConformance, type Values } from "../../../src/cell/conformance/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { partOfSuite } from "../../support/part-of-suite.ts";
import { postgresJsDatabase } from "./postgres-js-database.ts";
import { tables } from "./tables.ts";

vitest.test("the guide shows this adapter", () => {
  const guide = readFileSync("docs/guides/write-an-adapter.md", "utf8");
  const adapter = readFileSync(join(import.meta.dirname, "postgres-js-database.ts"), "utf8");
  vitest.expect(guide).toContain(`\`\`\`ts\n${adapter}\`\`\``);
});

vitest.describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  let server: DatabaseServer;
  vitest.beforeAll(async () => {
    server = await startPostgres();
  });
  vitest.afterAll(() => server.stop());

  cellConformance<TransactionSql>(partOfSuite(vitest, 3), {
    name: "the guide's adapter for postgres-js",
    dialect: "postgres",
    isConcurrent: true,
    looksAtCommit: true,
    open: async () => {
      const url = server.url(await server.createDatabase());
      const sql = postgresJs(url, { max: 10, onnotice: () => {} });
      return {
        tables,
        database: () => postgresJsDatabase(sql, { fenceWaitMs: 300 }),
        where: (_table, values) => values,
        query: (statement) => sql.unsafe<Values[]>(statement),
        write: (tx, statement) => tx.unsafe(statement),
        stop: () => sql.end(),
      };
    },
  });
});
