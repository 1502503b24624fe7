import { sql } from "drizzle-orm";
import { bigserial, pgTable, serial, text } from "drizzle-orm/pg-core";
import { claimable } from "../../../src/users/cell/index.ts";
import type { Orm } from "./orm.ts";

/**
 * The application makes the ids. No local constraint keeps names unique: only the coordinator does, also
 * within a cell.
 */
export const users = pgTable("users", {
  id: text("id").primaryKey(),
  username: text("username").notNull(),
  email: text("email"),
});
/** The database makes the ids. */
export const organizations = pgTable("organizations", {
  id: serial("id").primaryKey(),
  path: text("path").notNull(),
});
/**
 * What each local transaction did, written in the same transaction. An entry exists exactly if the
 * transaction was saved.
 */
export const journal = pgTable("journal", {
  op: text("op").primaryKey(),
  seq: bigserial("seq", { mode: "number" }).notNull(),
  kind: text("kind", { enum: ["sign_up", "rename", "delete"] }).notNull(),
  userId: text("user_id").notNull(),
  username: text("username"),
});
/** A duplicate name is refused at COMMIT, not before. */
export const once = pgTable("once", { name: text("name").notNull() });

const statements = [
  "CREATE TABLE users (id text PRIMARY KEY, username text NOT NULL, email text)",
  "CREATE TABLE organizations (id serial PRIMARY KEY, path text NOT NULL)",
  "CREATE TABLE journal (op text PRIMARY KEY, seq bigserial NOT NULL, " +
    "kind text NOT NULL, user_id text NOT NULL, username text)",
  "CREATE TABLE once (name text NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED)",
];

export async function createTables(orm: Orm): Promise<void> {
  for (const statement of statements) await orm.execute(sql.raw(statement));
}

export const claimables = [
  claimable(users, {
    source: "RAILS_TABLE_USERS",
    subject: { type: "USER", id: "id" },
    attributes: { username: "USERNAMES", email: "EMAILS" },
  }),
  claimable(organizations, {
    source: "RAILS_TABLE_ORGANIZATIONS",
    subject: { type: "ORGANIZATION", id: "id" },
    attributes: { path: "ORGANIZATION_PATH" },
  }),
];
