import { positionsOf } from "./positions.ts";

/** Positions that an answer must have reached (Q9). */
export const minPosition = positionsOf(
  "Positions of shards that you have seen, as pairs `shard:position` with commas between them. If the " +
    "shard of a name has not reached its position, the name is unavailable. Pairs of other shards have " +
    "no effect.",
);
