import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Credential } from "../auth/principal.ts";
import type { AuditAction } from "../capabilities/audit/audit.ts";
import type { GrowthCopy } from "../capabilities/growth/messages.ts";
import type { Operation } from "../capabilities/operations/operations.ts";
import type { Role } from "../kernel/role.ts";
import type { HistoryPoint } from "../kernel/messages.ts";
import type { TypeEntry } from "../../common/types/types.ts";
import type { Thresholds, WebhookEvent } from "../capabilities/webhooks/edge/events.ts";

/*
 * The projection in D1: copies of what the ledgers and the directory have, made by the cron. It decides
 * nothing, and can be made again from an empty database, except for the audit, the webhooks and the uses of
 * credentials. `STRICT` and `WITHOUT ROWID` are added to the generated SQL by hand, because drizzle has no
 * option for them.
 */

/** The cells, also removed ones, and when each cell's ledger was pulled. */
export const cells = sqliteTable("cells", {
  cellId: text("cell_id").notNull().primaryKey(),
  name: text("name").notNull(),
  address: text("address").notNull(),
  locationHint: text("location_hint"),
  createdAtMs: integer("created_at_ms").notNull(),
  updatedAtMs: integer("updated_at_ms").notNull(),
  /** The newest point that the ledger has told a run. It is replaced only by a run that has sent it (H5). */
  seen: text("seen", { mode: "json" }).$type<HistoryPoint>(),
  /** When a pull last reached the ledger's end. `open_leases` is at least as recent as this. */
  lastPulledAtMs: integer("last_pulled_at_ms"),
  /** When a run last requested a page. The runs begin with the cells for which this is longest ago. */
  visitedAtMs: integer("visited_at_ms"),
  /** The error of the last run with this cell; NULL if there was none. */
  lastError: text("last_error"),
  /** When its ledger last counted a contradiction, by its clock (U4). NULL: never. */
  contradictedAtMs: integer("contradicted_at_ms"),
  contradictions: integer("contradictions").notNull().default(0),
  /** When a run first saw that one. NULL: it was already old then, or there is none. */
  contradictionSeenAtMs: integer("contradiction_seen_at_ms"),
  /** When the cell was removed, as the directory has it (X5). NULL: it was not. */
  removedAtMs: integer("removed_at_ms"),
  /** When a run found that the ledger of a removed cell has nothing left to copy. NULL: it may have. */
  closedAtMs: integer("closed_at_ms"),
});

/**
 * The newest points that the runs of the cron have seen, by the name of the part: `directory`. A point is
 * replaced only after the part has confirmed that it has it.
 */
export const seenPoints = sqliteTable("seen_points", {
  part: text("part").notNull().primaryKey(),
  incarnation: integer("incarnation").notNull(),
  position: integer("position").notNull(),
});

/** The set of types of the deployment, as one row. A directory that has lost it gets it back (T6). */
export const typeSets = sqliteTable("type_sets", {
  part: text("part").notNull().primaryKey(),
  /** The position of the set in the directory. A row is replaced only by a later one. */
  position: integer("position").notNull(),
  entries: text("entries", { mode: "json" }).$type<readonly TypeEntry[]>().notNull(),
});

/** The growth that runs, or the last one, as one row. A directory that has lost it gets it back (G2). */
export const growths = sqliteTable("growths", {
  part: text("part").notNull().primaryKey(),
  /** The position of its last change in the directory. A row is replaced only by a later one. */
  position: integer("position").notNull(),
  growth: text("growth", { mode: "json" }).$type<GrowthCopy>().notNull(),
});

/** The operations that run, as one row. A directory that has lost them gets them back (A7). */
export const operationSets = sqliteTable("operation_sets", {
  part: text("part").notNull().primaryKey(),
  /** The position of the last change in the directory. A row is replaced only by a later one. */
  position: integer("position").notNull(),
  operations: text("operations", { mode: "json" }).$type<readonly Operation[]>().notNull(),
});

