import { fanOut } from "../../../kernel/fan-out.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { MAX_CALLS } from "./range-handler.ts";

/** Where a walk over all shards continues. */
export interface WalkPosition<Cursor> {
  shard: number;
  /** Null: at the beginning of the shard. */
  cursor: Cursor | null;
}

export const FIRST_SHARD = { shard: 0, cursor: null } as const;

/** How much of a walk one request may do. */
export interface WalkBudget {
  /** Messages to shards. */
  calls: number;
  /** How often the walk waits for shards. Messages that are sent together count as one round. */
  rounds: number;
}

/** If a message takes 50 ms, these rounds take 10 s. */
const MAX_ROUNDS = 200;

export const walkBudget = (): WalkBudget => ({ calls: MAX_CALLS, rounds: MAX_ROUNDS });

interface WalkOptions<Cursor, Part> {
  shards: number;
  /** The number of shards that are asked at the same time. */
  width: number;
  from: WalkPosition<Cursor>;
  budget: WalkBudget;
  read: (shard: number, cursor: Cursor | null) => Promise<Result<Part>>;
  /** Called with every part once. */
  add: (part: Part) => void;
}

/**
 * Reads all shards, one message after another, as far as the budget goes. Returns where to continue, or null
 * if nothing is left. Several shards are asked for their first parts together. What follows on a shard is
 * read in order, so that a position has one cursor however many shards there are.
 */
export async function walkShards<Cursor, Part extends { next: Cursor | null }>({
  shards,
  width,
  from,
  budget,
  read,
  add,
}: WalkOptions<Cursor, Part>): Promise<Result<WalkPosition<Cursor> | null>> {
  let { shard, cursor } = from;
  while (shard < shards) {
    if (budget.calls <= 0 || budget.rounds <= 0) return ok({ shard, cursor });
    const [first, start] = [shard, cursor];
    const together = Math.min(width, shards - first, budget.calls);
    budget.calls -= together;
    budget.rounds -= 1;
    const parts = await fanOut([...Array(together).keys()], together, (index) =>
      read(first + index, index === 0 ? start : null),
    );
    for (let part of parts) {
      for (;;) {
        if (!part.ok) return part;
        add(part.value);
        cursor = part.value.next;
        if (cursor === null) break;
        if (budget.calls <= 0 || budget.rounds <= 0) return ok({ shard, cursor });
        budget.calls -= 1;
        budget.rounds -= 1;
        part = await read(shard, cursor);
      }
      shard += 1;
    }
  }
  return ok(null);
}

export const badCursor = (): Result<never> =>
  refused(
    "INVALID_ARGUMENT",
    "`cursor` doesn't belong to this call; send the `cursor` of the previous answer, with the same path " +
      "and body, and a key of the same role",
    { field: "cursor" },
  );
