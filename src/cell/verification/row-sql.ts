/** What the statements of all dialects have in common. */
import { and, sql, type SQL } from "drizzle-orm";
import type { InspectedRow } from "./database.ts";
import { integerOf } from "./id-column.ts";
import type { IdRange } from "./ports.ts";

/** One verification of a cell at a time. */
export const PROGRESS_NAME = "verification";

/** Beside the columns of a row: its age in milliseconds, and its id as the database writes it. */
export const AGE_COLUMN = "leaseholdAgeMs";
export const ID_COLUMN = "leaseholdId";

/** How rows are ordered as source ids. Bounds can be ids that no row of the table can have: claims may say anything. */
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

/** Some drivers bring decimals as text. */
export function inspectedRow(row: Record<string, unknown>): InspectedRow {
  const { [AGE_COLUMN]: ageMs, [ID_COLUMN]: idText, ...columns } = row;
  return {
    row: columns,
    idText: String(idText),
    ageMs: ageMs === null || ageMs === undefined ? undefined : Number(ageMs),
  };
}
