import { bigint, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { claimable } from "../../src/cell/claimable.ts";

/** The cell whose table it is. */
export const CELL = "1";

const routes = pgTable("routes", {
  id: bigint("id", { mode: "number" }).primaryKey(),
  path: text("path").notNull(),
  updatedAt: timestamp("updated_at", { withTimezone: true }).notNull().defaultNow(),
});

/** As `bench/growth` fills claims: the row's id is the group's too. */
export const claimableRoutes = claimable(routes, {
  source: "RAILS_TABLE_ROUTES",
  subject: { type: "GROUP", id: "id" },
  changedAt: "updatedAt",
  attributes: { path: "ROUTES" },
});

export const MAKE_ROUTES =
  "CREATE TABLE routes (id bigint PRIMARY KEY, path text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now())";
