import { and, desc, eq, getTableColumns, gte, isNotNull, lt, sql, type SQL } from "drizzle-orm";
import { ask } from "../../../kernel/ask.ts";
import { fanOut } from "../../../kernel/fan-out.ts";
import { AUDIT_PAGE, type AuditAction, type AuditEntry, type AuditPage, type PullAudit } from "../audit.ts";
import type { Answer } from "../../../kernel/ports.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Env } from "../../../env.ts";
import { CALL_TIMEOUT_MS, hasRoom, type CronRun } from "../../../cron/cron-run.ts";
import { Database, causeOf, inStatements, jsonArray, type JsonRow } from "../../../d1/database.ts";
import { audit, cronRuns, keys } from "../../../d1/schema.ts";

/** An object that may have audit entries. */
interface AuditSource {
  /** Its name in the audit: `directory`, `ledger-7` or `shard-3`. */
  part: string;
  pull: (message: PullAudit) => Promise<Result<AuditPage>>;
}

/** What a ledger or shard has told of its entries. Null: it has not said. */
interface HasEntries {
  auditEntries: number | null;
}

/**
 * Copies the audit entries of the directory, if it answers, and of ledgers and shards that have some. Returns
 * whether D1 has all of them now.
 */
export async function copyAudits(
  run: CronRun,
  doesAnswer: boolean,
  visits: readonly ({ cell: string } & HasEntries)[],
  works: readonly ({ shard: number } & HasEntries)[],
): Promise<Result<boolean>> {
  const { objects, limits } = run;
  const directory: AuditSource = {
    part: "directory",
    pull: (message) => objects.directory().pullAudit(message),
  };
  const ledgers = visits
    .filter(({ auditEntries }) => auditEntries !== null && auditEntries > 0)
    .map(({ cell }): AuditSource => ({
      part: `ledger-${cell}`,
      pull: (message) => objects.ledger(cell).pullAudit(message),
    }));
  const shards = works
    .filter(({ auditEntries }) => auditEntries !== null && auditEntries > 0)
    .map(({ shard }): AuditSource => ({
      part: `shard-${shard}`,
      pull: (message) => objects.shard(shard).pullAudit(message),
    }));
  const sources = [...(doesAnswer ? [directory] : []), ...ledgers, ...shards];
  const copied = await fanOut(sources, limits.fanOut, (source) => copyAudit(run, source));
  const failed = copied.find((result) => !result.ok);
  if (failed !== undefined) return failed;
  const areAllKnown = doesAnswer && [...visits, ...works].every(({ auditEntries }) => auditEntries !== null);
  return ok(areAllKnown && copied.every((result) => result.ok && result.value));
}

/**
 * Copies the entries of one object into D1, and lets it drop those that D1 has (O2). Returns whether D1 has
 * all of them. The next run continues if this one has no room.
 */
async function copyAudit(run: CronRun, { part, pull }: AuditSource): Promise<Result<boolean>> {
  const { database, envelope, runtime } = run;
  let copied: string | null = null;
  while (hasRoom(run)) {
    const message: PullAudit = { ...envelope, copied, limit: AUDIT_PAGE };
    const answer: Answer<AuditPage> = await ask(runtime.clock, CALL_TIMEOUT_MS, async () => pull(message));
    if (answer.kind !== "ok") {
      runtime.log("audit_failed", { part, error: causeOf(answer) });
      return ok(false);
    }
    const { entries } = answer.value;
    for (const rows of inStatements(entries.map((entry) => rowOf(part, entry)))) {
      const saved = await database.run("save audit", (orm) => orm.run(insertEntries(rows)));
      if (!saved.ok) return saved;
    }
    const last = entries.at(-1);
    if (last === undefined) return ok(true);
    copied = last.id;
  }
  return ok(false);
}

const rowOf = (part: string, entry: AuditEntry): JsonRow => ({ json: JSON.stringify({ ...entry, part }) });

