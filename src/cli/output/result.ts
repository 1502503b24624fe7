import type { ExitCode } from "../framework/command-error.ts";
import { table, type Column } from "./table.ts";
import type { Style } from "./style.ts";

/** What a command has found or done. The framework prints it as text, `--json` or `--jsonl`. */
export interface Result {
  /** The document of `--json`. The framework adds `next_steps`. */
  document: object;
  /** The lines of `--jsonl`. Left out: the document is the only line. */
  lines?: readonly object[];
  text: (style: Style) => string;
  /** Commands that make sense next. */
  nextSteps?: readonly string[];
  /** For people, on standard error. */
  notes?: readonly string[];
  /** 0 by default. */
  exitCode?: ExitCode;
}

export interface Taken<Item> {
  items: readonly Item[];
  /** There are more items than the limit. */
  isCut: boolean;
}

/** Reads at most `limit` items of a listing, and looks whether there are more. */
export async function take<Item>(listing: AsyncIterable<Item>, limit: number): Promise<Taken<Item>> {
  const items: Item[] = [];
  for await (const item of listing) {
    if (items.length === limit) return { items, isCut: true };
    items.push(item);
  }
  return { items, isCut: false };
}

interface List<Item extends object> extends Taken<Item> {
  /** The field of the document, such as `leases`. */
  name: string;
  columns: readonly Column<Item>[];
  /** The sentence for an empty list. */
  empty: string;
  /** More fields of the document. */
  about?: object;
  nextSteps?: readonly string[];
  notes?: readonly string[];
  exitCode?: ExitCode;
}

export function listResult<Item extends object>(list: List<Item>): Result {
  const { name, items, isCut, columns, empty, about, nextSteps = [], notes = [], exitCode } = list;
  const messages = [
    ...notes,
    ...(items.length === 0 ? [empty] : []),
    ...(isCut ? [`The list was cut after ${items.length}: give a larger --limit to see more.`] : []),
  ];
  return {
    document: { [name]: items, cut: isCut, ...about },
    lines: items,
    text: (style) => (items.length === 0 ? "" : table(items, columns, style)),
    nextSteps,
    notes: messages,
    ...(exitCode === undefined ? {} : { exitCode }),
  };
}
