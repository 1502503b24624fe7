import { and, asc, gt, isNull, lte } from "drizzle-orm";
import { ok } from "../../../core/refusal.ts";
import { keys } from "../../schema.ts";
import type { Rule } from "./rule.ts";

const DAY_MS = 86_400_000;

/** The keys that one run looks at. */
const MAX_FINDINGS = 1_000;

/** A key that is not revoked expires soon. Keys that were made offline are unknown here. */
export const keyExpiring: Rule = {
  event: "key_expiring",
  resolved: (key) => `The key ${key} has expired or was revoked, or expires later than the threshold.`,
  holds: ({ value }, threshold) => value <= threshold,
  async read({ database }, { nowMs }, thresholds) {
    const untilMs = nowMs + Math.max(0, ...thresholds) * DAY_MS;
    const expiring = await database.run("read expiring keys", (orm) =>
      orm
        .select({ id: keys.keyId, role: keys.role, cell: keys.cellId, expiresAtMs: keys.expiresAtMs })
        .from(keys)
        .where(and(isNull(keys.revokedAtMs), gt(keys.expiresAtMs, nowMs), lte(keys.expiresAtMs, untilMs)))
        .orderBy(asc(keys.expiresAtMs))
        .limit(MAX_FINDINGS),
    );
    if (!expiring.ok) return expiring;
    const isComplete = expiring.value.length < MAX_FINDINGS;
    return ok({
      found: expiring.value.map(({ id, role, cell, expiresAtMs }) => ({
        subject: id,
        cell,
        value: (expiresAtMs - nowMs) / DAY_MS,
        text:
          `The ${role} key ${id}${cell === null ? "" : ` of cell ${cell}`} expires at ` +
          `${new Date(expiresAtMs).toISOString()}. Rotate it.`,
      })),
      isFine: () => isComplete,
    });
  },
};
