/** The lines of a whole answer, each of which ends with a line feed. */
export function linesIn(text: string): unknown[] {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("the last line has no end");
  return lines.map((line) => JSON.parse(line) as unknown);
}
