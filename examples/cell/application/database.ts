import { sql } from "drizzle-orm";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { join } from "node:path";
import type { CellConfig } from "./cell-config.ts";
import { statements } from "./schema.ts";

/** A Drizzle database with any driver. */
export type Orm = PgDatabase<PgQueryResultHKT>;
export type Tx = Parameters<Parameters<Orm["transaction"]>[0]>[0];

export interface Database {
  orm: Orm;
  close: () => Promise<void>;
}

/** Opens the cell's database and creates the application's tables. Only the required driver is loaded. */
export async function openDatabase(config: CellConfig): Promise<Database> {
  const database =
    config.databaseUrl === undefined
      ? await openPglite(join(config.folder, "database"))
      : await openPostgres(config.databaseUrl);
  for (const statement of statements) await database.orm.execute(sql.raw(statement));
  return database;
}

async function openPglite(folder: string): Promise<Database> {
  const [{ PGlite }, { drizzle }] = await Promise.all([
    import("@electric-sql/pglite"),
    import("drizzle-orm/pglite"),
  ]);
  const pglite = await PGlite.create(folder);
  return { orm: drizzle(pglite) as unknown as Orm, close: () => pglite.close() };
}

async function openPostgres(url: string): Promise<Database> {
  const [{ Pool }, { drizzle }] = await Promise.all([import("pg"), import("drizzle-orm/node-postgres")]);
  const pool = new Pool({ connectionString: url });
  // If the server stops, idle and waiting connections emit errors. Without a listener, they would end this
  // process.
  pool.on("error", () => {});
  pool.on("connect", (connection) => connection.on("error", () => {}));
  return { orm: drizzle(pool) as unknown as Orm, close: () => pool.end() };
}
