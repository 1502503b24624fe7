import { sql } from "drizzle-orm";
import { boolean, datetime, int, mysqlTable, text, varchar } from "drizzle-orm/mysql-core";
import { mysql } from "../../../../src/users/cell/mysql/index.ts";
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
    owner: int("owner").notNull(),
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
  accounts: mysqlTable("accounts", {
    id: int("id").autoincrement().primaryKey(),
    username: varchar("username", { length: NAME }).notNull(),
    bot: boolean("bot").notNull().default(false),
    updated_at: datetime("updated_at", { fsp: 3 })
      .notNull()
      .default(sql`(UTC_TIMESTAMP(3))`),
  }),
  teams: mysqlTable("teams", {
    id: varchar("id", { length: 36 }).primaryKey(),
    path: text("path").notNull(),
  }),
};

export const mysqlDialect: Dialect = {
  name: "mysql",
  tables: tables as unknown as Tables,
  database: (orm) => mysql(orm as never, { fenceWaitMs: 300 }),
};
