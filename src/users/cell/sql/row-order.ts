/** The source order of rows, as parts of SQL statements that all dialects share. */
import { sql, type Column, type SQL } from "drizzle-orm";

/** How the values of an id column are ordered as source ids. UUIDs are ordered as their text. */
export type IdKind = "integer" | "uuid" | "text";

export function idKindOf(idColumn: Column): IdKind {
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

/**
 * The source order of rows. Bounds come from claims, so they may be ids that no row of the table can have.
 */
export interface RowOrder {
  by: SQL;
  after(id: string): SQL | undefined;
  upTo(id: string): SQL | undefined;
  /** Undefined if no row of the table can have any of the ids. */
  isOneOf(ids: readonly string[]): SQL | undefined;
}

export const ANY_ROW = undefined;
export const NO_ROW = sql`false`;

/** Undefined without values. */
export const isIn = (column: SQL, values: SQL[]): SQL | undefined =>
  values.length === 0 ? undefined : sql`${column} IN (${sql.join(values, sql`, `)})`;

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
    isOneOf: (ids) =>
      isIn(
        by,
        ids.filter((id) => integerOf(id) === id).map((id) => sql.raw(id)),
      ),
  };
}
