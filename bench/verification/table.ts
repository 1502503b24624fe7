/** Joins lines of Markdown. */
export const lines = (...all: readonly string[]): string => all.join("\n");

export const whole = (figure: number): string => Math.round(figure).toLocaleString("en");

/** A Markdown table. The first `names` columns contain text, and all others figures. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], names: number): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return lines(line(head), line(head.map((_, index) => (index < names ? "---" : "---:"))), ...rows.map(line));
}
