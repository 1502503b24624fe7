import type { Refusal } from "../core/refusal.ts";

/** What is kept and logged of a failure: enough to look further with. */
const MAX_CHARS = 200;

/** Why a peer or D1 gave no value, short enough for a column. */
export const causeOf = (failure: { refusal: Refusal } | { cause: string }): string =>
  withoutQuotes("refusal" in failure ? failure.refusal.detail : failure.cause);

/** Runtime errors quote what they stumbled over, and that may be a name. Everything from the first quotation mark on is left out. */
export const withoutQuotes = (text: string): string => (text.split('"')[0] ?? "").trim().slice(0, MAX_CHARS);
