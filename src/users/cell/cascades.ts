import { getTableColumns, is, Table, type Column } from "drizzle-orm";
import type { Claimable } from "./claimable.ts";
import type { AnyTable } from "./table.ts";

export type Action = "cascade" | "restrict" | "no action" | "set null" | "set default";

/** A foreign key between two claimable tables, with the columns' names in rows. */
interface ForeignKey {
  columns: readonly string[];
  parentColumns: readonly string[];
  onDelete: Action | undefined;
  onUpdate: Action | undefined;
}

/** The part that drizzle's dialects have in common. */
interface DeclaredForeignKey extends Pick<ForeignKey, "onDelete" | "onUpdate"> {
  reference: () => { columns: readonly Column[]; foreignTable: Table; foreignColumns: readonly Column[] };
}

interface StoredForeignKey extends ForeignKey {
  child: Claimable;
  parent: Claimable;
}

/** Reads the foreign keys between these tables. */
export type StoredForeignKeys = (tables: readonly Claimable[]) => Promise<StoredForeignKey[]>;

const changing: ReadonlySet<Action | undefined> = new Set(["cascade", "set null", "set default"]);

/**
 * Finds foreign keys between claimable tables with which the database deletes rows or changes what their
 * claims consist of, as the drizzle schema declares them. The SDK doesn't see these changes, so the claims
 * would stay as they were. Answers a sentence for each key.
 */
export function declaredCascades(
  claimables: readonly Claimable[],
  foreignKeysOf: (table: Table) => readonly DeclaredForeignKey[],
): string[] {
  const byTable = new Map<AnyTable, Claimable>(claimables.map((claimable) => [claimable.table, claimable]));
  return claimables.flatMap((child) =>
    (is(child.table, Table) ? foreignKeysOf(child.table) : []).flatMap(
      ({ reference, onDelete, onUpdate }) => {
        const { columns, foreignTable, foreignColumns } = reference();
        const parent = byTable.get(foreignTable);
        if (parent === undefined || !is(child.table, Table)) return [];
        const key = {
          columns: namesOf(child.table, columns),
          parentColumns: namesOf(foreignTable, foreignColumns),
          onDelete,
          onUpdate,
        };
        return sentencesOf(child, parent, key);
      },
    ),
  );
}

/** Finds the same foreign keys in the database. */
export async function storedCascades(
  claimables: readonly Claimable[],
  foreignKeysOf: StoredForeignKeys,
): Promise<string[]> {
  const keys = claimables.length === 0 ? [] : await foreignKeysOf(claimables);
  return keys.flatMap((key) => sentencesOf(key.child, key.parent, key));
}

function namesOf(table: Table, columns: readonly Column[]): string[] {
  const names = new Map(Object.entries(getTableColumns(table)).map(([name, column]) => [column, name]));
  return columns.flatMap((column) => names.get(column) ?? []);
}

function sentencesOf(
  child: Claimable,
  parent: Claimable,
  { columns, parentColumns, onDelete, onUpdate }: ForeignKey,
): string[] {
  const key = `${child.name}.${columns.join(", ")} → ${parent.name}`;
  const changed = claimPartOf(child, columns);
  // The id of a claimed row never changes, so neither does a key that refers to it.
  const isForGood = parentColumns.every((column) => column === parent.idName);
  const change = (action: string): string =>
    `${key} changes ${changed} by ${action.toUpperCase()}, ` +
    `so the claims would not change with it: update the rows of ${child.name} with tx first`;
  const sentences: string[] = [];
  if (onDelete === "cascade")
    sentences.push(
      `${key} deletes rows by ON DELETE CASCADE, so their names would never be released: ` +
        `delete the rows of ${child.name} with tx first`,
    );
  else if (changed !== undefined && changing.has(onDelete)) sentences.push(change(`on delete ${onDelete}`));
  if (changed !== undefined && !isForGood && changing.has(onUpdate))
    sentences.push(change(`on update ${onUpdate}`));
  return sentences;
}

/** Says which part of a row's claims these columns determine. Undefined if none. */
function claimPartOf(
  { idName, subjectIdName, scopeName, attributes, hasFunctions }: Claimable,
  columns: readonly string[],
): string | undefined {
  const has = (name: string | undefined): boolean => name !== undefined && columns.includes(name);
  if (has(idName) || attributes.some(({ name }) => has(name))) return "claimed columns";
  if (has(subjectIdName)) return "the subject of claims";
  if (has(scopeName)) return "the scope of claims";
  return hasFunctions ? "a column that `subject`, `scope` or `when` may read" : undefined;
}
