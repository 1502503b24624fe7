import { sql } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/pg-core";
import { LeaseholdError } from "../../client/errors.ts";
import { outstandingLeases } from "./schema.ts";

/**
 * Checks that leases are written to the table that recovery reads. If a body sets `search_path` to another
 * schema, for example of a tenant, which has a table of the same name, its lease would be saved there.
 * Reconciliation would not find it, and roll back the names of saved rows.
 */
export class LeaseTable {
  readonly #read: () => Promise<string | null | undefined>;
  #reading: Promise<void> | undefined;
  #oid: string | null | undefined;
  #isDoubted = true;

  constructor(read: () => Promise<string | null | undefined>) {
    this.#read = read;
  }

  /** Call this before a transaction. Inside one, a pool of one connection would deadlock. */
  async prepare(): Promise<void> {
    if (!this.#isDoubted) return;
    this.#reading ??= this.#readAnew();
    await this.#reading;
  }

  /** Throws when a lease was written to another table. */
  check(oid: string | undefined): void {
    if (oid !== undefined && oid === this.#oid) return;
    // The table may have been created again, so the next transaction reads its oid again.
    this.#isDoubted = true;
    throw new LeaseholdError(
      "the lease's row was written to another table than the one that recovery reads. " +
        `If the transaction sets \`search_path\`, put the schema of ${name} first`,
      { code: "WRONG_TABLE" },
    );
  }

  async #readAnew(): Promise<void> {
    try {
      this.#oid = await this.#read();
      // A table that is missing may be created at any time.
      this.#isDoubted = typeof this.#oid !== "string";
    } finally {
      this.#reading = undefined;
    }
  }
}

const { name } = getTableConfig(outstandingLeases);

export const tableOid = sql<string>`tableoid::text`.as("table_oid");
/** Null if the table does not exist. */
export const oidByName = sql<string | null>`to_regclass(${name})::oid::text`.as("oid");
