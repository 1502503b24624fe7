/** The application's tables, and the columns whose values are unique across all cells. */
import { sql, type Column, type SQL } from "drizzle-orm";
import { integer, pgTable, serial, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";
import { claimable } from "leasehold/cell";

/**
 * The tables keep the unique indexes that they had before there were several cells. The coordinator keeps
 * names unique also within a cell, but an index refuses a name of the same cell without a call, and protects
 * rows that are written past the SDK.
 */
const lower = (column: Column): SQL => sql`lower(${column})`;

export const users = pgTable(
  "users",
  {
    id: serial("id").primaryKey(),
    username: text("username").notNull(),
    createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
  },
  (table) => [uniqueIndex("users_username").on(lower(table.username))],
);

export const emails = pgTable(
  "emails",
  {
    id: serial("id").primaryKey(),
    userId: integer("user_id")
      .notNull()
      .references(() => users.id),
    email: text("email").notNull(),
  },
  (table) => [uniqueIndex("emails_email").on(lower(table.email))],
);

export const routes = pgTable(
  "routes",
  {
    id: serial("id").primaryKey(),
    userId: integer("user_id")
      .notNull()
      .references(() => users.id),
    path: text("path").notNull(),
  },
  (table) => [uniqueIndex("routes_path").on(lower(table.path))],
);

export const statements = [
  `CREATE TABLE IF NOT EXISTS users (
    id serial PRIMARY KEY, username text NOT NULL, created_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE TABLE IF NOT EXISTS emails (
    id serial PRIMARY KEY, user_id integer NOT NULL REFERENCES users, email text NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS routes (
    id serial PRIMARY KEY, user_id integer NOT NULL REFERENCES users, path text NOT NULL)`,
  "CREATE UNIQUE INDEX IF NOT EXISTS users_username ON users (lower(username))",
  "CREATE UNIQUE INDEX IF NOT EXISTS emails_email ON emails (lower(email))",
  "CREATE UNIQUE INDEX IF NOT EXISTS routes_path ON routes (lower(path))",
];

export const claimables = [
  claimable(users, {
    source: "RAILS_TABLE_USERS",
    subject: { type: "USER", id: "id" },
    attributes: { username: "USERNAMES" },
  }),
  claimable(emails, {
    source: "RAILS_TABLE_EMAILS",
    subject: { type: "USER", id: "userId" },
    attributes: { email: "EMAILS" },
  }),
  claimable(routes, {
    source: "RAILS_TABLE_ROUTES",
    subject: { type: "USER", id: "userId" },
    attributes: { path: "ROUTES" },
  }),
];
