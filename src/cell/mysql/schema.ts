import { sql } from "drizzle-orm";
import {
  customType,
  datetime,
  index,
  longtext,
  mysqlEnum,
  mysqlTable,
  primaryKey,
} from "drizzle-orm/mysql-core";
import type { Batch } from "../../client/api-types.ts";
import type { SourceRow } from "../changes.ts";

// The cell's own tables. Add all to the schema of your application's migrations, or run `install()` once.

/** In any spelling of its letters, as PostgreSQL's. */
const uuid = customType<{ data: string }>({
  dataType: () => "char(36) CHARACTER SET ascii COLLATE ascii_general_ci",
});

/** What the coordinator allows for an id, 128 bytes, and more than any of its types. Compared exactly: the usual collations take `a` for `A`. */
const exactText = customType<{ data: string }>({
  dataType: () => "varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
});

/** MySQL's driver parses its own; MariaDB has text under this name, and it arrives as that. No value here is a string by itself. */
const json = <T extends object>() =>
  customType<{ data: T; driverData: unknown }>({
    dataType: () => "json",
    toDriver: (value) => JSON.stringify(value),
    fromDriver: (stored) => (typeof stored === "string" ? (JSON.parse(stored) as T) : (stored as T)),
  });

/**
 * Not a `timestamp`, and not the session's time: both are told in the zone of the session, where an hour comes twice a year. The time of the
 * statement, not of the transaction. As an expression's default it needs MySQL 8.0.13 or MariaDB 10.2.
 */
const utcNow = sql`(UTC_TIMESTAMP(3))`;

/** A lease whose rows were saved and which the coordinator was not yet told to commit; or a fence in the place of one that was given up. */
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

/** Rows whose claims may be wrong: the next verification looks at them first. */
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

/** How far a verification is. */
export const verificationProgress = mysqlTable("leasehold_verification_progress", {
  name: exactText("name").primaryKey(),
  progress: longtext("progress").notNull(),
  savedAt: datetime("saved_at", { fsp: 3 }).notNull().default(utcNow),
});

/** The same as SQL, for those who write their migrations by hand. InnoDB, whatever the server's default is: other engines have no transactions. */
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
] as const;
