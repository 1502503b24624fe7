import { getTableName, sql } from "drizzle-orm";
import {
  bigint,
  index,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uuid,
  type PgDatabase,
  type PgQueryResultHKT,
} from "drizzle-orm/pg-core";
import type { Batch } from "../../client/api-types.ts";
import type { SourceRow } from "../changes.ts";

export type Orm = PgDatabase<PgQueryResultHKT>;

// The cell's own tables. Add them to your application's migrations, or call `install()` once.

/**
 * A lease whose rows are saved, but which is not known to be committed yet; or a fence in place of a stale
 * lease.
 */
export const outstandingLeases = pgTable(
  "leasehold_outstanding_leases",
  {
    uuid: uuid("uuid").primaryKey(),
    state: text("state", { enum: ["saved", "fenced"] })
      .notNull()
      .default("saved"),
    sources: jsonb("sources").$type<readonly SourceRow[]>().notNull(),
    deferred: jsonb("deferred").$type<Batch>(),
    createdAt: timestamp("created_at", { withTimezone: true, precision: 3 })
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [index("leasehold_outstanding_leases_created").on(table.createdAt)],
);

/** Rows whose claims may be wrong. The next verification repairs them first. */
export const verificationQueue = pgTable(
  "leasehold_verification_queue",
  {
    sourceType: text("source_type").notNull(),
    sourceId: text("source_id").notNull(),
    leaseUuid: uuid("lease_uuid").notNull(),
    queuedAt: timestamp("queued_at", { withTimezone: true, precision: 3 })
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [primaryKey({ columns: [table.sourceType, table.sourceId] })],
);

/** The saved cursor of verification. */
export const verificationProgress = pgTable("leasehold_verification_progress", {
  name: text("name").primaryKey(),
  progress: text("progress").notNull(),
  savedAt: timestamp("saved_at", { withTimezone: true, precision: 3 })
    .notNull()
    .default(sql`clock_timestamp()`),
});

/** How far the cell's ledger had got when it answered, by instance of the ledger. */
export const ledgerHistory = pgTable(
  "leasehold_ledger_history",
  {
    cell: text("cell").notNull(),
    incarnation: bigint("incarnation", { mode: "number" }).notNull(),
    position: bigint("position", { mode: "number" }).notNull(),
    savedAt: timestamp("saved_at", { withTimezone: true, precision: 3 })
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [primaryKey({ columns: [table.cell, table.incarnation] })],
);

/** The names of the tables above. */
export const ownTables = [outstandingLeases, verificationQueue, verificationProgress, ledgerHistory].map(
  (table) => getTableName(table),
);

/** The same tables as SQL, for hand-written migrations. */
export const migration = [
  `CREATE TABLE IF NOT EXISTS leasehold_outstanding_leases (
  uuid uuid PRIMARY KEY,
  state text NOT NULL DEFAULT 'saved',
  sources jsonb NOT NULL,
  deferred jsonb,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
)`,
  `CREATE INDEX IF NOT EXISTS leasehold_outstanding_leases_created
  ON leasehold_outstanding_leases (created_at)`,
  `CREATE TABLE IF NOT EXISTS leasehold_verification_queue (
  source_type text NOT NULL,
  source_id text NOT NULL,
  lease_uuid uuid NOT NULL,
  queued_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (source_type, source_id)
)`,
  `CREATE TABLE IF NOT EXISTS leasehold_verification_progress (
  name text PRIMARY KEY,
  progress text NOT NULL,
  saved_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
)`,
  `CREATE TABLE IF NOT EXISTS leasehold_ledger_history (
  cell text NOT NULL,
  incarnation bigint NOT NULL,
  position bigint NOT NULL,
  saved_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (cell, incarnation)
)`,
] as const;