/** An entry never changes, so one that is copied again changes nothing. */
const insertEntries = (rows: readonly JsonRow[]) => sql`
  INSERT INTO audit (at_ms, id, part, key_id, request_id, action, cell_id, target, reason, before, after)
  SELECT value ->> 'atMs', value ->> 'id', value ->> 'part', value ->> 'keyId', value ->> 'requestId',
         value ->> 'action', value ->> 'cell', value ->> 'target', value ->> 'reason', value ->> 'before',
         value ->> 'after'
  FROM json_each(${jsonArray(rows)})
  WHERE true
  ON CONFLICT DO NOTHING`;

/** The rows that one statement deletes, and the statements of one run. */
const STEP_ROWS = 10_000;
const MAX_STEPS = 10;

/** Deletes entries that are older than `auditRetentionS` (O2). The work of one run is limited. */
export async function pruneAudit({ database, limits }: CronRun, nowMs: number): Promise<Result<null>> {
  const beforeMs = nowMs - limits.auditRetentionS * 1_000;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const pruned = await database.run("prune audit", (orm) =>
      orm.run(sql`
        DELETE FROM audit WHERE (at_ms, id) IN (
          SELECT at_ms, id FROM audit WHERE at_ms < ${beforeMs} ORDER BY at_ms LIMIT ${STEP_ROWS}
        )`),
    );
    if (!pruned.ok) return pruned;
    if (pruned.value.meta.changes < STEP_ROWS) break;
  }
  return ok(null);
}

/** An entry's position in the list, which begins with the latest entry. */
export interface AuditPosition {
  atMs: number;
  id: string;
}

export interface AuditQuery {
  keyId?: string;
  action?: AuditAction;
  cell?: string;
  target?: string;
  /** Inclusive. */
  afterMs?: number;
  /** Exclusive. */
  beforeMs?: number;
  /** The list continues with the entries before this one. */
  last?: AuditPosition;
  limit: number;
}

export type ListedEntry = typeof audit.$inferSelect & {
  /** The note of the key. Null: it has none, or was made offline. */
  keyNote: string | null;
};

export interface ListedAudit {
  entries: ListedEntry[];
  more: boolean;
  /** Every entry that was made before this time is in D1. Null: no run has copied all entries so far. */
  completeThroughMs: number | null;
}

/** Shorter than for the cron, because a person waits for this answer. */
const DATABASE_MS = 3_000;

/** Lists entries, the latest first. */
export async function listAudit(env: Env, query: AuditQuery): Promise<Result<ListedAudit>> {
  const database = new Database(env, { timeoutMs: DATABASE_MS });
  const { limit } = query;
  // It is read first, because a run may copy more entries between the two reads.
  const complete = await database.run("read audit freshness", (orm) =>
    orm
      .select({ atMs: cronRuns.auditCopiedAtMs })
      .from(cronRuns)
      .where(isNotNull(cronRuns.auditCopiedAtMs))
      .orderBy(desc(cronRuns.startedAtMs))
      .limit(1),
  );
  if (!complete.ok) return complete;
  const found = await database.run("read audit", (orm) =>
    orm
      .select({ ...getTableColumns(audit), keyNote: sql<string | null>`${keys.note}`.as("key_note") })
      .from(audit)
      .leftJoin(keys, eq(keys.keyId, audit.keyId))
      .where(and(...conditionsOf(query)))
      .orderBy(desc(audit.atMs), desc(audit.id))
      .limit(limit + 1),
  );
  if (!found.ok) return found;
  return ok({
    entries: found.value.slice(0, limit),
    more: found.value.length > limit,
    completeThroughMs: complete.value[0]?.atMs ?? null,
  });
}

function conditionsOf({ keyId, action, cell, target, afterMs, beforeMs, last }: AuditQuery): SQL[] {
  return [
    ...(keyId === undefined ? [] : [eq(audit.keyId, keyId)]),
    ...(action === undefined ? [] : [eq(audit.action, action)]),
    ...(cell === undefined ? [] : [eq(audit.cellId, cell)]),
    ...(target === undefined ? [] : [eq(audit.target, target)]),
    ...(afterMs === undefined ? [] : [gte(audit.atMs, afterMs)]),
    ...(beforeMs === undefined ? [] : [lt(audit.atMs, beforeMs)]),
    ...(last === undefined ? [] : [sql`(${audit.atMs}, ${audit.id}) < (${last.atMs}, ${last.id})`]),
  ];
}
