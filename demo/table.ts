/** A table in plain text. The first column is aligned to the left, all others to the right. */
export interface Table {
  title: string;
  head: string[];
  rows: (string | number)[][];
  /** Minimum width of the first column, so that several tables line up. */
  firstWidth?: number;
}

export const thousands = (value: number): string => value.toString().replaceAll(/\B(?=(\d{3})+$)/g, ",");

const GAP = "   ";

export function renderTable({ title, head, rows, firstWidth = 0 }: Table): string[] {
  const texts = [
    [title, ...head],
    ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? thousands(cell) : cell))),
  ];
  const columns = Math.max(...texts.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...texts.map((row) => row[column]?.length ?? 0), column === 0 ? firstWidth : 7),
  );
  const line = (row: readonly string[]): string => {
    const cells = widths.map((width, column) =>
      column === 0 ? (row[column] ?? "").padEnd(width) : (row[column] ?? "").padStart(width),
    );
    return cells.join(GAP).trimEnd();
  };
  const rule = "-".repeat(widths.reduce((sum, width) => sum + width, 0) + GAP.length * (columns - 1));
  const [header, ...body] = texts.map(line);
  return [header ?? "", rule, ...body];
}
