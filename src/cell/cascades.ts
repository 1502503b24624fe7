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
 * Finds foreign keys between claimable tables with which the database deletes rows or changes claimed
 * columns, as the drizzle schema declares them. The SDK doesn't see these changes, so it would never release
 * the names. Answers a sentence for each key.
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
  // Other columns don't change the row's claims, as far as the declaration shows.
  const claimed = new Set([child.idName, ...child.attributes.map(({ name }) => name)]);
  const isClaimed = columns.some((column) => claimed.has(column));
  // The id of a claimed row never changes, so neither does a key that refers to it.
  const isForGood = parentColumns.every((column) => column === parent.idName);
  const sentences: string[] = [];
  if (onDelete === "cascade")
    sentences.push(
      `${key} deletes rows by ON DELETE CASCADE, so their names would never be released: ` +
        `delete the rows of ${child.name} with tx first`,
    );
  else if (isClaimed && changing.has(onDelete))
    sentences.push(
      `${key} changes claimed columns by ON DELETE ${(onDelete ?? "").toUpperCase()}, ` +
        "so their names would never be released: update them with tx first",
    );
  if (isClaimed && !isForGood && changing.has(onUpdate))
    sentences.push(
      `${key} changes claimed columns by ON UPDATE ${(onUpdate ?? "").toUpperCase()}, ` +
        "so the claims would not change with them: update them with tx",
    );
  return sentences;
}
