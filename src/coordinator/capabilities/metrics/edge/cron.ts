import { asc, count, desc, isNull, min } from "drizzle-orm";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Env } from "../../../env.ts";
import { Database } from "../../../d1/database.ts";
import { isExpiringCertificate, isExpiringKey } from "../../keys/edge/expiring-credentials.ts";
import { cells, credentialUses, cronRuns, keys } from "../../../d1/schema.ts";
import { listWebhooks } from "../../webhooks/edge/store.ts";

/** Short, because a scrape has to answer before its timeout. */
const TIMEOUT_MS = 1_000;

/** The latest runs of the cron that are looked at. */
const RUNS = 10;

/** A run that began longer ago and has no end was killed. The next run begins after a minute. */
const LONGEST_RUN_MS = 120_000;

interface CronEnd {
  startedAtMs: number;
  finishedAtMs: number;
  cellsPulled: number;
  cellsFailed: number;
  hasFailed: boolean;
}

/** What D1 tells about the cron and about the copies of the ledgers. */
export interface ProjectionMetrics {
  /** The latest run that finished. Null: none of the latest runs. */
  lastRun: CronEnd | null;
  /** The latest runs that failed or were killed. */
  failedRuns: number;
  /** When the copy that is furthest behind was complete. Null: there is no complete copy. */
  oldestCopyMs: number | null;
  cellsNeverCopied: number;
  /** Cells whose last copy failed. */
  cellsFailed: number;
  /** When the next key, and the next certificate in use, expires. Null: there is none. */
  nextExpiryMs: Readonly<Record<"key" | "certificate", number | null>>;
  webhooks: readonly WebhookMetrics[];
}

interface WebhookMetrics {
  id: string;
  isEnabled: boolean;
  delivered: number;
  failedAttempts: number;
  givenUp: number;
  waiting: number;
  /** 0: no message waits. */
  oldestAgeMs: number;
  /** 0: the last attempt has not failed. */
  failingMs: number;
}

/** Reads what the cron has left in D1. It takes five small reads. */
export async function projectionMetrics(env: Env, nowMs: number): Promise<Result<ProjectionMetrics>> {
  const database = new Database(env, { timeoutMs: TIMEOUT_MS, attempts: 1 });
  const runs = await database.run("read runs", (orm) =>
    orm.select().from(cronRuns).orderBy(desc(cronRuns.startedAtMs)).limit(RUNS),
  );
  if (!runs.ok) return runs;
  const copies = await database.run("read copies", (orm) =>
    orm
      .select({
        cells: count(),
        copied: count(cells.lastPulledAtMs),
        oldestCopyMs: min(cells.lastPulledAtMs),
        failed: count(cells.lastError),
      })
      .from(cells)
      // The ledgers of removed cells are not copied any more.
      .where(isNull(cells.closedAtMs)),
  );
  if (!copies.ok) return copies;
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
  const webhooks = await listWebhooks(database);
  if (!webhooks.ok) return webhooks;
  const [{ cells: known, copied, oldestCopyMs, failed } = NO_CELLS] = copies.value;
  const ends = runs.value.flatMap(({ finishedAtMs, error, ...run }): CronEnd[] =>
    finishedAtMs === null ? [] : [{ ...run, finishedAtMs, hasFailed: error !== null }],
  );
  const wasKilled = ({ startedAtMs, finishedAtMs }: (typeof runs.value)[number]): boolean =>
    finishedAtMs === null && startedAtMs < nowMs - LONGEST_RUN_MS;
  return ok({
    lastRun: ends[0] ?? null,
    failedRuns: runs.value.filter(wasKilled).length + ends.filter(({ hasFailed }) => hasFailed).length,
    oldestCopyMs,
    cellsNeverCopied: known - copied,
    cellsFailed: failed,
    nextExpiryMs: {
      key: ofKeys.value[0]?.atMs ?? null,
      certificate: ofCertificates.value[0]?.atMs ?? null,
    },
    webhooks: webhooks.value.map((each) => ({
      id: each.webhookId,
      isEnabled: each.isEnabled,
      delivered: each.delivered,
      failedAttempts: each.failedAttempts,
      givenUp: each.givenUp,
      waiting: each.queued,
      oldestAgeMs: ageOf(each.oldestMs, nowMs),
      failingMs: ageOf(each.failingSinceMs, nowMs),
    })),
  });
}

const ageOf = (atMs: number | null, nowMs: number): number => (atMs === null ? 0 : Math.max(0, nowMs - atMs));

/** An aggregate always has a row. */
const NO_CELLS = { cells: 0, copied: 0, oldestCopyMs: null, failed: 0 };
