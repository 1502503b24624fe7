import { gt } from "drizzle-orm";
import { ok } from "../../../../kernel/refusal.ts";
import { cells } from "../../../../d1/schema.ts";
import type { Rule } from "./rule.ts";

/** As long as the alert for Prometheus. */
const WINDOW_MS = 900_000;

/** A cell has saved rows whose lease is rolled back or unknown (U4). */
export const contradiction: Rule = {
  event: "contradiction",
  isMomentary: true,
  resolved: (cell) =>
    `No contradiction of cell ${cell} was counted for 15 minutes. Check that it was handled.`,
  holds: () => true,
  async read({ database }, { nowMs }) {
    const seen = await database.run("read contradictions", (orm) =>
      orm
        .select({ cell: cells.cellId, count: cells.contradictions })
        .from(cells)
        .where(gt(cells.contradictionSeenAtMs, nowMs - WINDOW_MS)),
    );
    if (!seen.ok) return seen;
    return ok({
      found: seen.value.map(({ cell, count }) => ({
        subject: cell,
        cell,
        value: count,
        text:
          `Cell ${cell} has saved rows whose lease is rolled back or unknown, so a name may have two ` +
          `owners. It is contradiction ${count} of this cell.`,
      })),
      isFine: () => true,
    });
  },
};
