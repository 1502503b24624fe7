/** Parts of SQL statements that all dialects share. */
import { and, getTableColumns, sql, type Column, type SQL } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";
import type { IdRange, InspectedRow } from "../verification/ports.ts";

/** How the values of an id column are ordered as source ids. UUIDs are ordered as their text. */
export type IdKind = "integer" | "uuid" | "text";

export function idKindOf({ idColumn }: Claimable): IdKind {
  const type = idColumn.getSQLType().toLowerCase();
  if (/^(tiny|small|medium|big)?(int|serial)/.test(type)) return "integer";
  return type === "uuid" ? "uuid" : "text";
}

/**
 * An id as decimal digits that can be written into a statement. A parameter would be compared as a float, or
 * refused as too large.
 */
export function integerOf(id: string): string | undefined {
  const digits = /^0*(\d{1,20})$/.exec(id)?.[1];
  // The largest id column is an unsigned bigint.
  return digits !== undefined && BigInt(digits) < 2n ** 64n ? String(BigInt(digits)) : undefined;
}

export const isDecimal = (id: string): boolean => /^\d+$/.test(id);

/** Matches the spelling that databases use. */
export const isUuid = (id: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(id);

export function changedAtOf({ table, changedAt }: Claimable): Column | undefined {
  return changedAt === undefined ? undefined : getTableColumns(table)[changedAt];
}

/** The key of the only row in the table of verification progress. */
export const PROGRESS_NAME = "verification";

/**
 * Names of the selected columns for a row's age in milliseconds, and for its id as the database writes it.
 */
export const AGE_COLUMN = "leaseholdAgeMs";
export const ID_COLUMN = "leaseholdId";

/**
 * The source order of rows. Bounds come from claims, so they may be ids that no row of the table can have.
 */
export interface RowOrder {
  by: SQL;
  after(id: string): SQL | undefined;
  upTo(id: string): SQL | undefined;
}

export const ANY_ROW = undefined;
export const NO_ROW = sql`false`;

export const isInRange = (order: RowOrder, { after, upTo }: IdRange): SQL | undefined =>
  and(order.after(after), upTo === undefined ? undefined : order.upTo(upTo));

/** Decimal ids come before all others. */
export function integerOrder(by: SQL): RowOrder {
  const comparedWith = (id: string, sign: SQL, otherwise: SQL | undefined): SQL | undefined => {
    const integer = integerOf(id);
    return integer === undefined ? otherwise : sql`${by} ${sign} ${sql.raw(integer)}`;
  };
  return {
    by,
    after: (id) => (id === "" ? ANY_ROW : comparedWith(id, sql`>`, NO_ROW)),
    upTo: (id) => comparedWith(id, sql`<=`, ANY_ROW),
  };
}

/** Some drivers return decimals as text. */
export function inspectedRow(row: Record<string, unknown>): InspectedRow {
  const { [AGE_COLUMN]: ageMs, [ID_COLUMN]: idText, ...columns } = row;
  return {
    row: columns,
    idText: String(idText),
    ageMs: ageMs === null || ageMs === undefined ? undefined : Number(ageMs),
  };
}