/** The minted and revoked keys, without the keys themselves. */
export const keys = sqliteTable(
  "keys",
  {
    keyId: text("key_id").notNull().primaryKey(),
    /**
     * The position of the last change in the directory. The largest position here is the cursor of the copy.
     */
    position: integer("position").notNull(),
    role: text("role").$type<Role>().notNull(),
    cellId: text("cell_id"),
    note: text("note"),
    createdAtMs: integer("created_at_ms").notNull(),
    expiresAtMs: integer("expires_at_ms").notNull(),
    revokedAtMs: integer("revoked_at_ms"),
  },
  (table) => [
    index("keys_by_position").on(table.position),
    index("keys_by_expiry")
      .on(table.expiresAtMs)
      .where(sql`revoked_at_ms IS NULL`),
  ],
);

/**
 * The credentials that were used: keys, certificates, and the subjects of tokens. Isolates write it, a row
 * per credential and hour, so the last use is known to the hour. Only D1 has it, and it may miss uses.
 */
export const credentialUses = sqliteTable(
  "credential_uses",
  {
    keyId: text("key_id").notNull().primaryKey(),
    kind: text("kind").$type<Credential["kind"]>().notNull(),
    role: text("role").$type<Role>().notNull(),
    cellId: text("cell_id"),
    /** The name of the authority or issuer. NULL for keys. */
    issuedBy: text("issued_by"),
    /** The name in the certificate, or the subject of the tokens. NULL for keys. */
    name: text("name"),
    /** From when on a certificate is valid. NULL for keys and tokens. */
    issuedAtMs: integer("issued_at_ms"),
    /** NULL for tokens: a subject has many of them. */
    expiresAtMs: integer("expires_at_ms"),
    firstUsedAtMs: integer("first_used_at_ms").notNull(),
    lastUsedAtMs: integer("last_used_at_ms").notNull(),
  },
  (table) => [
    index("certificates_by_expiry")
      .on(table.expiresAtMs)
      .where(sql`kind = 'certificate'`),
    check("credential_uses_kind", sql`kind IN ('key', 'certificate', 'token')`),
  ],
);

/**
 * The leases of all cells that were open when their ledger was pulled last. A lease that was decided before
 * its first pull never has a row. A row has no names: a batch may be thousands of times as large as its row.
 */
export const openLeases = sqliteTable(
  "open_leases",
  {
    cellId: text("cell_id").notNull(),
    createdPosition: integer("created_position").notNull(),
    uuid: text("uuid").notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
    creates: integer("creates").notNull(),
    destroys: integer("destroys").notNull(),
    replaces: integer("replaces").notNull(),
    missing: integer("missing").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.cellId, table.createdPosition] }),
    index("open_leases_by_age").on(table.createdAtMs, table.cellId, table.createdPosition),
  ],
);

/**
 * The audit entries of all objects, which drop their own once they are here (O2). So this table cannot be
 * made again. The key orders the entries by time. Each index finds the entries of one filter in that order.
 */
export const audit = sqliteTable(
  "audit",
  {
    atMs: integer("at_ms").notNull(),
    id: text("id").notNull(),
    /** The object that made the change: `directory`, `ledger-7` or `shard-3`. */
    part: text("part").notNull(),
    keyId: text("key_id").notNull(),
    requestId: text("request_id").notNull(),
    action: text("action").$type<AuditAction>().notNull(),
    cellId: text("cell_id"),
    target: text("target").notNull(),
    reason: text("reason"),
    before: text("before"),
    after: text("after"),
  },
  (table) => [
    primaryKey({ columns: [table.atMs, table.id] }),
    index("audit_by_key").on(table.keyId, table.atMs),
    index("audit_by_cell").on(table.cellId, table.atMs),
    index("audit_by_target").on(table.target, table.atMs),
  ],
);

