import { boolean, integer, pgTable, serial, text, timestamp, uuid } from "drizzle-orm/pg-core";

/** Tables of an example application. */
export const tables = {
  users: pgTable("users", {
    id: serial("id").primaryKey(),
    username: text("username").notNull(),
    bio: text("bio"),
  }),
  emails: pgTable("emails", {
    id: serial("id").primaryKey(),
    owner: integer("owner").notNull(),
    email: text("email"),
    confirmed: boolean("confirmed").notNull().default(true),
  }),
  organizations: pgTable("organizations", { id: serial("id").primaryKey(), path: text("path").notNull() }),
  redirects: pgTable("redirects", { id: serial("id").primaryKey(), path: text("path").notNull() }),
  /** The application makes the ids of this table. */
  projects: pgTable("projects", { id: text("id").primaryKey(), path: text("path").notNull() }),
  accounts: pgTable("accounts", {
    id: serial("id").primaryKey(),
    username: text("username").notNull(),
    bot: boolean("bot").notNull().default(false),
    updated_at: timestamp("updated_at", { withTimezone: true }).notNull().defaultNow(),
  }),
  teams: pgTable("teams", { id: uuid("id").primaryKey(), path: text("path").notNull() }),
};
