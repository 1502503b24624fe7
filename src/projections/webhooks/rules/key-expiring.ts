import { and, asc, eq, gt, inArray, isNotNull, isNull, lte, not, notInArray, or } from "drizzle-orm";
import { ok } from "../../../core/refusal.ts";
import type { Orm } from "../../database.ts";
import { cells, keys, webhookAlerts } from "../../schema.ts";
import type { Rule } from "./rule.ts";

const DAY_MS = 86_400_000;

const EVENT = "key_expiring";

/** The keys that have alerts at a time. The next keys get theirs when some of these are over. */
const MAX_ALERTS = 1_000;

const COLUMNS = { id: keys.keyId, role: keys.role, cell: keys.cellId, expiresAtMs: keys.expiresAtMs };

/** The keys of removed cells are refused (X5). */
const isOfRemovedCell = (orm: Orm) =>
  inArray(keys.cellId, orm.select({ cell: cells.cellId }).from(cells).where(isNotNull(cells.removedAtMs)));

/** The keys that have an alert at some endpoint. */
const subjects = (orm: Orm) =>
  orm.select({ subject: webhookAlerts.subject }).from(webhookAlerts).where(eq(webhookAlerts.event, EVENT));

/**
 * A key that is not revoked expires soon. Keys that were made offline are unknown here. All keys that have an
 * alert are looked at, so that each alert ends.
 */
export const keyExpiring: Rule = {
  event: EVENT,
  resolved: (key) =>
    `The key ${key} has expired or was revoked, expires later than the threshold, or its cell was removed.`,
  holds: ({ value }, threshold) => value <= threshold,
  async read({ database }, { nowMs }, thresholds) {
    const untilMs = nowMs + Math.max(0, ...thresholds) * DAY_MS;
    const isExpiring = (orm: Orm) =>
      and(
        isNull(keys.revokedAtMs),
        gt(keys.expiresAtMs, nowMs),
        lte(keys.expiresAtMs, untilMs),
        or(isNull(keys.cellId), not(isOfRemovedCell(orm))),
      );
    const told = await database.run("read told keys", (orm) =>
      orm
        .selectDistinct({ subject: webhookAlerts.subject, key: COLUMNS })
        .from(webhookAlerts)
        .leftJoin(keys, and(eq(keys.keyId, webhookAlerts.subject), isExpiring(orm)))
        .where(eq(webhookAlerts.event, EVENT)),
    );
    if (!told.ok) return told;
    const others = await database.run("read expiring keys", (orm) =>
      orm
        .select(COLUMNS)
        .from(keys)
        .where(and(isExpiring(orm), notInArray(keys.keyId, subjects(orm))))
        .orderBy(asc(keys.expiresAtMs))
        .limit(Math.max(0, MAX_ALERTS - told.value.length)),
    );
    if (!others.ok) return others;
    const expiring = [...told.value.flatMap(({ key }) => key ?? []), ...others.value];
    return ok({
      found: expiring.map(({ id, role, cell, expiresAtMs }) => ({
        subject: id,
        cell,
        value: (expiresAtMs - nowMs) / DAY_MS,
        text:
          `The ${role} key ${id}${cell === null ? "" : ` of cell ${cell}`} expires at ` +
          `${new Date(expiresAtMs).toISOString()}. Rotate it.`,
      })),
      isFine: () => true,
    });
  },
};
