import type { SQL } from "drizzle-orm";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import { claimable, type Claimable } from "../../../src/cell/claimable.ts";
import type { CellDatabase } from "../../../src/cell/local.ts";
import type { tables } from "./postgres-tables.ts";

/** The types of PostgreSQL's stand for all: the scenarios use what the dialects of drizzle have in common. */
export type Orm = PgDatabase<PgQueryResultHKT>;
export type Tx = Parameters<Parameters<Orm["transaction"]>[0]>[0];
export type Tables = typeof tables;

/** What a kind of database has of its own. */
export interface Dialect {
  tables: Tables;
  createTables: readonly string[];
  database(orm: Orm): CellDatabase<Tx>;
  /** Makes the row of a lease older, by the database's clock. */
  age(uuid: string, seconds: number): SQL;
  /** Inside a transaction: undoes it, as an error does that its driver does not tell of at COMMIT. */
  spoil(tx: Tx): Promise<unknown>;
  /** Otherwise there is no constraint that only COMMIT looks at. */
  hasDeferredConstraints: boolean;
}

/** Switched by tests. */
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
