import { ok } from "../../../../kernel/refusal.ts";
import type { Rule } from "./rule.ts";

/** A cell has leases that were granted long ago, are not decided, and were not renewed since. */
export const staleLeases: Rule = {
  event: "stale_leases",
  resolved: (cell) => `Cell ${cell} has fewer stale leases than the threshold again.`,
  holds: ({ value }, threshold) => value >= threshold,
  read: async (_, { stale }) =>
    ok({
      found: [...stale].flatMap(([cell, value]) =>
        value === null || value === 0
          ? []
          : [
              {
                subject: cell,
                cell,
                value,
                text: `Cell ${cell} has ${value} stale ${value === 1 ? "lease" : "leases"}.`,
              },
            ],
      ),
      // A cell without a ledger that is visited has no leases.
      isFine: (cell) => stale.get(cell) !== null,
    }),
};
