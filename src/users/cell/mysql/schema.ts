import { getTableName, sql } from "drizzle-orm";
import {
  bigint,
  customType,
  datetime,
  index,
  longtext,
  mysqlEnum,
  mysqlTable,
  primaryKey,
  type MySqlDatabase,
  type MySqlQueryResultHKT,
  type PreparedQueryHKTBase,
} from "drizzle-orm/mysql-core";
import type { Batch } from "../../client/api-types.ts";
import type { SourceRow } from "../changes.ts";

export type Orm = MySqlDatabase<MySqlQueryResultHKT, PreparedQueryHKTBase>;

// The cell's own tables. Add them to your application's migrations, or call `install()` once.

/** Case-insensitive, like PostgreSQL's uuid. */
const uuid = customType<{ data: string }>({
  dataType: () => "char(36) CHARACTER SET ascii COLLATE ascii_general_ci",
});

/**
 * The coordinator allows ids of 128 bytes. Compared by bytes, because the usual collations equate `a` and
 * `A`.
 */
const exactText = customType<{ data: string }>({
  dataType: () => "varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
});

/**
 * The driver parses MySQL's json, but MariaDB's is text and arrives as a string. No value is itself a string.
 */
const json = <T extends object>() =>
  customType<{ data: T; driverData: unknown }>({
    dataType: () => "json",
    toDriver: (value) => JSON.stringify(value),
    fromDriver: (stored) => (typeof stored === "string" ? (JSON.parse(stored) as T) : (stored as T)),
  });

/**
 * A `timestamp` or NOW() would be in the session's time zone, where one hour occurs twice a year. This is the
 * time of the statement, not of the transaction. A default expression needs MySQL 8.0.13 or MariaDB 10.2.
 */
const utcNow = sql`(UTC_TIMESTAMP(3))`;

/**
 * A lease whose rows are saved, but which is not known to be committed yet; or a fence in place of a stale
 * lease.
 */
export const outstandingLeases = mysqlTable(
  "leasehold_outstanding_leases",
  {
    uuid: uuid("uuid").primaryKey(),
    state: mysqlEnum("state", ["saved", "fenced"]).notNull().default("saved"),
    sources: json<readonly SourceRow[]>()("sources").notNull(),
    deferred: json<Batch>()("deferred"),
    createdAt: datetime("created_at", { fsp: 3 }).notNull().default(utcNow),
  },
  (table) => [index("leasehold_outstanding_leases_created").on(table.createdAt)],
);

/** Rows whose claims may be wrong. The next verification repairs them first. */
export const verificationQueue = mysqlTable(
  "leasehold_verification_queue",
  {
    sourceType: exactText("source_type").notNull(),
    sourceId: exactText("source_id").notNull(),
    leaseUuid: uuid("lease_uuid").notNull(),
    queuedAt: datetime("queued_at", { fsp: 3 }).notNull().default(utcNow),
  },
  (table) => [primaryKey({ columns: [table.sourceType, table.sourceId] })],
);

/** The saved cursor of verification. */
export const verificationProgress = mysqlTable("leasehold_verification_progress", {
  name: exactText("name").primaryKey(),
  progress: longtext("progress").notNull(),
  savedAt: datetime("saved_at", { fsp: 3 }).notNull().default(utcNow),
});

/** How far the cell's ledger had got when it answered, by instance of the ledger. */
export const ledgerHistory = mysqlTable(
  "leasehold_ledger_history",
  {
    cell: exactText("cell").notNull(),
    incarnation: bigint("incarnation", { mode: "number" }).notNull(),
    position: bigint("position", { mode: "number" }).notNull(),
    savedAt: datetime("saved_at", { fsp: 3 }).notNull().default(utcNow),
  },
  (table) => [primaryKey({ columns: [table.cell, table.incarnation] })],
);

/** The names of the tables above. */
export const ownTables = [outstandingLeases, verificationQueue, verificationProgress, ledgerHistory].map(
  (table) => getTableName(table),
);

/**
 * The same tables as SQL, for hand-written migrations. They need InnoDB, because other engines lack
 * transactions.
 */
export const migration = [
  `CREATE TABLE IF NOT EXISTS leasehold_outstanding_leases (
  uuid char(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL PRIMARY KEY,
  state enum('saved','fenced') NOT NULL DEFAULT 'saved',
  sources json NOT NULL,
  deferred json,
  created_at datetime(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  INDEX leasehold_outstanding_leases_created (created_at)
) ENGINE=InnoDB`,
  `CREATE TABLE IF NOT EXISTS leasehold_verification_queue (
  source_type varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  source_id varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  lease_uuid char(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
  queued_at datetime(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (source_type, source_id)
) ENGINE=InnoDB`,
  `CREATE TABLE IF NOT EXISTS leasehold_verification_progress (
  name varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  progress longtext NOT NULL,
  saved_at datetime(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3))
) ENGINE=InnoDB`,
  `CREATE TABLE IF NOT EXISTS leasehold_ledger_history (
  cell varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  incarnation bigint NOT NULL,
  \`position\` bigint NOT NULL,
  saved_at datetime(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (cell, incarnation)
) ENGINE=InnoDB`,
] as const;
