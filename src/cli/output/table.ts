import { escapeControls } from "../../common/text/escape.ts";
import type { Style } from "./style.ts";

export interface Column<Item> {
  title: string;
  /** Null is shown as "-". */
  value: (item: Item) => string | number | null | undefined;
  /** Numbers are aligned to the right. */
  isNumber?: boolean;
}

/** Longer texts are cut on a terminal, so that a row stays on its line. */
const WIDEST_CELL = 60;

/** Pads cells to columns. Cells show what comes from outside with control characters escaped. */
export function table<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
  { isTerminal, bold }: Style,
): string {
  const cut = isTerminal ? cutTo : (text: string): string => text;
  const rows = items.map((item) => columns.map(({ value }) => cut(cellOf(value(item)))));
  const widths = columns.map(({ title }, at) =>
    Math.max(widthOf(title), ...rows.map((row) => widthOf(row[at] ?? ""))),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => pad(cell, widths[at] ?? 0, columns[at]?.isNumber === true))
      .join("  ")
      .trimEnd();
  return [bold(line(columns.map(({ title }) => title))), ...rows.map(line)].join("\n");
}

/** Names and values below each other. Fields without a value are left out. */
export function fields(pairs: readonly (readonly [string, string | number | null | undefined])[]): string {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(0, ...shown.map(([name]) => widthOf(name)));
  return shown.map(([name, value]) => `${pad(name, width, false)}  ${cellOf(value)}`).join("\n");
}

const cellOf = (value: string | number | null | undefined): string =>
  value === null || value === undefined || value === "" ? "-" : escapeControls(String(value));

function cutTo(text: string): string {
  const chars = Array.from(text);
  return chars.length > WIDEST_CELL ? `${chars.slice(0, WIDEST_CELL - 1).join("")}…` : text;
}

function pad(text: string, width: number, isRight: boolean): string {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return isRight ? space + text : text + space;
}

/** Characters that take two columns of a terminal: East Asian scripts and emoji. */
const WIDE = /[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{Emoji_Presentation}\uff01-\uff60]/u;

/** The number of columns that a text takes. Marks are drawn above the character before them. */
function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += /\p{M}/u.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}
