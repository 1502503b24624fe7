import { and, asc, eq, notInArray, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/sqlite-core";
import { ok } from "../../../../kernel/refusal.ts";
import type { Role } from "../../../../kernel/role.ts";
import type { Orm } from "../../../../d1/database.ts";
import { isExpiringCertificate, isExpiringKey } from "../../../keys/edge/expiring-credentials.ts";
import { credentialUses, keys, webhookAlerts } from "../../../../d1/schema.ts";
import type { Finding, Rule } from "./rule.ts";

const DAY_MS = 86_400_000;

const EVENT = "credential_expiring";

/** The keys and certificates that have alerts at a time. The next get theirs when some of these are over. */
const MAX_ALERTS = 1_000;

/** Part of the ids of the authorities' alerts. The ids of keys and certificates are UUIDs. */
const AUTHORITY = "authority-";

const expiringIn = (orm: Orm, period: { fromMs: number; untilMs: number }) =>
  unionAll(
    orm
      .select({
        id: keys.keyId,
        kind: sql<"key" | "certificate">`'key'`.as("kind"),
        role: keys.role,
        cell: keys.cellId,
        expiresAtMs: keys.expiresAtMs,
      })
      .from(keys)
      .where(isExpiringKey(orm, period)),
    orm
      .select({
        id: credentialUses.keyId,
        kind: sql<"key" | "certificate">`'certificate'`.as("kind"),
        role: credentialUses.role,
        cell: credentialUses.cellId,
        expiresAtMs: sql<number>`${credentialUses.expiresAtMs}`.as("expires_at_ms"),
      })
      .from(credentialUses)
      .where(isExpiringCertificate(orm, period)),
  ).as("expiring");

const timeOf = (atMs: number): string => new Date(atMs).toISOString();

/** The keys and certificates that have an alert at some endpoint. */
const subjects = (orm: Orm) =>
  orm.select({ subject: webhookAlerts.subject }).from(webhookAlerts).where(eq(webhookAlerts.event, EVENT));

/**
 * A key that is not revoked, a certificate that was used within a day, or the certificate of an authority
 * expires soon. Keys that were made offline are unknown here. All that have an alert are looked at, so that
 * each alert ends.
 */
export const credentialExpiring: Rule = {
  event: EVENT,
  resolved: (subject) =>
    subject.startsWith(AUTHORITY)
      ? `The authority ${subject.slice(AUTHORITY.length)} was replaced or removed, or expires later than ` +
        "the threshold."
      : `The credential ${subject} has expired, was revoked or is not used any more, expires later than ` +
        "the threshold, or its cell was removed.",
  holds: ({ value }, threshold) => value <= threshold,
  async read({ database }, { nowMs, authorities }, thresholds) {
    const period = { fromMs: nowMs, untilMs: nowMs + Math.max(0, ...thresholds) * DAY_MS };
    // Looked up by id, because there may be very many that expire within a long threshold.
    const told = await database.run("read told credentials", (orm) =>
      orm
        .selectDistinct({
          subject: webhookAlerts.subject,
          kind: sql<"key" | "certificate">`iif(${keys.keyId} IS NULL, 'certificate', 'key')`.as("kind"),
          role: sql<Role | null>`coalesce(${keys.role}, ${credentialUses.role})`.as("role"),
          cell: sql<string | null>`coalesce(${keys.cellId}, ${credentialUses.cellId})`.as("cell"),
          expiresAtMs: sql<number | null>`coalesce(${keys.expiresAtMs}, ${credentialUses.expiresAtMs})`.as(
            "expires_at_ms",
          ),
        })
        .from(webhookAlerts)
        .leftJoin(keys, and(eq(keys.keyId, webhookAlerts.subject), isExpiringKey(orm, period)))
        .leftJoin(
          credentialUses,
          and(eq(credentialUses.keyId, webhookAlerts.subject), isExpiringCertificate(orm, period)),
        )
        .where(eq(webhookAlerts.event, EVENT)),
    );
    if (!told.ok) return told;
    const others = await database.run("read expiring credentials", (orm) => {
      const expiring = expiringIn(orm, period);
      return orm
        .select()
        .from(expiring)
        .where(notInArray(expiring.id, subjects(orm)))
        .orderBy(asc(expiring.expiresAtMs))
        .limit(Math.max(0, MAX_ALERTS - told.value.length));
    });
    if (!others.ok) return others;
    const toldOf = told.value.flatMap(({ subject: id, kind, role, cell, expiresAtMs }) =>
      role === null || expiresAtMs === null ? [] : [{ id, kind, role, cell, expiresAtMs }],
    );
    const found = [...toldOf, ...others.value].map(({ id, kind, role, cell, expiresAtMs }): Finding => ({
      subject: id,
      cell,
      value: (expiresAtMs - nowMs) / DAY_MS,
      text:
        `The ${role} ${kind} ${id}${cell === null ? "" : ` of cell ${cell}`} expires at ` +
        `${timeOf(expiresAtMs)}. ${kind === "key" ? "Rotate" : "Replace"} it.`,
    }));
    const ofAuthorities = (authorities ?? []).map(({ name, expiresAtMs }): Finding => ({
      subject: `${AUTHORITY}${name}`,
      cell: null,
      value: (expiresAtMs - nowMs) / DAY_MS,
      text:
        `The certificate of the authority ${name} ${expiresAtMs > nowMs ? "expires" : "expired"} at ` +
        `${timeOf(expiresAtMs)}. From then on, clients whose certificates it has signed are refused. Add ` +
        "its successor.",
    }));
    return ok({
      found: [...found, ...ofAuthorities],
      isFine: (subject) => authorities !== null || !subject.startsWith(AUTHORITY),
    });
  },
};
