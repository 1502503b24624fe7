import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Role } from "../core/directory/directory.ts";
import type { LeaseState } from "../core/messages.ts";

/*
 * The fleet record in D1: copies, made by the cron, of what the ledgers and the directory hold. Nothing here decides anything, and all of
 * it can be made again from an empty database. The generated SQL adds STRICT and WITHOUT ROWID by hand: drizzle has no words for them.
 */

/** The registered cells, and how far each one's ledger is copied. */
export const cells = sqliteTable("cells", {
  cellId: text("cell_id").notNull().primaryKey(),
  name: text("name").notNull(),
  address: text("address").notNull(),
  createdAtMs: integer("created_at_ms").notNull(),
  updatedAtMs: integer("updated_at_ms").notNull(),
  /** Every change of the ledger up to here is in `leases`. Moves only in the transaction that writes them. */
  pulledPosition: integer("pulled_position").notNull().default(0),
  /** When a pull last reached the ledger's end: `leases` is not older than that. */
  lastPulledAtMs: integer("last_pulled_at_ms"),
  /** What the last run could not do with this cell; NULL when all went well. */
  lastError: text("last_error"),
});

/** The keys that were minted; not the keys themselves. */
export const keys = sqliteTable(
  "keys",
  {
    keyId: text("key_id").notNull().primaryKey(),
    /** The directory's; the largest one here is how far its keys are copied. */
    position: integer("position").notNull(),
    role: text("role").$type<Role>().notNull(),
    cellId: text("cell_id"),
    note: text("note"),
    createdAtMs: integer("created_at_ms").notNull(),
    expiresAtMs: integer("expires_at_ms").notNull(),
    revokedAtMs: integer("revoked_at_ms"),
  },
  (table) => [index("keys_by_position").on(table.position)],
);

/**
 * The leases of all cells: outstanding ones, and decided ones while they are history. The key orders a cell's leases by when they began and
 * never changes, so that pruning is a key range. The one index holds outstanding leases only: a lease that was decided before its first pull
 * never enters it.
 */
export const leases = sqliteTable(
  "leases",
  {
    cellId: text("cell_id").notNull(),
    createdPosition: integer("created_position").notNull(),
    uuid: text("uuid").notNull(),
    state: text("state").$type<LeaseState>().notNull(),
    /** Of the change that this row shows; only a larger one overwrites it. */
    position: integer("position").notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
    decidedAtMs: integer("decided_at_ms"),
    decidedBy: text("decided_by"),
    reason: text("reason"),
    creates: integer("creates").notNull(),
    destroys: integer("destroys").notNull(),
    replaces: integer("replaces").notNull(),
    missing: integer("missing").notNull(),
    /** The ops as the ledger stores them; NULL once decided, because history keeps no names. */
    payload: text("payload"),
  },
  (table) => [
    primaryKey({ columns: [table.cellId, table.createdPosition] }),
    index("leases_outstanding")
      .on(table.createdAtMs, table.cellId, table.createdPosition)
      .where(sql`state = 'GRANTED'`),
    check("leases_state", sql`state IN ('GRANTED', 'COMMITTED', 'ROLLED_BACK')`),
    check("leases_no_names", sql`state = 'GRANTED' OR payload IS NULL`),
  ],
);

/** One row per run of the cron: its heartbeat. A run that was killed has no end. */
export const cronRuns = sqliteTable(
  "cron_runs",
  {
    startedAtMs: integer("started_at_ms").notNull(),
    /** Runs may overlap and be doubled, so a time does not name one. */
    runId: text("run_id").notNull(),
    scheduledAtMs: integer("scheduled_at_ms").notNull(),
    finishedAtMs: integer("finished_at_ms"),
    cellsPulled: integer("cells_pulled").notNull().default(0),
    cellsFailed: integer("cells_failed").notNull().default(0),
    leasesUpserted: integer("leases_upserted").notNull().default(0),
    leasesPruned: integer("leases_pruned").notNull().default(0),
    error: text("error"),
  },
  (table) => [primaryKey({ columns: [table.startedAtMs, table.runId] })],
);
