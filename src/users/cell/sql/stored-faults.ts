import { getTableColumns } from "drizzle-orm";
import type { StoredColumn } from "../adapter/stored-tables.ts";
import type { SqlTable } from "./connection.ts";
import { isSameName, withoutCase } from "./unique-keys.ts";

/** What only the database knows about a table. */
export interface StoredTraits {
  /** False for a view, and for a table of another database. */
  isTable: boolean;
  /** The columns of each unique key that covers all rows, without expressions. */
  uniqueKeys: readonly (readonly string[])[];
  /** Whether a unique key can be checked at COMMIT. */
  hasDeferrableKey: boolean;
  /** Whether row-level security is enabled, so that a policy may hide rows. */
  hasPolicies: boolean;
  /** The engine that stores the table, if it has no transactions. */
  engineWithoutTransactions?: string | undefined;
  /** The columns with bytes instead of text or numbers, and their types. */
  columnsOfBytes: readonly StoredColumn[];
  /** The columns whose values are read with spaces that nobody has written, and their types. */
  paddedColumns: readonly StoredColumn[];
}

/** The columns of each key. An expression has no name, and is no column. */
export function keysOf(parts: readonly { key: string; column: string | null }[]): string[][] {
  const keys = new Map<string, string[]>();
  for (const { key, column } of parts) keys.set(key, [...(keys.get(key) ?? []), column ?? ""]);
  return [...keys.values()];
}

/** A sentence about a table whose rows and claims could not be changed together, or would differ. */
export function storedFault(
  { claimable, table, idColumn }: SqlTable,
  traits: StoredTraits,
): string | undefined {
  const { name, idName, subjectIdName, scopeName, attributes } = claimable;
  const { isTable, engineWithoutTransactions: engine, columnsOfBytes, paddedColumns } = traits;
  if (!isTable)
    return (
      `has ${name}, which is a view or a foreign table: name the table that stores its rows, because a ` +
      "view may hide some"
    );
  if (engine !== undefined)
    return `has ${name}, which ${engine} stores without transactions: convert it to InnoDB`;
  if (!isUniqueKey(traits, [idColumn.name]))
    return (
      `has ${name}, in which several rows may have the same ${idName}, because no unique key consists of ` +
      "that column alone: add one, or name a column with one as `id`"
    );
  const ofBytes = columnsOfBytes.find((column) => isSameName(column.name, idColumn.name));
  if (ofBytes !== undefined)
    return (
      `has ${name}, whose ${idName} is ${ofBytes.type}, so verification could not find the rows of its ` +
      "claims: name a column with text or numbers as `id`"
    );
  const columns = getTableColumns(table);
  const used = [idName, subjectIdName, scopeName, ...attributes.map((attribute) => attribute.name)];
  const isUsed = ({ name: stored }: StoredColumn): boolean =>
    used.some(
      (property) => property !== undefined && isSameName(columns[property]?.name ?? property, stored),
    );
  const padded = paddedColumns.find(isUsed);
  return padded === undefined
    ? undefined
    : `has ${name}, whose ${padded.name} is a ${padded.type}, which the database fills up with spaces: ` +
        `convert it to ${padded.type.replace(/^char(acter)?/, "varchar")} or text`;
}

/** Whether a unique key consists of exactly these columns. */
export function isUniqueKey({ uniqueKeys }: StoredTraits, columns: readonly string[]): boolean {
  return uniqueKeys.some((key) => spelled(key) === spelled(columns));
}

const spelled = (columns: readonly string[]): string => columns.map(withoutCase).toSorted().join("\n");