/** One row per run of the cron. A run that was killed has no end. */
export const cronRuns = sqliteTable(
  "cron_runs",
  {
    startedAtMs: integer("started_at_ms").notNull(),
    /** Runs may overlap or be started twice, so the time alone doesn't identify a run. */
    runId: text("run_id").notNull(),
    scheduledAtMs: integer("scheduled_at_ms").notNull(),
    finishedAtMs: integer("finished_at_ms"),
    cellsPulled: integer("cells_pulled").notNull().default(0),
    cellsFailed: integer("cells_failed").notNull().default(0),
    leasesUpserted: integer("leases_upserted").notNull().default(0),
    error: text("error"),
    /** Every audit entry that was made before this time is in `audit`. NULL: the run could not copy all. */
    auditCopiedAtMs: integer("audit_copied_at_ms"),
  },
  (table) => [primaryKey({ columns: [table.startedAtMs, table.runId] })],
);

/**
 * The endpoints that operators are told through. Only D1 has them. The secret of an endpoint is not
 * stored: it follows from the signing secret and the id.
 */
export const webhooks = sqliteTable("webhooks", {
  webhookId: text("webhook_id").notNull().primaryKey(),
  url: text("url").notNull(),
  events: text("events", { mode: "json" }).$type<readonly WebhookEvent[]>().notNull(),
  thresholds: text("thresholds", { mode: "json" }).$type<Thresholds>().notNull(),
  forS: integer("for_s").notNull(),
  resolveS: integer("resolve_s").notNull(),
  isEnabled: integer("is_enabled", { mode: "boolean" }).notNull(),
  /** Identifies the last change by an operator. */
  version: text("version").notNull(),
  createdAtMs: integer("created_at_ms").notNull(),
  updatedAtMs: integer("updated_at_ms").notNull(),
  delivered: integer("delivered").notNull().default(0),
  failedAttempts: integer("failed_attempts").notNull().default(0),
  givenUp: integer("given_up").notNull().default(0),
  /** The first of the failed attempts since the last success. NULL: the last attempt succeeded. */
  failingSinceMs: integer("failing_since_ms"),
  lastError: text("last_error"),
});

/** What holds, or held a moment ago, for each endpoint. There is no row for what doesn't hold. */
export const webhookAlerts = sqliteTable(
  "webhook_alerts",
  {
    webhookId: text("webhook_id").notNull(),
    event: text("event").$type<WebhookEvent>().notNull(),
    /** A cell, a key or a part by its id, an authority, or `cron`. */
    subject: text("subject").notNull(),
    /** Part of the ids of both messages, so that overlapping runs make the same messages. */
    episode: text("episode").notNull(),
    state: text("state").$type<"pending" | "firing">().notNull(),
    heldSinceMs: integer("held_since_ms").notNull(),
    /** When a run first found that it no longer holds. NULL: it holds. */
    clearedSinceMs: integer("cleared_since_ms"),
    /** When a run last saw that it holds, while it is pending, or that it doesn't, while it is clearing. */
    seenAtMs: integer("seen_at_ms").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.webhookId, table.event, table.subject] })],
);

/** The messages to endpoints: those to be delivered, and the latest of those that are finished. */
export const webhookDeliveries = sqliteTable(
  "webhook_deliveries",
  {
    /** The `webhook-id` of the message, which stays the same in every attempt. */
    messageId: text("message_id").notNull().primaryKey(),
    webhookId: text("webhook_id").notNull(),
    event: text("event").$type<WebhookEvent | "test">().notNull(),
    status: text("status").$type<"firing" | "resolved" | "test">().notNull(),
    subject: text("subject").notNull(),
    body: text("body").notNull(),
    state: text("state").$type<"pending" | "delivered" | "given_up">().notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
    dueAtMs: integer("due_at_ms").notNull(),
    attempts: integer("attempts").notNull().default(0),
    /** The run that sends it now, until this time. */
    claimedBy: text("claimed_by"),
    claimedUntilMs: integer("claimed_until_ms").notNull().default(0),
    finishedAtMs: integer("finished_at_ms"),
    /** The HTTP status of the last answer. NULL: there was none. */
    httpStatus: integer("http_status"),
    lastError: text("last_error"),
  },
  (table) => [
    index("webhook_deliveries_by_time").on(table.webhookId, table.createdAtMs),
    index("webhook_deliveries_due")
      .on(table.webhookId, table.dueAtMs)
      .where(sql`state = 'pending'`),
  ],
);
