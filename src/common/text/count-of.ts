/** A number with its noun, such as `1 cell` or `3 cells`. */
export const countOf = (number: number, noun: string): string =>
  `${number} ${noun}${number === 1 ? "" : "s"}`;
