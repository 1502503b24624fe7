import type { SqlValue } from "./ports.ts";

/** A column as SQL declares it, with the type of its values. */
export interface Column<Value> {
  readonly declaration: string;
  /** Only for the type of a row. */
  readonly value?: Value;
}

type Columns = Readonly<Record<string, Column<SqlValue>>>;

export const column = <Value extends SqlValue>(declaration: string): Column<Value> => ({ declaration });

/** A row of a table. */
export type RowOf<Of extends { readonly columns: Columns }> = {
  [Name in keyof Of["columns"]]: Of["columns"][Name] extends Column<infer Value> ? Value : never;
};

/**
 * A table whose columns are declared once, for its statements and the type of its rows.
 *
 * @param options what follows the columns, such as `STRICT`
 */
export function table<Of extends Columns>(
  name: string,
  columns: Of,
  options: string,
  constraints: readonly string[] = [],
) {
  const names = Object.keys(columns);
  const declared = Object.entries(columns).map(([each, { declaration }]) => `${each} ${declaration}`);
  return {
    columns,
    names,
    /** The statement that makes the table. */
    create: `CREATE TABLE ${name} (\n  ${[...declared, ...constraints].join(",\n  ")}\n) ${options}`,
    /** The values of a row in the order of the columns. */
    valuesOf: (row: RowOf<{ columns: Of }>): SqlValue[] => names.map((each) => row[each] as SqlValue),
  };
}
