/** The application's tables, and the columns whose values are unique across all cells. */
import { integer, pgTable, serial, text, timestamp } from "drizzle-orm/pg-core";
import { claimable } from "leasehold/cell";

export const users = pgTable("users", {
  id: serial("id").primaryKey(),
  username: text("username").notNull(),
  createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
});

export const emails = pgTable("emails", {
  id: serial("id").primaryKey(),
  userId: integer("user_id")
    .notNull()
    .references(() => users.id),
  email: text("email").notNull(),
});

export const routes = pgTable("routes", {
  id: serial("id").primaryKey(),
  userId: integer("user_id")
    .notNull()
    .references(() => users.id),
  path: text("path").notNull(),
});

/**
 * There are no unique indexes, because the coordinator keeps names unique between cells and within each cell.
 */
export const statements = [
  `CREATE TABLE IF NOT EXISTS users (
    id serial PRIMARY KEY, username text NOT NULL, created_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE TABLE IF NOT EXISTS emails (
    id serial PRIMARY KEY, user_id integer NOT NULL REFERENCES users, email text NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS routes (
    id serial PRIMARY KEY, user_id integer NOT NULL REFERENCES users, path text NOT NULL)`,
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
