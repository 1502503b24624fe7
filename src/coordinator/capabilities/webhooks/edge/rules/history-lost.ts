import { ok } from "../../../../kernel/refusal.ts";
import { cells } from "../../../../d1/schema.ts";
import type { Rule } from "./rule.ts";

const ledgerOf = (cell: string): string => `ledger-${cell}`;

/** A part lacks changes that others have seen of it, so it went back in time. */
export const historyLost: Rule = {
  event: "history_lost",
  resolved: (part) => `The part ${part} has its history again, or its loss was accepted.`,
  holds: () => true,
  async read({ database }, { parts }) {
    const copies = await database.run("read visited cells", (orm) =>
      orm.select({ cell: cells.cellId, closedAtMs: cells.closedAtMs }).from(cells),
    );
    if (!copies.ok) return copies;
    const visited = new Set(
      copies.value.filter(({ closedAtMs }) => closedAtMs === null).map(({ cell }) => ledgerOf(cell)),
    );
    const lost = [...parts].flatMap(([part, isLost]) => (isLost ? [part] : []));
    return ok({
      found: lost.toSorted().map((part) => ({
        subject: part,
        cell: /^ledger-(\d+)$/.exec(part)?.[1] ?? null,
        value: 1,
        text: `The part ${part} has lost changes, so it was set back. Reconcile it.`,
      })),
      // A cell that D1 doesn't have any more is not visited, and neither are most of the removed ones.
      isFine: (part) => parts.get(part) === false || (part.startsWith("ledger-") && !visited.has(part)),
    });
  },
};
