import { ok } from "../../../../kernel/refusal.ts";
import { isKnownFine, type Rule } from "./rule.ts";

const MINUTE_MS = 60_000;

/** A cell has not reported for some time. A cell that has never reported is not silent. */
export const cellSilent: Rule = {
  event: "cell_silent",
  resolved: (cell) => `Cell ${cell} reports again, or is being removed.`,
  holds: ({ value }, threshold) => value > threshold,
  async read(_, { statuses }) {
    const found = [...statuses].flatMap(([cell, status]) => {
      if (status === null || status === undefined) return [];
      const minutes = Math.floor((status.nowMs - status.reportedAtMs) / MINUTE_MS);
      const text = `Cell ${cell} has not reported for ${minutes} minutes.`;
      return [{ subject: cell, cell, value: minutes, text }];
    });
    return ok({ found, isFine: isKnownFine(statuses) });
  },
};
