import type { Refusal } from "../kernel/refusal.ts";

/** The longest text of a failure that is stored and logged. */
const MAX_CHARS = 200;

/** The cause of a failure of a peer or of D1, short enough for a column. */
export const causeOf = (failure: { refusal: Refusal } | { cause: string }): string =>
  withoutQuotes("refusal" in failure ? failure.refusal.detail : failure.cause);

/** Runtime errors quote values, which may be names. So the text is cut at the first quotation mark. */
export const withoutQuotes = (text: string): string => (text.split('"')[0] ?? "").trim().slice(0, MAX_CHARS);
