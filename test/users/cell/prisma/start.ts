import { PrismaPg } from "@prisma/adapter-pg";
import { Pool } from "pg";
import type { Values } from "../../../../src/users/cell/conformance/target.ts";
import { PrismaClient } from "./generated/client.ts";

/** An empty database, and a Prisma client of it. */
export interface PrismaDatabase {
  prisma: PrismaClient;
  connectionString: string;
  /** Runs a statement on a connection of its own. */
  query: (statement: string) => Promise<Values[]>;
  stop: () => Promise<void>;
}

/** Connects to an empty database. */
export function prismaDatabase(connectionString: string): PrismaDatabase {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 10 }) });
  const pool = new Pool({ connectionString, max: 2 });
  return {
    prisma,
    connectionString,
    query: async (statement) => (await pool.query<Values>(statement)).rows,
    stop: async () => {
      await prisma.$disconnect();
      await pool.end();
    },
  };
}
