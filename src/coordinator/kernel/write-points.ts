/**
 * Every durable write of the kernel, by the kind of object. A crash, a lost answer or a repeated delivery can
 * happen before and after each of them. The fault tests inject all of these at every write point, and fail if
 * a write point has no test.
 */
export const kernelWrites = {
  /** Writes of any object before its first use. */
  any: ["migrate", "raise_format", "keep_name", "confirm_placement"],
  ledger: ["raise_incarnation", "grant", "decide", "advance_applied", "prune"],
  shard: ["exchange", "clear"],
  directory: [],
} as const;

/**
 * The names of the durable writes. Each capability adds its own.
 *
 * @public
 */
export interface WritePoints extends Record<(typeof kernelWrites)[keyof typeof kernelWrites][number], true> {}

export type WritePoint = keyof WritePoints;
