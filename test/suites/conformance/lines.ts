/** Returns the lines of a complete answer. Each line ends with a line feed. */
export function linesIn(text: string): unknown[] {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("the last line must end with a line feed");
  return lines.map((line) => JSON.parse(line) as unknown);
}
