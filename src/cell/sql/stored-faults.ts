import { getTableColumns } from "drizzle-orm";
import type { StoredColumn } from "../adapter/stored-tables.ts";
import type { Claimable } from "../claimable.ts";
import type { SqlTable, SqlTables } from "./connection.ts";
import { withoutCase } from "./unique-keys.ts";

/** What only the database knows about a table. */
export interface StoredTraits {
  /** False for a view, and for a table of another database. */
  isTable: boolean;
  /** Whether a unique key consists of the id column alone. */
  hasUniqueId: boolean;
  /** The engine that stores the table, if it has no transactions. */
  engineWithoutTransactions?: string | undefined;
  /** The columns whose values are read with spaces that nobody has written, and their types. */
  paddedColumns: readonly StoredColumn[];
}

/**
 * Answers a sentence for each table whose rows and claims could not be changed together, or would differ.
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
    const table = await tables.of(undefined, claimable);
    const traits = await traitsOf(table);
    if (traits !== undefined) faults.push(faultOf(table, traits));
  }
  return faults.filter((fault) => fault !== undefined);
}

function faultOf({ claimable, table }: SqlTable, traits: StoredTraits): string | undefined {
  const { name, idName, subjectIdName, scopeName, attributes } = claimable;
  const { isTable, engineWithoutTransactions: engine, hasUniqueId, paddedColumns } = traits;
  if (!isTable)
    return (
      `has ${name}, which is a view or a foreign table: name the table that stores its rows, because a ` +
      "view may hide some"
    );
  if (engine !== undefined)
    return `has ${name}, which ${engine} stores without transactions: convert it to InnoDB`;
  if (!hasUniqueId)
    return (
      `has ${name}, in which several rows may have the same ${idName}, because no unique key consists of ` +
      "that column alone: add one, or name a column with one as `id`"
    );
  const columns = getTableColumns(table);
  const used = [idName, subjectIdName, scopeName, ...attributes.map((attribute) => attribute.name)];
  const isUsed = ({ name: stored }: StoredColumn): boolean =>
    used.some(
      (property) =>
        property !== undefined && withoutCase(columns[property]?.name ?? property) === withoutCase(stored),
    );
  const padded = paddedColumns.find(isUsed);
  return padded === undefined
    ? undefined
    : `has ${name}, whose ${padded.name} is a ${padded.type}, which the database fills up with spaces: ` +
        `convert it to ${padded.type.replace(/^char(acter)?/, "varchar")} or text`;
}
