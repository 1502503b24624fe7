import { is, Table, type Column } from "drizzle-orm";
import type { Claimable } from "./claimable.ts";
import { declaredColumns, type AnyTable } from "./table.ts";

type Action = "cascade" | "restrict" | "no action" | "set null" | "set default";

/** The part that drizzle's dialects have in common. */
interface ForeignKey {
  onDelete: Action | undefined;
  onUpdate: Action | undefined;
  reference: () => { columns: readonly Column[]; foreignTable: Table; foreignColumns: readonly Column[] };
}

const changing: ReadonlySet<Action | undefined> = new Set(["cascade", "set null", "set default"]);

/**
 * Finds foreign keys between claimable tables with which the database deletes rows or changes claimed
 * columns, as the drizzle schema declares them. The SDK doesn't see these changes, so it would never release
 * the names. Answers a sentence for each key.
 */
export function declaredCascades(
  claimables: readonly Claimable[],
  foreignKeysOf: (table: Table) => readonly ForeignKey[],
): string[] {
  const byTable = new Map<AnyTable, Claimable>(claimables.map((claimable) => [claimable.table, claimable]));
  return claimables.flatMap((child) =>
    (is(child.table, Table) ? foreignKeysOf(child.table) : []).flatMap((key) => {
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
  // The id of a claimed row never changes, so neither does a key that refers to it.
  const isForGood = foreignColumns.every(
    (column) => column === declaredColumns(parent.table)?.[parent.idName],
  );
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

/** Other columns don't change the row's claims, as far as the declaration shows. */
function claimedColumns({ table, idName, attributes }: Claimable): ReadonlySet<Column | undefined> {
  const columns = declaredColumns(table);
  return new Set([idName, ...attributes.map(({ name }) => name)].map((name) => columns?.[name]));
}
