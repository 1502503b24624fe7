import type { Limits } from "../../../common/limits.ts";
import type { Ports } from "../../kernel/ports.ts";
import type { AuditedChange, AuditTrail } from "../../kernel/audit-trail.ts";
import type { Envelope, Operator } from "../../kernel/messages.ts";
import { refused, type Refusal } from "../../kernel/refusal.ts";

export const auditActions = [
  "add_cell",
  "change_cell",
  "freeze_cell",
  "drain_cell",
  "undrain_cell",
  "start_removal",
  "remove_cell",
  "unfreeze_cell",
  "mint_key",
  "revoke_key",
  "change_types",
  "change_identities",
  "start_growth",
  "cut_growth",
  "abort_growth",
  "start_restore",
  "end_restore",
  "finish_upgrade",
  "begin_lease",
  "commit_lease",
  "rollback_lease",
  "prepare_transfer",
  "accept_transfer",
  "report_transfer",
  "cut_transfer",
  "abort_transfer",
  "reconcile_part",
  "finish_part",
  "erase_history",
  "add_webhook",
  "change_webhook",
  "remove_webhook",
  "test_webhook",
] as const;

export type AuditAction = (typeof auditActions)[number];

export interface AuditEntry {
  id: string;
  atMs: number;
  keyId: string;
  requestId: string;
  action: AuditAction;
  cell: string | null;
  target: string;
  reason: string | null;
  /** JSON, or null. */
  before: string | null;
  /** JSON, or null. */
  after: string | null;
}

/** The entries that are asked for at a time. One takes at most 20 KB, and the platform limits a message. */
export const AUDIT_PAGE = 500;

/** Asks an object for the entries that it still has, the oldest first. */
export interface PullAudit extends Envelope {
  /** The last entry of a page that D1 has by now. The object drops it and all before it (O2). */
  copied: string | null;
  limit: number;
}

export interface AuditPage {
  entries: AuditEntry[];
  more: boolean;
}

/** The entries that were not copied yet, in the order of the changes. */
export const AUDIT_TABLE = `CREATE TABLE IF NOT EXISTS audit (
   number INTEGER NOT NULL PRIMARY KEY,
   id TEXT NOT NULL,
   at_ms INTEGER NOT NULL,
   key_id TEXT NOT NULL,
   request_id TEXT NOT NULL,
   action TEXT NOT NULL,
   cell TEXT,
   target TEXT NOT NULL,
   reason TEXT,
   before TEXT,
   after TEXT
 ) STRICT, WITHOUT ROWID`;

const ENTRY =
  "id, at_ms AS atMs, key_id AS keyId, request_id AS requestId, action, cell, target, reason, before, after";

/** The object whose changes are recorded. */
interface Audited {
  readonly ports: Pick<Ports, "sql" | "clock" | "randomness">;
  readonly limits: Limits;
  /** As messages to operators name it. */
  readonly name: string;
}

/**
 * What operators have changed in one object, and what cells have done with transfers (O1). The cron copies
 * the entries into D1. This table only has those that D1 may not have yet (O2).
 */
export class Audit implements AuditTrail {
  readonly #object: Audited;

  constructor(object: Audited) {
    this.#object = object;
  }

  /** The number of entries that D1 may not have yet. */
  get count(): number {
    return this.#object.ports.sql.all<{ n: number }>("SELECT count(*) AS n FROM audit")[0]?.n ?? 0;
  }

  get refusal(): Refusal | undefined {
    return this.#refusalAt(this.#object.limits.auditEntries);
  }

  get cellRefusal(): Refusal | undefined {
    return this.#refusalAt(this.#object.limits.auditEntries / 2);
  }

  #refusalAt(most: number): Refusal | undefined {
    const { auditEntries } = this.#object.limits;
    if (this.count < most) return undefined;
    return refused(
      "UNAVAILABLE",
      `${this.#object.name} has too many audit entries that the cron has not copied into D1 ` +
        `(LEASEHOLD_AUDIT_ENTRIES: ${auditEntries}); nothing was done, and nothing that needs an entry is ` +
        "done here until the cron runs and D1 answers",
      { reason: "AUDIT_FULL", retryAfterMs: 60_000 },
    ).refusal;
  }

  append(
    { keyId, requestId, reason }: Operator,
    { action, cell, target, before, after }: AuditedChange,
  ): void {
    const { sql, clock, randomness } = this.#object.ports;
    sql.all(
      `INSERT INTO audit (number, id, at_ms, key_id, request_id, action, cell, target, reason, before, after)
       VALUES ((SELECT coalesce(max(number), 0) + 1 FROM audit), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      randomness.uuid(),
      clock.now(),
      keyId,
      requestId,
      action,
      cell,
      target,
      reason,
      before && JSON.stringify(before),
      after && JSON.stringify(after),
    );
  }

  page(limit: number): AuditPage {
    const entries = this.#object.ports.sql.all<AuditEntry>(
      `SELECT ${ENTRY} FROM audit ORDER BY number LIMIT ?`,
      limit + 1,
    );
    return { entries: entries.slice(0, limit), more: entries.length > limit };
  }

  /**
   * Drops an entry that D1 has, and all before it. D1 got those with it, or earlier. If the entry is not here
   * any more, the message is a late one, and nothing is dropped.
   */
  forget(copied: string): void {
    this.#object.ports.sql.all(
      "DELETE FROM audit WHERE number <= (SELECT number FROM audit WHERE id = ?)",
      copied,
    );
  }
}
