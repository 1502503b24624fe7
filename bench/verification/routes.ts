import { bigint, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { claimable } from "../../src/users/cell/claimable.ts";

/** The cell that owns the table. */
export const CELL = "1";

const routes = pgTable("routes", {
  id: bigint("id", { mode: "number" }).primaryKey(),
  path: text("path").notNull(),
  updatedAt: timestamp("updated_at", { withTimezone: true }).notNull().defaultNow(),
});

/** Matches the claims that `bench/growth` fills: the row's id is also the id of the group. */
export const claimableRoutes = claimable(routes, {
  source: "RAILS_TABLE_ROUTES",
  subject: { type: "NAMESPACE", id: "id" },
  changedAt: "updatedAt",
  attributes: { path: "ROUTES" },
});

export const MAKE_ROUTES = `CREATE TABLE routes (id bigint PRIMARY KEY, path text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now())`;
