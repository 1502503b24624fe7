import { sql } from "drizzle-orm";
import { boolean, int, mysqlTable, text, varchar } from "drizzle-orm/mysql-core";
import { mysql } from "../../../src/cell/mysql/index.ts";
import type { Dialect, Tables } from "./dialect.ts";

const NAME = 255;

const tables = {
  users: mysqlTable("users", {
    id: int("id").autoincrement().primaryKey(),
    username: varchar("username", { length: NAME }).notNull(),
    bio: text("bio"),
  }),
  emails: mysqlTable("emails", {
    id: int("id").autoincrement().primaryKey(),
    userId: int("user_id").notNull(),
    email: text("email"),
    confirmed: boolean("confirmed").notNull().default(true),
  }),
  organizations: mysqlTable("organizations", {
    id: int("id").autoincrement().primaryKey(),
    path: text("path").notNull(),
  }),
  redirects: mysqlTable("redirects", {
    id: int("id").autoincrement().primaryKey(),
    path: text("path").notNull(),
  }),
  projects: mysqlTable("projects", {
    id: varchar("id", { length: NAME }).primaryKey(),
    path: text("path").notNull(),
  }),
};

export const mysqlDialect: Dialect = {
  tables: tables as unknown as Tables,
  createTables: [
    `CREATE TABLE users (id int PRIMARY KEY AUTO_INCREMENT, username varchar(${NAME}) NOT NULL UNIQUE,
      bio text)`,
    `CREATE TABLE emails (id int PRIMARY KEY AUTO_INCREMENT, user_id int NOT NULL, email text,
      confirmed boolean NOT NULL DEFAULT true)`,
    "CREATE TABLE organizations (id int PRIMARY KEY AUTO_INCREMENT, path text NOT NULL)",
    "CREATE TABLE redirects (id int PRIMARY KEY AUTO_INCREMENT, path text NOT NULL)",
    `CREATE TABLE projects (id varchar(${NAME}) PRIMARY KEY, path text NOT NULL)`,
  ],
  database: (orm) => mysql(orm as never, { fenceWaitMs: 300 }),
  age: (uuid, seconds) =>
    sql`UPDATE leasehold_outstanding_leases
        SET created_at = created_at - INTERVAL ${seconds} SECOND WHERE uuid = ${uuid}`,
  // A deadlock undoes the transaction too. Most errors undo only their statement.
  spoil: (tx) => tx.execute(sql`ROLLBACK`),
  hasDeferredConstraints: false,
};
