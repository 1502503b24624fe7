/**
 * A row for a bulk statement. D1 binds at most 100 values per statement, so all rows are bound as one JSON
 * array.
 */
export interface JsonRow {
  json: string;
}

/**
 * The characters per statement. D1 limits a bound value to 2 MB, and a character takes up to 3 bytes. A
 * longer row goes into a statement of its own.
 */
const STATEMENT_CHARS = 500_000;

/** Groups rows, in order, so that each group fits into one statement. */
export function inStatements<Row extends JsonRow>(rows: readonly Row[]): [Row, ...Row[]][] {
  const groups: [Row, ...Row[]][] = [];
  let room = 0;
  for (const row of rows) {
    const group = groups.at(-1);
    if (group === undefined || row.json.length > room) {
      groups.push([row]);
      room = STATEMENT_CHARS - row.json.length;
    } else {
      group.push(row);
      room -= row.json.length;
    }
  }
  return groups;
}

export const jsonArray = (rows: readonly JsonRow[]): string => `[${rows.map(({ json }) => json).join(",")}]`;
