import {
  and,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lte,
  not,
  notInArray,
  or,
  sql,
  type SQL,
} from "drizzle-orm";
import type { Orm } from "../../../d1/database.ts";
import { cells, credentialUses, keys } from "../../../d1/schema.ts";

const DAY_MS = 86_400_000;

/** A certificate that was used longer ago was probably replaced. */
const USED_MS = DAY_MS;

/** Machines renew certificates that are valid for less, often just before they expire. */
const MIN_LIFETIME_MS = 14 * DAY_MS;

/** What expires after `fromMs`, and until `untilMs`. */
interface Period {
  fromMs: number;
  untilMs: number;
}

/** The callers of removed cells are refused (X5). */
const removedCells = (orm: Orm) =>
  orm.select({ cell: cells.cellId }).from(cells).where(isNotNull(cells.removedAtMs));

/** Keys that are neither revoked nor of a removed cell. Those that were made offline are unknown. */
export const isExpiringKey = (orm: Orm, { fromMs, untilMs }: Period): SQL | undefined =>
  and(
    isNull(keys.revokedAtMs),
    gt(keys.expiresAtMs, fromMs),
    lte(keys.expiresAtMs, untilMs),
    or(isNull(keys.cellId), not(inArray(keys.cellId, removedCells(orm)))),
  );

/** Certificates that were used in the day before `fromMs`, and are neither revoked nor of a removed cell. */
export const isExpiringCertificate = (orm: Orm, { fromMs, untilMs }: Period): SQL | undefined =>
  and(
    // Written like the condition of the index.
    sql`${credentialUses.kind} = 'certificate'`,
    gt(credentialUses.expiresAtMs, fromMs),
    lte(credentialUses.expiresAtMs, untilMs),
    gte(credentialUses.lastUsedAtMs, fromMs - USED_MS),
    sql`${credentialUses.expiresAtMs} - ${credentialUses.issuedAtMs} >= ${MIN_LIFETIME_MS}`,
    // A revoked certificate is listed like a key.
    notInArray(credentialUses.keyId, orm.select({ id: keys.keyId }).from(keys)),
    or(isNull(credentialUses.cellId), not(inArray(credentialUses.cellId, removedCells(orm)))),
  );
