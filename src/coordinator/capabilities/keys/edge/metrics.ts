import { asc } from "drizzle-orm";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Database } from "../../../d1/database.ts";
import { credentialUses, keys } from "../../../d1/schema.ts";
import { familiesOf, gauge, secondsOf } from "../../metrics/edge/family.ts";
import { isExpiringCertificate, isExpiringKey } from "./expiring-credentials.ts";

interface Expiries {
  /** When the next key, and the next certificate in use, expires. Null: there is none. */
  nextExpiryMs: Readonly<Record<"key" | "certificate", number | null>>;
}

declare module "../../metrics/edge/family.ts" {
  interface ProjectionMetrics extends Expiries {}
}

export async function readD1(database: Database, nowMs: number): Promise<Result<Expiries>> {
  const period = { fromMs: nowMs, untilMs: Number.MAX_SAFE_INTEGER };
  const ofKeys = await database.run("read next key", (orm) =>
    orm
      .select({ atMs: keys.expiresAtMs })
      .from(keys)
      .where(isExpiringKey(orm, period))
      .orderBy(asc(keys.expiresAtMs))
      .limit(1),
  );
  if (!ofKeys.ok) return ofKeys;
  const ofCertificates = await database.run("read next certificate", (orm) =>
    orm
      .select({ atMs: credentialUses.expiresAtMs })
      .from(credentialUses)
      .where(isExpiringCertificate(orm, period))
      .orderBy(asc(credentialUses.expiresAtMs))
      .limit(1),
  );
  if (!ofCertificates.ok) return ofCertificates;
  const [key] = ofKeys.value;
  const [certificate] = ofCertificates.value;
  return ok({ nextExpiryMs: { key: key?.atMs ?? null, certificate: certificate?.atMs ?? null } });
}

const CRON = "leasehold_cron_end_timestamp_seconds";

export const families = [
  familiesOf("directory", CRON, {
    leasehold_keys: gauge("Keys that the directory describes, expired ones included.", (of) => of.keys),
    leasehold_keys_revoked: gauge("The revoked ones of these keys.", (of) => of.revokedKeys),
  }),
  familiesOf("d1", CRON, {
    leasehold_next_expiry_timestamp_seconds: gauge(
      "When the next of the keys, or of the certificates that were used within a day, expires, since 1970. " +
        "Left out if there is none.",
      ({ nextExpiryMs }) =>
        (["key", "certificate"] as const).flatMap((kind) => {
          const expiry = secondsOf(nextExpiryMs[kind]);
          return expiry === null ? [] : [[{ kind }, expiry] as const];
        }),
      "kind",
    ),
  }),
];
