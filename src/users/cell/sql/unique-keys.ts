/** Which columns a unique key consists of: by its declaration in the drizzle schema, or by its text. */
import { Column, getTableColumns, is, SQL, StringChunk, type Table } from "drizzle-orm";
import type { StoredColumn } from "../adapter/stored-tables.ts";
import type { SqlTable } from "./connection.ts";

/** What drizzle knows about the keys of a table. All dialects share this part. */
interface DeclaredKeys {
  columns: readonly Column[];
  indexes: readonly { config: IndexConfig }[];
  uniqueConstraints: readonly { getName(): string | undefined; columns: readonly Column[] }[];
  primaryKeys: readonly { getName(): string; columns: readonly Column[] }[];
}

interface IndexConfig {
  name?: string | undefined;
  unique?: boolean | undefined;
  columns: readonly unknown[];
}

interface NamedKey {
  name: string | undefined;
  parts: readonly unknown[];
}

/**
 * The columns of the key with this name, under their names in the row. Undefined if drizzle declares no such
 * key. `primary` is the database's own name for a primary key.
 */
export function columnsOfKey(
  table: Table,
  declared: DeclaredKeys,
  { name, primary }: { name: string; primary: string },
): string[] | undefined {
  const keys = namedKeys(declared, primary);
  const found =
    keys.find((key) => key.name === name) ??
    keys.find((key) => key.name !== undefined && isSameName(key.name, name));
  return found === undefined ? undefined : unique(found.parts.flatMap((part) => columnsOfPart(table, part)));
}

function namedKeys({ columns, indexes, uniqueConstraints, primaryKeys }: DeclaredKeys, primary: string) {
  const single = columns.filter((column) => column.primary);
  return [
    ...columns
      .filter(({ isUnique }) => isUnique)
      .map((column): NamedKey => ({ name: column.uniqueName, parts: [column] })),
    ...uniqueConstraints.map((key): NamedKey => ({ name: key.getName(), parts: key.columns })),
    ...indexes
      .filter(({ config }) => config.unique === true)
      .map(({ config }): NamedKey => ({ name: config.name, parts: config.columns })),
    ...primaryKeys.flatMap((key): NamedKey[] => [
      { name: key.getName(), parts: key.columns },
      { name: primary, parts: key.columns },
    ]),
    ...(single.length === 0 ? [] : [{ name: primary, parts: single }]),
  ];
}

/** A part of a key is a column or an expression. An expression of several columns decides about none. */
function columnsOfPart(table: Table, part: unknown): string[] {
  if (!is(part, SQL)) return nameInRow(table, String((part as { name: unknown }).name));
  const columns = unique(columnsIn(part).flatMap(({ name }) => nameInRow(table, name)));
  return columns.length > 0 ? onlyOne(columns) : columnsOfText(table, textOf(part));
}

function columnsIn(expression: SQL): Column[] {
  return expression.queryChunks.flatMap((chunk) => {
    if (is(chunk, SQL)) return columnsIn(chunk);
    return is(chunk, Column) ? [chunk] : [];
  });
}

const textOf = (expression: SQL): string =>
  expression.queryChunks.map((chunk) => (is(chunk, StringChunk) ? chunk.value.join("") : " ")).join("");

/** Everything in an SQL expression that looks like a column but is none: texts, casts and collations. */
const NO_COLUMN =
  /'(?:[^']|'')*'|::\s*"?[\p{L}_][\p{L}\p{N}_$]*"?(?: varying)?(?:\(\d+\))?(?:\[\])?|\bCOLLATE\s+\S+/giu;
/** A name in quotes, or a name that is not that of a function. */
const NAME = /"((?:[^"]|"")+)"|`([^`]+)`|([\p{L}_][\p{L}\p{N}_$]*)(?![\p{L}\p{N}_$]|\s*\()/gu;

/**
 * The column that an SQL expression of one column is about, such as `lower((email)::text)`. Empty if it names
 * no column of the table, or several.
 */
export function columnsOfText(table: Table, expression: string): string[] {
  const names = [...expression.replaceAll(NO_COLUMN, " ").matchAll(NAME)].map(
    ([, quoted, ticked, plain = ""]) => quoted?.replaceAll('""', '"') ?? ticked ?? plain,
  );
  return onlyOne(unique(names.flatMap((name) => nameInRow(table, name))));
}

/** The name in the row of a column with this name in the database. Empty if there is none. */
export function nameInRow(table: Table, nameInDatabase: string): string[] {
  const columns = Object.entries(getTableColumns(table));
  const found =
    columns.find(([, { name }]) => name === nameInDatabase) ??
    columns.find(([, { name }]) => isSameName(name, nameInDatabase));
  return found === undefined ? [] : [found[0]];
}

/** Drizzle's option `casing` turns `userName` into `user_name` where it writes SQL, but not in its schema. */
const isSameName = (one: string, other: string): boolean => withoutCase(one) === withoutCase(other);
/** A name without what drizzle's casing changes. */
const withoutCase = (name: string): string => name.replaceAll("_", "").toLowerCase();

const unique = (names: readonly string[]): string[] => [...new Set(names)];
const onlyOne = (names: readonly string[]): string[] => (names.length === 1 ? [...names] : []);

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
