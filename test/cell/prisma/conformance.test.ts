import * as vitest from "vitest";
import { prismaPostgres, prismaTables } from "../../../src/cell/prisma/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { partOfSuite } from "../../support/part-of-suite.ts";
import { cellConformance } from "../../../src/cell/conformance/index.ts";
import type { ConformanceDatabase } from "../../../src/cell/conformance/target.ts";
import type { Prisma } from "./generated/client.ts";
import { PrismaServer } from "./start.ts";

const server = new PrismaServer();

vitest.describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  cellConformance<Prisma.TransactionClient>(partOfSuite(vitest, 3), {
    name: "Prisma",
    dialect: "postgres",
    isConcurrent: true,
    looksAtCommit: true,
    open: async (): Promise<ConformanceDatabase<Prisma.TransactionClient>> => {
      const { prisma, query, stop } = await server.open();
      return {
        tables: prismaTables(prisma),
        database: () => prismaPostgres(prisma, { fenceWaitMs: 300 }),
        where: (_table, values) =>
          Object.fromEntries(
            Object.entries(values).map(([name, value]) => [
              name,
              Array.isArray(value) ? { in: value as unknown[] } : value,
            ]),
          ),
        query,
        write: (db, statement) => db.$executeRawUnsafe(statement),
        stop,
      };
    },
  });
});
