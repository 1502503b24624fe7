import { sql } from "drizzle-orm";
import { postgres } from "../../../src/cell/postgres/index.ts";
import type { Dialect } from "./dialect.ts";
import { tables } from "./postgres-tables.ts";

export const postgresDialect: Dialect = {
  tables,
  createTables: [
    `CREATE TABLE users (id serial PRIMARY KEY,
      username text NOT NULL UNIQUE DEFERRABLE INITIALLY IMMEDIATE, bio text)`,
    `CREATE TABLE emails (id serial PRIMARY KEY, user_id integer NOT NULL, email text,
      confirmed boolean NOT NULL DEFAULT true)`,
    "CREATE TABLE organizations (id serial PRIMARY KEY, path text NOT NULL)",
    "CREATE TABLE redirects (id serial PRIMARY KEY, path text NOT NULL)",
    "CREATE TABLE projects (id text PRIMARY KEY, path text NOT NULL)",
  ],
  database: (orm) => postgres(orm as never, { fenceWaitMs: 300 }),
  age: (uuid, seconds) =>
    sql`UPDATE leasehold_outstanding_leases
        SET created_at = created_at - make_interval(secs => ${seconds}) WHERE uuid = ${uuid}`,
  spoil: (tx) => tx.execute(sql`SELECT 1 / 0`).catch(() => {}),
  hasDeferredConstraints: true,
};
