import { sql, type SQL } from "drizzle-orm";
import { boolean as mysqlBoolean, datetime, int, mysqlTable, varchar } from "drizzle-orm/mysql-core";
import { boolean, integer, pgTable, serial, text, timestamp, uuid } from "drizzle-orm/pg-core";
import { claimable, type Claimable } from "../../../src/cell/claimable.ts";
import type { CellDatabase } from "../../../src/cell/local.ts";
import { mysql } from "../../../src/cell/mysql/index.ts";
import { postgres } from "../../../src/cell/postgres/index.ts";
import type { Orm, Tx } from "../scenarios/dialect.ts";

const NAME = 255;
const ALL = [
  "users",
  "emails",
  "projects",
  "organizations",
  "leasehold_outstanding_leases",
  "leasehold_verification_queue",
  "leasehold_verification_progress",
  "leasehold_ledger_history",
];

const postgresTables = {
  users: pgTable("users", {
    id: serial("id").primaryKey(),
    username: text("username").notNull(),
    bot: boolean("bot").notNull().default(false),
    updatedAt: timestamp("updated_at", { withTimezone: true }).notNull().defaultNow(),
  }),
  /** Has no column with the time of a change. */
  emails: pgTable("emails", {
    id: serial("id").primaryKey(),
    userId: integer("user_id").notNull(),
    email: text("email"),
  }),
  /** The application makes the ids of this table. */
  projects: pgTable("projects", { id: text("id").primaryKey(), path: text("path").notNull() }),
  organizations: pgTable("organizations", { id: uuid("id").primaryKey(), path: text("path").notNull() }),
};

const mysqlTables = {
  users: mysqlTable("users", {
    id: int("id").autoincrement().primaryKey(),
    username: varchar("username", { length: NAME }).notNull(),
    bot: mysqlBoolean("bot").notNull().default(false),
    updatedAt: datetime("updated_at", { fsp: 3 })
      .notNull()
      .default(sql`(UTC_TIMESTAMP(3))`),
  }),
  emails: mysqlTable("emails", {
    id: int("id").autoincrement().primaryKey(),
    userId: int("user_id").notNull(),
    email: varchar("email", { length: NAME }),
  }),
  projects: mysqlTable("projects", {
    id: varchar("id", { length: NAME }).primaryKey(),
    path: varchar("path", { length: NAME }).notNull(),
  }),
  organizations: mysqlTable("organizations", {
    id: varchar("id", { length: 36 }).primaryKey(),
    path: varchar("path", { length: NAME }).notNull(),
  }),
};

export type Tables = typeof postgresTables;

/** The differences between databases that the tests need. */
export interface Dialect {
  tables: Tables;
  createTables: readonly string[];
  /** Empties all tables, including the cell's own. Ids start at 1 again. */
  emptyTables: readonly string[];
  database(orm: Orm): CellDatabase<Tx>;
  /** A time before now, by the database's clock. */
  ago(seconds: number): SQL;
}

export const postgresDialect: Dialect = {
  tables: postgresTables,
  createTables: [
    `CREATE TABLE users (id serial PRIMARY KEY, username text NOT NULL,
      bot boolean NOT NULL DEFAULT false, updated_at timestamptz NOT NULL DEFAULT now())`,
    "CREATE TABLE emails (id serial PRIMARY KEY, user_id integer NOT NULL, email text)",
    "CREATE TABLE projects (id text PRIMARY KEY, path text NOT NULL)",
    "CREATE TABLE organizations (id uuid PRIMARY KEY, path text NOT NULL)",
  ],
  emptyTables: [`TRUNCATE ${ALL.join(", ")} RESTART IDENTITY`],
  database: (orm) => postgres(orm as never),
  ago: (seconds) => sql`now() - make_interval(secs => ${seconds})`,
};

export const mysqlDialect: Dialect = {
  tables: mysqlTables as unknown as Tables,
  createTables: [
    `CREATE TABLE users (id int PRIMARY KEY AUTO_INCREMENT, username varchar(${NAME}) NOT NULL,
      bot boolean NOT NULL DEFAULT false, updated_at datetime(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)))`,
    `CREATE TABLE emails (id int PRIMARY KEY AUTO_INCREMENT, user_id int NOT NULL,
      email varchar(${NAME}))`,
    `CREATE TABLE projects (id varchar(${NAME}) COLLATE utf8mb4_bin PRIMARY KEY,
      path varchar(${NAME}) NOT NULL)`,
    `CREATE TABLE organizations (id varchar(36) PRIMARY KEY, path varchar(${NAME}) NOT NULL)`,
  ],
  emptyTables: ALL.map((table) => `TRUNCATE ${table}`),
  database: (orm) => mysql(orm as never),
  ago: (seconds) => sql`UTC_TIMESTAMP(3) - INTERVAL ${seconds} SECOND`,
};

export const claimablesOf = ({ users, emails, projects, organizations }: Tables): Claimable[] => [
  claimable(users, {
    source: "RAILS_TABLE_USERS",
    subject: { type: "USER", id: "id" },
    changedAt: "updatedAt",
    attributes: { id: "USER_IDS", username: { bucket: "USERNAMES", when: ({ bot }) => !bot } },
  }),
  claimable(emails, {
    source: "RAILS_TABLE_EMAILS",
    subject: { type: "USER", id: "userId" },
    attributes: { email: "EMAILS" },
  }),
  claimable(projects, {
    source: "RAILS_TABLE_PROJECTS",
    subject: { type: "PROJECT", id: "id" },
    attributes: { path: "ROUTES" },
  }),
  claimable(organizations, {
    source: "RAILS_TABLE_ORGANIZATIONS",
    subject: { type: "ORGANIZATION", id: "id" },
    attributes: { path: "ORGANIZATION_PATH" },
  }),
];
