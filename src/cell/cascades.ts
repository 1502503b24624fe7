import { getTableColumns, type Column, type Table } from "drizzle-orm";
import type { Claimable } from "./claimable.ts";

type Action = "cascade" | "restrict" | "no action" | "set null" | "set default";

/** As the dialects of drizzle have them in common. */
interface ForeignKey {
  onDelete: Action | undefined;
  onUpdate: Action | undefined;
  reference: () => { columns: readonly Column[]; foreignTable: Table; foreignColumns: readonly Column[] };
}

const changing: ReadonlySet<Action | undefined> = new Set(["cascade", "set null", "set default"]);

/**
 * Foreign keys from one claimable table to another with which the database deletes rows, or changes claimed columns of them, by itself: it tells nobody
 * which, so the names of those rows would never be given up. A sentence for each.
 */
export function cascadesOf(
  claimables: readonly Claimable[],
  foreignKeysOf: (table: Table) => readonly ForeignKey[],
): string[] {
  const byTable = new Map(claimables.map((claimable) => [claimable.table, claimable]));
  return claimables.flatMap((child) =>
    foreignKeysOf(child.table).flatMap((key) => {
      const parent = byTable.get(key.reference().foreignTable);
      return parent === undefined ? [] : sentencesOf(child, parent, key);
    }),
  );
}

function sentencesOf(
  child: Claimable,
  parent: Claimable,
  { onDelete, onUpdate, reference }: ForeignKey,
): string[] {
  const { columns, foreignColumns } = reference();
  const key = `${child.name}.${columns.map(({ name }) => name).join(", ")} → ${parent.name}`;
  const claimed = claimedColumns(child);
  const isClaimed = columns.some((column) => claimed.has(column));
  // The id of a claimed row is for good: such a key never changes.
  const isForGood = foreignColumns.every((column) => column === parent.idColumn);
  const sentences: string[] = [];
  if (onDelete === "cascade")
    sentences.push(
      `${key} deletes rows by ON DELETE CASCADE, and their names would never be given up: delete the rows of ${child.name} with tx first`,
    );
  else if (isClaimed && changing.has(onDelete))
    sentences.push(
      `${key} changes claimed columns by ON DELETE ${(onDelete ?? "").toUpperCase()}, and their names would never be given up: update them with tx first`,
    );
  if (isClaimed && !isForGood && changing.has(onUpdate))
    sentences.push(
      `${key} changes claimed columns by ON UPDATE ${(onUpdate ?? "").toUpperCase()}, and the claims would stay as they were: update them with tx`,
    );
  return sentences;
}

/** Others can change without a claim of the row's own changing, as far as can be seen here. */
function claimedColumns({ table, idColumn, attributes }: Claimable): ReadonlySet<Column | undefined> {
  const columns = getTableColumns(table);
  return new Set([idColumn, ...attributes.map(({ name }) => columns[name])]);
}
