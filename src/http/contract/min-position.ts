import * as z from "zod";
import { MAX_SHARDS } from "../../core/placement.ts";

/** Positions that an answer must have reached, by the number of the shard (Q9). */
export type MinPositions = ReadonlyMap<number, number>;

/** As many shards as the lease of one batch usually touches. A cookie with this many pairs stays small. */
const MAX_PAIRS = 16;

const MAX_PAIR = `${MAX_SHARDS}:${Number.MAX_SAFE_INTEGER},`.length;

const PAIR = String.raw`(0|[1-9]\d{0,2}):(0|[1-9]\d{0,15})`;

/** Pairs such as `3:4711,5:88`. */
export const minPosition = z
  .string()
  .max(MAX_PAIRS * MAX_PAIR)
  .regex(
    new RegExp(`^${PAIR}(,${PAIR})*$`),
    "must be pairs of a shard and a position, such as 3:4711,5:88; or leave it out",
  )
  .transform((text, context): MinPositions => {
    const positions = parse(text);
    if (typeof positions !== "string") return positions;
    context.addIssue({ code: "custom", message: positions });
    return z.NEVER;
  })
  .meta({
    description:
      "Positions of shards that you have seen, as pairs `shard:position` with commas between them, at most " +
      `${MAX_PAIRS}. If the shard of a name has not reached its position, the call fails with UNAVAILABLE. ` +
      "Pairs of other shards have no effect.",
    examples: ["3:4711,5:88"],
  });

/** Returns what is wrong if the pairs contradict each other or have numbers that JSON cannot represent. */
function parse(text: string): MinPositions | string {
  const pairs = text.split(",");
  if (pairs.length > MAX_PAIRS) return `must have at most ${MAX_PAIRS} pairs`;
  const positions = new Map<number, number>();
  for (const pair of pairs) {
    const [shard = NaN, position = NaN] = pair.split(":").map(Number);
    if (!Number.isSafeInteger(position)) return `must have positions of at most ${Number.MAX_SAFE_INTEGER}`;
    if (positions.has(shard)) return `must have shard ${shard} only once`;
    positions.set(shard, position);
  }
  return positions;
}
