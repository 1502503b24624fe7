import { getTableColumns, type Column } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";

/** How a column's values are ordered as source ids: numbers, UUIDs, which are ordered as their text is, or any text. */
export type IdKind = "integer" | "uuid" | "text";

export function idKindOf({ idColumn }: Claimable): IdKind {
  const type = idColumn.getSQLType().toLowerCase();
  if (/^(tiny|small|medium|big)?(int|serial)/.test(type)) return "integer";
  return type === "uuid" ? "uuid" : "text";
}

/** Digits only, so that it can be written into a statement: as a parameter it would be compared as a float, or refused for being too large. */
export function integerOf(id: string): string | undefined {
  const digits = /^0*(\d{1,20})$/.exec(id)?.[1];
  // An unsigned bigint.
  return digits !== undefined && BigInt(digits) < 2n ** 64n ? String(BigInt(digits)) : undefined;
}

export const isDecimal = (id: string): boolean => /^\d+$/.test(id);

/** As the database spells them. */
export const isUuid = (id: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(id);

export function changedAtOf({ table, changedAt }: Claimable): Column | undefined {
  return changedAt === undefined ? undefined : getTableColumns(table)[changedAt];
}
