import type { SQL } from "drizzle-orm";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { claimable, type Claimable } from "../../../src/cell/claimable.ts";
import type { CellDatabase } from "../../../src/cell/local.ts";
import type { tables } from "./postgres-tables.ts";

/** PostgreSQL's types stand for all dialects. The scenarios use only what drizzle's dialects share. */
export type Orm = PgDatabase<PgQueryResultHKT>;
export type Tx = Parameters<Parameters<Orm["transaction"]>[0]>[0];
export type Tables = typeof tables;

/** The differences between databases that the scenarios need. */
export interface Dialect {
  tables: Tables;
  createTables: readonly string[];
  database(orm: Orm): CellDatabase<Tx>;
  /** Makes the row of a lease older, by the database's clock. */
  age(uuid: string, seconds: number): SQL;
  /** Undoes the open transaction, as an error does that the driver does not report at COMMIT. */
  spoil(tx: Tx): Promise<unknown>;
  /** Whether a constraint can be checked at COMMIT. */
  hasDeferredConstraints: boolean;
}

/** Attributes that tests enable and disable. */
export const switches = { usernames: true };

export const claimablesOf = ({ users, emails, organizations, redirects, projects }: Tables): Claimable[] => [
  claimable(users, {
    source: "RAILS_TABLE_USERS",
    subject: { type: "USER", id: "id" },
    attributes: { id: "USER_IDS", username: { bucket: "USERNAMES", enabled: () => switches.usernames } },
  }),
  claimable(emails, {
    source: "RAILS_TABLE_EMAILS",
    subject: { type: "USER", id: "userId" },
    attributes: { email: { bucket: "EMAILS", when: ({ confirmed }) => confirmed } },
  }),
  claimable(organizations, {
    source: "RAILS_TABLE_ORGANIZATIONS",
    subject: { type: "ORGANIZATION", id: "id" },
    attributes: { path: "ORGANIZATION_PATH" },
  }),
  claimable(redirects, {
    source: "RAILS_TABLE_REDIRECT_ROUTES",
    subject: { type: "GROUP", id: "id" },
    attributes: { path: "REDIRECT_ROUTES" },
  }),
  claimable(projects, {
    source: "RAILS_TABLE_PROJECTS",
    subject: { type: "PROJECT", id: "id" },
    attributes: { path: "ROUTES" },
  }),
];
