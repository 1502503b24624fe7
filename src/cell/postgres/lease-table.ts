import { sql } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/pg-core";
import { LeaseholdError } from "../../client/errors.ts";
import { outstandingLeases } from "./schema.ts";

/**
 * Which table the leases are in, as it is seen outside of local transactions: where `look` and `fence` look for them. A body that sets its `search_path`
 * to another schema, a tenant's for instance, with a table of the same name would save its lease where nobody finds it, and names of saved rows would be
 * rolled back.
 */
export class LeaseTable {
  readonly #read: () => Promise<string | null | undefined>;
  #reading: Promise<void> | undefined;
  #oid: string | null | undefined;
  #isDoubted = true;

  constructor(read: () => Promise<string | null | undefined>) {
    this.#read = read;
  }

  /** Before a transaction, never inside one: in a pool of one it would wait for that connection for ever. */
  async prepare(): Promise<void> {
    if (!this.#isDoubted) return;
    this.#reading ??= this.#readAnew();
    await this.#reading;
  }

  /** Throws when a lease was written to another table. */
  check(oid: string | undefined): void {
    if (oid !== undefined && oid === this.#oid) return;
    // It may have been made anew meanwhile: the next transaction looks. Those under way go on with what is known.
    this.#isDoubted = true;
    throw new LeaseholdError(
      `the lease's row was written to another table than the one that recovery reads: does the transaction set search_path? The schema of ${name} must come first in it`,
      { code: "WRONG_TABLE" },
    );
  }

  async #readAnew(): Promise<void> {
    try {
      this.#oid = await this.#read();
      this.#isDoubted = false;
    } finally {
      this.#reading = undefined;
    }
  }
}

const { name } = getTableConfig(outstandingLeases);

export const tableOid = sql<string>`tableoid::text`;
/** Null where there is none. */
export const oidByName = sql<string | null>`to_regclass(${name})::oid::text`;
