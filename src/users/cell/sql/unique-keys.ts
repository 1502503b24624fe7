/** Which columns a unique key consists of: by its declaration in the drizzle schema, or by its text. */
import { Column, getTableColumns, is, SQL, StringChunk, type Table } from "drizzle-orm";

/** What drizzle knows about the keys of a table. All dialects share this part. */
export interface DeclaredKeys {
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
export const isSameName = (one: string, other: string): boolean => withoutCase(one) === withoutCase(other);
/** A name without what drizzle's casing changes. */
export const withoutCase = (name: string): string => name.replaceAll("_", "").toLowerCase();

const unique = (names: readonly string[]): string[] => [...new Set(names)];
const onlyOne = (names: readonly string[]): string[] => (names.length === 1 ? [...names] : []);
