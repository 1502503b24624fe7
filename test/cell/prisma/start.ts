import { PrismaPg } from "@prisma/adapter-pg";
import { Pool } from "pg";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import type { Values } from "../../../src/cell/conformance/target.ts";
import { PrismaClient } from "./generated/client.ts";

/** An empty database, and a Prisma client of it. */
export interface PrismaDatabase {
  prisma: PrismaClient;
  connectionString: string;
  /** Runs a statement on a connection of its own. */
  query: (statement: string) => Promise<Values[]>;
  stop: () => Promise<void>;
}

/** Databases on one server, which is stopped with the last of them, and started again for the next. */
export class PrismaServer {
  #server: Promise<DatabaseServer> | undefined;
  #users = 0;

  open = async (): Promise<PrismaDatabase> => {
    this.#server ??= startPostgres();
    this.#users += 1;
    const server = await this.#server;
    const connectionString = server.url(await server.createDatabase());
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 10 }) });
    const pool = new Pool({ connectionString, max: 2 });
    return {
      prisma,
      connectionString,
      query: async (statement) => (await pool.query<Values>(statement)).rows,
      stop: async () => {
        await prisma.$disconnect();
        await pool.end();
        this.#users -= 1;
        if (this.#users > 0) return;
        this.#server = undefined;
        await server.stop();
      },
    };
  };
}
