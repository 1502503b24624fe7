/** As the platform lists them; a hint that it does not know would silently place an object anywhere, for good. */
export const locationHints = [
  "wnam",
  "enam",
  "sam",
  "weur",
  "eeur",
  "apac",
  "apac-ne",
  "apac-se",
  "oc",
  "afr",
  "me",
] as const;

export type LocationHint = (typeof locationHints)[number];
