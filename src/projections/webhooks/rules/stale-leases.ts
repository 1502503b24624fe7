import { count, lt } from "drizzle-orm";
import { ok } from "../../../core/refusal.ts";
import { cells, openLeases } from "../../schema.ts";
import type { Rule } from "./rule.ts";

/** A copy that is older than this says nothing about the leases of now. */
const FRESH_MS = 180_000;

/** A cell has leases that were granted long ago, are not decided, and were not renewed since. */
export const staleLeases: Rule = {
  event: "stale_leases",
  resolved: (cell) => `Cell ${cell} has fewer stale leases than the threshold again.`,
  holds: ({ value }, threshold) => value >= threshold,
  async read({ database, limits }, { nowMs, spared }) {
    const copies = await database.run("read fresh cells", (orm) =>
      orm.select({ cell: cells.cellId, copiedAtMs: cells.lastPulledAtMs }).from(cells),
    );
    if (!copies.ok) return copies;
    const known = new Set(copies.value.map(({ cell }) => cell));
    const fresh = new Set(
      copies.value
        .filter(({ copiedAtMs }) => copiedAtMs !== null && copiedAtMs > nowMs - FRESH_MS)
        .map(({ cell }) => cell),
    );
    const stale = await database.run("read stale counts", (orm) =>
      orm
        .select({ cell: openLeases.cellId, count: count() })
        .from(openLeases)
        .where(lt(openLeases.createdAtMs, nowMs - limits.staleS * 1_000))
        .groupBy(openLeases.cellId),
    );
    if (!stale.ok) return stale;
    // D1 doesn't know of renewals. Of a cell whose ledger has not said how many there are, nothing is known.
    const isUnclear = (cell: string): boolean => (spared.get(cell) ?? null) === null;
    const old = new Map(stale.value.map(({ cell, count: leasesOfCell }) => [cell, leasesOfCell]));
    const found = [...old]
      .filter(([cell]) => fresh.has(cell) && !isUnclear(cell))
      .map(([cell, all]) => ({ cell, value: Math.max(0, all - (spared.get(cell) ?? 0)) }))
      .map(({ cell, value }) => ({
        subject: cell,
        cell,
        value,
        text: `Cell ${cell} has ${value} stale ${value === 1 ? "lease" : "leases"}.`,
      }));
    return ok({
      found,
      // A cell that D1 doesn't have any more has no leases.
      isFine: (cell) => !known.has(cell) || (fresh.has(cell) && !(old.has(cell) && isUnclear(cell))),
    });
  },
};
