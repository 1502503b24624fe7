/**
 * The location hints that the platform knows. The platform ignores an unknown hint without an error, and an
 * object never moves once it is created, so hints are checked against this list.
 */
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
