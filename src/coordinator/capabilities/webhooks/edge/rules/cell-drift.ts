import { ok } from "../../../../kernel/refusal.ts";
import { driftKinds } from "../../../status/status.ts";
import { isKnownFine, type Rule } from "./rule.ts";

/** The last verification of a cell found rows and claims that don't agree. */
export const cellDrift: Rule = {
  event: "cell_drift",
  resolved: (cell) => `The last verification of cell ${cell} found less drift than the threshold.`,
  holds: ({ value }, threshold) => value >= threshold,
  async read(_, { statuses }) {
    const found = [...statuses].flatMap(([cell, status]) => {
      const counts = status?.verification?.counts ?? {};
      const drift = driftKinds.flatMap((kind) => {
        const count = counts[kind] ?? 0;
        return count > 0 ? [{ kind, count }] : [];
      });
      if (drift.length === 0) return [];
      // The kinds don't add up, because a drift may have two of them.
      const value = Math.max(...drift.map(({ count }) => count));
      const kinds = drift.map(({ kind, count }) => `${count} ${kind}`).join(", ");
      return [{ subject: cell, cell, value, text: `The last verification of cell ${cell} found ${kinds}.` }];
    });
    return ok({ found, isFine: isKnownFine(statuses) });
  },
};
