import type { Claimable } from "../claimable.ts";
import type { SqlTable, SqlTables } from "./connection.ts";

/** What only the database knows about a table. */
export interface StoredTraits {
  /** False for a view, and for a table of another database. */
  isTable: boolean;
  /** Whether a unique key consists of the id column alone. */
  hasUniqueId: boolean;
  /** The engine that stores the table, if it has no transactions. */
  engineWithoutTransactions?: string | undefined;
}

/**
 * Answers a sentence for each table whose rows and claims could not be changed together.
 *
 * @param traitsOf undefined for what does not exist
 */
export async function storedFaults<Tx>(
  tables: SqlTables<Tx>,
  claimables: readonly Claimable[],
  traitsOf: (table: SqlTable) => Promise<StoredTraits | undefined>,
): Promise<string[]> {
  const faults: (string | undefined)[] = [];
  for (const claimable of claimables) {
    const traits = await traitsOf(await tables.of(undefined, claimable));
    if (traits !== undefined) faults.push(faultOf(claimable, traits));
  }
  return faults.filter((fault) => fault !== undefined);
}

function faultOf({ name, idName }: Claimable, traits: StoredTraits): string | undefined {
  const { isTable, engineWithoutTransactions: engine, hasUniqueId } = traits;
  if (!isTable)
    return (
      `has ${name}, which is a view or a foreign table: name the table that stores its rows, because a ` +
      "view may hide some"
    );
  if (engine !== undefined)
    return `has ${name}, which ${engine} stores without transactions: convert it to InnoDB`;
  return hasUniqueId
    ? undefined
    : `has ${name}, in which several rows may have the same ${idName}, because no unique key consists of ` +
        "that column alone: add one, or name a column with one as `id`";
}
