/** A row for a bulk statement, which takes its rows as one JSON array: D1 binds 100 values at most. */
export interface JsonRow {
  json: string;
}

/** A value bound to a statement of D1 holds 2 MB, and a character takes up to 3 bytes. A larger row goes alone. */
const STATEMENT_CHARS = 500_000;

/** Splits rows, in order, into what one statement takes. */
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
