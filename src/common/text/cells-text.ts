/** The ids that one line names. */
const NAMED = 10;

/** Such as `cell 7`, or `cells 7, 8`. */
export const cellsText = (ids: readonly string[]): string =>
  `cell${ids.length === 1 ? "" : "s"} ${ids.slice(0, NAMED).join(", ")}` +
  (ids.length > NAMED ? ` and ${ids.length - NAMED} more` : "");
