import { sql } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/pg-core";
import { LeaseholdError } from "../../client/errors.ts";
import type { Connection } from "../sql/connection.ts";
import { currentOid, KnownTable } from "./known-table.ts";
import type { Orm } from "./orm.ts";
import { outstandingLeases } from "./schema.ts";

const { name } = getTableConfig(outstandingLeases);

export const tableOid = sql<string>`tableoid::text`.as("table_oid");

/**
 * The table that recovery reads. If a lease were saved in another one, reconciliation would not find it, and
 * roll back the names of saved rows.
 */
export const leaseTable = <Tx>(connection: Connection<Tx, Orm>): KnownTable =>
  new KnownTable(
    async (before) => {
      const [seen] = await connection
        .orm()
        .select({ oid: sql<string | null>`${currentOid(name, before)}::oid::text`.as("oid") })
        .from(sql`(VALUES (1)) AS one`);
      return seen?.oid;
    },
    () =>
      new LeaseholdError(
        "the lease's row was written to another table than the one that recovery reads. " +
          `If the transaction sets \`search_path\`, put the schema of ${name} first`,
        { code: "WRONG_TABLE" },
      ),
  );
