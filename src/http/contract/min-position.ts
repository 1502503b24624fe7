import * as z from "zod";
import { positionsForm, readPositions, type Positions } from "../../router/positions.ts";

/** Positions that an answer must have reached (Q9), as pairs such as `3:4711,5:88`. */
export const minPosition = z
  .string()
  .transform((text, context): Positions => {
    const positions = readPositions(text);
    if (typeof positions !== "string") return positions;
    context.addIssue({ code: "custom", message: positions });
    return z.NEVER;
  })
  .meta({
    ...positionsForm,
    description:
      "Positions of shards that you have seen, as pairs `shard:position` with commas between them. If the " +
      "shard of a name has not reached its position, the name is unavailable. Pairs of other shards have " +
      "no effect.",
    examples: ["3:4711,5:88"],
  });
