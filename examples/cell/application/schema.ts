/** The application's tables, and the columns whose values are unique across all cells. */
import { sql, type Column, type SQL } from "drizzle-orm";
import { integer, pgTable, serial, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";
import { claimable } from "leasehold/cell";
import type types from "../leasehold.types.json";

/** From now on, only the names of this application's types compile. */
declare module "leasehold/client" {
  interface Register {
    types: typeof types;
  }
}

/**
 * The tables keep the unique indexes that they had before there were several cells. The coordinator keeps
 * names unique also within a cell, but an index refuses a name of the same cell without a call, and protects
 * rows that are written past the SDK.
 */
const lower = (column: Column): SQL => sql`lower(${column})`;

export const people = pgTable(
  "people",
  {
    id: serial("id").primaryKey(),
    handle: text("handle").notNull(),
    createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
  },
  (table) => [uniqueIndex("people_handle").on(lower(table.handle))],
);

export const emails = pgTable(
  "emails",
  {
    id: serial("id").primaryKey(),
    personId: integer("person_id")
      .notNull()
      .references(() => people.id),
    email: text("email").notNull(),
  },
  (table) => [uniqueIndex("emails_email").on(lower(table.email))],
);

/** Each person may have one. */
export const stores = pgTable(
  "stores",
  {
    id: serial("id").primaryKey(),
    personId: integer("person_id")
      .notNull()
      .references(() => people.id),
    name: text("name").notNull(),
  },
  (table) => [
    uniqueIndex("stores_person").on(table.personId),
    uniqueIndex("stores_name").on(lower(table.name)),
  ],
);

export const statements = [
  `CREATE TABLE IF NOT EXISTS people (
    id serial PRIMARY KEY, handle text NOT NULL, created_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE TABLE IF NOT EXISTS emails (
    id serial PRIMARY KEY, person_id integer NOT NULL REFERENCES people, email text NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS stores (
    id serial PRIMARY KEY, person_id integer NOT NULL REFERENCES people, name text NOT NULL)`,
  "CREATE UNIQUE INDEX IF NOT EXISTS people_handle ON people (lower(handle))",
  "CREATE UNIQUE INDEX IF NOT EXISTS emails_email ON emails (lower(email))",
  "CREATE UNIQUE INDEX IF NOT EXISTS stores_person ON stores (person_id)",
  "CREATE UNIQUE INDEX IF NOT EXISTS stores_name ON stores (lower(name))",
];

export const claimables = [
  claimable(people, {
    source: "PEOPLE",
    subject: { type: "PERSON", id: "id" },
    attributes: { handle: "HANDLES" },
  }),
  claimable(emails, {
    source: "EMAILS",
    subject: { type: "PERSON", id: "personId" },
    attributes: { email: "EMAILS" },
  }),
  claimable(stores, {
    source: "STORES",
    subject: { type: "STORE", id: "id" },
    attributes: { name: "STORES" },
  }),
];
