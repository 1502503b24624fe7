/** The tables of the suites, in SQL and as a cell declares them. */
import { claimable, type Claimable } from "../claimable.ts";
import type { NamedTable } from "../table.ts";
import type { ConformanceRows, ConformanceTables, TableName } from "./target.ts";

/** The differences between databases that the suites need. */
interface Dialect {
  createTables: readonly string[];
  /** Makes the row of a lease, or the fence in its place, older by the database's clock. */
  age(uuid: string, ms: number): string;
  /** A time before now, by the database's clock. */
  ago(seconds: number): string;
  /** Empties all tables, including the cell's own. Ids start at 1 again. */
  emptyTables: readonly string[];
  /** Undoes the open transaction, as an error does that the driver does not report at COMMIT. */
  spoil: { statement: string; isError: boolean; code: string };
  /** Whether a constraint can be checked at COMMIT. */
  hasDeferredConstraints: boolean;
}

const US_PER_MS = 1_000;
const ALL_TABLES = [
  "users",
  "emails",
  "organizations",
  "redirects",
  "projects",
  "accounts",
  "teams",
  "leasehold_outstanding_leases",
  "leasehold_verification_queue",
  "leasehold_verification_progress",
  "leasehold_ledger_history",
];

export const dialects: Readonly<Record<"postgres" | "mysql", Dialect>> = {
  postgres: {
    createTables: [
      `CREATE TABLE users (id serial PRIMARY KEY,
        username text NOT NULL UNIQUE DEFERRABLE INITIALLY IMMEDIATE, bio text)`,
      `CREATE TABLE emails (id serial PRIMARY KEY, owner integer NOT NULL, email text,
        confirmed boolean NOT NULL DEFAULT true)`,
      "CREATE TABLE organizations (id serial PRIMARY KEY, path text NOT NULL)",
      "CREATE TABLE redirects (id serial PRIMARY KEY, path text NOT NULL)",
      "CREATE TABLE projects (id text PRIMARY KEY, path text NOT NULL UNIQUE)",
      // Many servers order text by language, and verification must not.
      `DO $$ BEGIN
        IF EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu') THEN
          ALTER TABLE projects ALTER COLUMN id TYPE text COLLATE "en-x-icu";
        END IF;
      END $$`,
      `CREATE TABLE accounts (id serial PRIMARY KEY, username text NOT NULL,
        bot boolean NOT NULL DEFAULT false, updated_at timestamptz NOT NULL DEFAULT now())`,
      "CREATE TABLE teams (id uuid PRIMARY KEY, path text NOT NULL)",
    ],
    age: (uuid, ms) =>
      `UPDATE leasehold_outstanding_leases
        SET created_at = created_at - interval '${ms} milliseconds' WHERE uuid = '${uuid}'`,
    ago: (seconds) => `now() - interval '${seconds} seconds'`,
    emptyTables: [`TRUNCATE ${ALL_TABLES.join(", ")} RESTART IDENTITY`],
    spoil: { statement: "SELECT 1 / 0", isError: true, code: "NOT_SAVED" },
    hasDeferredConstraints: true,
  },
  mysql: {
    createTables: [
      `CREATE TABLE users (id int PRIMARY KEY AUTO_INCREMENT, username varchar(255) NOT NULL UNIQUE,
        bio text)`,
      `CREATE TABLE emails (id int PRIMARY KEY AUTO_INCREMENT, owner int NOT NULL, email text,
        confirmed boolean NOT NULL DEFAULT true)`,
      "CREATE TABLE organizations (id int PRIMARY KEY AUTO_INCREMENT, path text NOT NULL)",
      "CREATE TABLE redirects (id int PRIMARY KEY AUTO_INCREMENT, path text NOT NULL)",
      `CREATE TABLE projects (id varchar(255) COLLATE utf8mb4_bin PRIMARY KEY,
        path varchar(255) NOT NULL UNIQUE)`,
      `CREATE TABLE accounts (id int PRIMARY KEY AUTO_INCREMENT, username varchar(255) NOT NULL,
        bot boolean NOT NULL DEFAULT false, updated_at datetime(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)))`,
      "CREATE TABLE teams (id varchar(36) PRIMARY KEY, path text NOT NULL)",
    ],
    age: (uuid, ms) =>
      `UPDATE leasehold_outstanding_leases
        SET created_at = created_at - INTERVAL ${ms * US_PER_MS} MICROSECOND WHERE uuid = '${uuid}'`,
    ago: (seconds) => `UTC_TIMESTAMP(3) - INTERVAL ${seconds} SECOND`,
    emptyTables: ALL_TABLES.map((table) => `TRUNCATE ${table}`),
    // A deadlock undoes the transaction too. Most errors undo only their statement.
    spoil: { statement: "ROLLBACK", isError: false, code: "TRANSACTION_ENDED" },
    hasDeferredConstraints: false,
  },
};

/** Drops all tables, including the cell's own. */
export const dropTables = `DROP TABLE IF EXISTS ${ALL_TABLES.join(", ")}`;

/** Attributes that tests enable and disable. */
export const switches = { usernames: true };

type Declared = { [Name in TableName]: NamedTable<ConformanceRows[Name], object> };

/** Declares the tables as a cell does. */
export function claimablesOf(tables: ConformanceTables): Claimable[] {
  const { users, emails, organizations, redirects, projects } = tables as unknown as Declared;
  return [
    claimable(users, {
      source: "RAILS_TABLE_USERS",
      subject: { type: "USER", id: "id" },
      attributes: { id: "USER_IDS", username: { bucket: "USERNAMES", enabled: () => switches.usernames } },
    }),
    claimable(emails, {
      source: "RAILS_TABLE_EMAILS",
      subject: { type: "USER", id: "owner" },
      // Some drivers answer 0 and 1.
      attributes: { email: { bucket: "EMAILS", when: ({ confirmed }) => Boolean(confirmed) } },
    }),
    claimable(organizations, {
      source: "RAILS_TABLE_ORGANIZATIONS",
      subject: { type: "ORGANIZATION", id: "id" },
      attributes: { path: "ORGANIZATION_PATH" },
    }),
    claimable(redirects, {
      source: "RAILS_TABLE_REDIRECT_ROUTES",
      subject: { type: "NAMESPACE", id: "id" },
      attributes: { path: "REDIRECT_ROUTES" },
    }),
    claimable(projects, {
      source: "RAILS_TABLE_PROJECTS",
      subject: { type: "PROJECT", id: "id" },
      attributes: { path: "ROUTES" },
    }),
  ];
}
