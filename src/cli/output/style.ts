import type { Io } from "../framework/io.ts";

/** How text is marked on a terminal. Without one, and with NO_COLOR, the marks are empty. */
export interface Style {
  isTerminal: boolean;
  bold: (text: string) => string;
  good: (text: string) => string;
  bad: (text: string) => string;
}

const ESCAPE = "\u001B[";

export function styleOf({ out, env }: Pick<Io, "out" | "env">): Style {
  const isColored = out.isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const mark =
    (code: number) =>
    (text: string): string =>
      isColored ? `${ESCAPE}${code}m${text}${ESCAPE}0m` : text;
  return { isTerminal: out.isTerminal, bold: mark(1), good: mark(32), bad: mark(31) };
}
