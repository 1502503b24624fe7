import { sql, type SQL } from "drizzle-orm";
import { quoted } from "./read-table.ts";

/** Reads the oid of a table outside any transaction. `before` is the one that it had. */
type Read = (before: string | undefined) => Promise<string | null | undefined>;

/**
 * The oid of the table with this name, and null if there is none. As long as the table of before exists, it's
 * that one, because `SET` without `LOCAL` leaves another search path to the next user of a connection.
 */
export const currentOid = (name: string, before = "0"): SQL =>
  sql`coalesce(
    (SELECT its.oid FROM pg_class AS its WHERE its.oid = ${sql.raw(before)} AND its.relname = ${name}),
    to_regclass(${quoted({ schema: undefined, name })}))`;

/**
 * Checks that a statement found the table that the cell knows. If a body sets `search_path` to another
 * schema, for example of a tenant, which has a table of the same name, rows would be written there.
 */
export class KnownTable {
  readonly #read: Read;
  readonly #mismatch: () => Error;
  #oid: string | undefined;
  #isDoubted = true;

  constructor(read: Read, mismatch: () => Error) {
    this.#read = read;
    this.#mismatch = mismatch;
  }

  /** Call this before a transaction. Inside one, a pool of one connection would deadlock. */
  async prepare(): Promise<void> {
    if (!this.#isDoubted) return;
    this.#oid = (await this.#read(this.#oid)) ?? undefined;
    // A table that is missing may be created at any time.
    this.#isDoubted = this.#oid === undefined;
  }

  /** Throws when a statement found another table. */
  check(oid: unknown): void {
    if (oid === this.#oid && oid !== undefined) return;
    // The table may have been created again, so the next transaction reads its oid again.
    this.#isDoubted = true;
    throw this.#mismatch();
  }
}
