import type { Limits } from "../../../common/limits.ts";
import type { Ports } from "../../kernel/ports.ts";
import { TOLD_INCARNATIONS } from "./history.ts";
import type { HistoryPoint } from "../../kernel/messages.ts";
import type { Knowledge, KnowledgeRequest } from "./messages.ts";
import type { LedgerStore } from "../../kernel/ledger/store.ts";

/** The number of outcomes that are examined, newest first. A shard rarely goes back by more. */
const MAX_OUTCOMES = 10_000;
/** The number of lease ids in an answer. */
const MAX_IDS = 10;

interface Part {
  readonly store: Pick<LedgerStore, "through">;
  readonly ports: Pick<Ports, "sql">;
  readonly limits: Pick<Limits, "outstandingLeases">;
}

/** Returns what this ledger knows of a shard that has gone back in time (H6). */
export function knowledgeOf(
  part: Part,
  seen: HistoryPoint | undefined,
  request: KnowledgeRequest,
): Knowledge {
  const lostOnes = (decided: 0 | 1, limit: number): string[] =>
    executionsOn(part, request.shard, decided, limit)
      .filter(({ incarnation, epoch }) => !isLeft(request, incarnation, epoch))
      .map(({ lease }) => lease);
  const outstanding = lostOnes(0, part.limits.outstandingLeases);
  return {
    seen: seen ?? null,
    outstanding: outstanding.length,
    decided: lostOnes(1, MAX_OUTCOMES).length,
    leases: outstanding.slice(0, MAX_IDS),
  };
}

/** Returns whether an execution is in what is left of the shard's history. */
function isLeft({ point, incarnations }: KnowledgeRequest, incarnation: number, epoch: number): boolean {
  if (point === null) return false;
  // The lease was rebuilt from holds which have moved, so nobody knows the incarnation that has granted it.
  if (incarnation === 0) return epoch <= point.position;
  if (incarnation === point.incarnation) return epoch <= point.position;
  const index = incarnations.findIndex(([each]) => each === incarnation);
  const next = incarnations[index - 1];
  if (index === -1)
    return incarnations.length >= TOLD_INCARNATIONS && incarnation < (incarnations.at(-1)?.[0] ?? 0);
  return next !== undefined && epoch < next[1];
}

/**
 * Returns the executions on one shard of the granted leases, or of the decided ones whose decision some
 * shard may not have applied: those of the newest `limit` rows.
 */
function executionsOn(
  { store, ports: { sql } }: Part,
  shard: number,
  decided: 0 | 1,
  limit: number,
): { lease: string; epoch: number; incarnation: number }[] {
  return sql.all(
    `SELECT lease, execution.value ->> 0 AS epoch, execution.value ->> 1 AS incarnation
       FROM (SELECT lease, epochs, created_position FROM lease WHERE pending = 1 AND decided = ?1
             UNION ALL
             SELECT lease, epochs, created_position FROM lease
              WHERE created_position > ?2 AND pending = 0 AND decided = ?1
             ORDER BY created_position DESC LIMIT ?3) AS newest, json_each(newest.epochs) AS execution
      WHERE execution.key = ?4`,
    decided,
    store.through,
    limit,
    String(shard),
  );
}
