import type { BeginRequest } from "../../kernel/messages.ts";
import type { Sql } from "../../kernel/ports.ts";
import type { PreparedShard } from "./messages.ts";
import type { BySide, DigestedClaims, TransferParty, TransferRange } from "./range.ts";
import type { LeaseRow } from "../../kernel/ledger/lease-table.ts";

/**
 * The transfers to this cell. Their decisions are those of their leases, which are forgotten earlier.
 * `record` is a `TransferRecord`.
 */
export const TRANSFER_TABLES = [
  `CREATE TABLE IF NOT EXISTS transfer (
     id TEXT NOT NULL PRIMARY KEY,
     position INTEGER NOT NULL,
     state TEXT NOT NULL CHECK (state IN ('PREPARED', 'CUT', 'ABORTED')),
     from_cell TEXT NOT NULL,
     scope TEXT NOT NULL,
     record TEXT NOT NULL
   ) STRICT, WITHOUT ROWID`,
  "CREATE UNIQUE INDEX IF NOT EXISTS transfer_by_position ON transfer (position)",
  "CREATE INDEX IF NOT EXISTS transfer_by_source ON transfer (from_cell, position)",
  "CREATE INDEX IF NOT EXISTS open_transfer ON transfer (id) WHERE state = 'PREPARED'",
];

/** A step of a transfer as it is stored. */
export interface StoredStep {
  atMs: number;
  by: TransferParty;
  keyId: string;
  reason: string | null;
}

export type StoredReport = StoredStep & DigestedClaims;

/** Everything about a transfer that nothing searches for. */
export interface TransferRecord {
  prepared: StoredStep;
  accepted: StoredStep | null;
  decided: StoredStep | null;
  switchBackOf: string | null;
  /** True if the ledger got it back from the shards (H7). */
  isRebuilt: boolean;
  shards: PreparedShard[];
  reports: BySide<StoredReport | null>;
}

export interface StoredTransfer extends TransferRange {
  id: string;
  position: number;
  state: "PREPARED" | "CUT" | "ABORTED";
  record: TransferRecord;
}

interface TransferRow {
  id: string;
  position: number;
  state: StoredTransfer["state"];
  from_cell: string;
  scope: string;
  record: string;
}

/** They read no more rows than they return. */
export const transferStatements = {
  list: "SELECT * FROM transfer WHERE position < ? ORDER BY position DESC LIMIT ?",
  listFrom: "SELECT * FROM transfer WHERE from_cell = ? AND position < ? ORDER BY position DESC LIMIT ?",
} as const;

/** The SQL statements on the table of transfers. It makes no decisions. */
export class TransferStore {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  find(id: string): StoredTransfer | undefined {
    return this.#sql.all<TransferRow>("SELECT * FROM transfer WHERE id = ?", id).map(transferOf)[0];
  }

  /** Writes a transfer, or changes it. */
  write({ id, position, state, from, scope, record }: StoredTransfer): void {
    this.#sql.all(
      `INSERT INTO transfer (id, position, state, from_cell, scope, record) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET (state, record) = (excluded.state, excluded.record)`,
      id,
      position,
      state,
      from,
      scope,
      JSON.stringify(record),
    );
  }

  /** Returns the transfers that began before a position, the latest first. */
  list(before: number, from: string | null, limit: number): StoredTransfer[] {
    const rows =
      from === null
        ? this.#sql.all<TransferRow>(transferStatements.list, before, limit)
        : this.#sql.all<TransferRow>(transferStatements.listFrom, from, before, limit);
    return rows.map(transferOf);
  }

  countOpen(): number {
    return this.openPositions().length;
  }

  /** Returns the positions at which the prepared transfers began. Shards limit their number (Y2). */
  openPositions(): number[] {
    return this.#sql
      .all<{ position: number }>(
        "SELECT position FROM transfer INDEXED BY open_transfer WHERE state = 'PREPARED'",
      )
      .map(({ position }) => position);
  }

  /** Returns some prepared transfers. */
  openIds(limit: number): string[] {
    return this.#sql
      .all<{ id: string }>(
        `SELECT id FROM transfer INDEXED BY open_transfer WHERE state = 'PREPARED' ORDER BY id LIMIT ?`,
        limit,
      )
      .map(({ id }) => id);
  }

  /** Marks the prepared transfers: the ledger has gone back, and may have lost their decisions (Y10). */
  markRebuilt(): void {
    this.#sql.all(
      "UPDATE transfer SET record = json_set(record, '$.isRebuilt', json('true')) WHERE state = 'PREPARED'",
    );
  }

  /**
   * Forgets the oldest decided transfers of a source beyond the latest `most`. Those that were cut since
   * `sinceMs` stay, because they may be switched back (Y9).
   */
  forget(from: string, most: number, sinceMs: number): void {
    this.#sql.all(
      `DELETE FROM transfer
        WHERE from_cell = ?1 AND state <> 'PREPARED'
          AND (state = 'ABORTED' OR record ->> '$.decided.atMs' < ?3)
          AND position <= (SELECT position FROM transfer INDEXED BY transfer_by_source
                            WHERE from_cell = ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2)`,
      from,
      most,
      sinceMs,
    );
  }
}

const transferOf = ({
  id,
  position,
  state,
  from_cell: from,
  scope,
  record,
}: TransferRow): StoredTransfer => ({
  id,
  position,
  state,
  from,
  scope,
  record: JSON.parse(record) as TransferRecord,
});

/** Returns the record of a transfer whose lease is granted. */
export function recordOfGrant(
  { lease: id, transfer, caller }: BeginRequest,
  { position, created_at_ms: atMs }: LeaseRow,
  shards: PreparedShard[],
): StoredTransfer {
  if (transfer === undefined) throw new Error("the lease is no transfer");
  const { from, scope, party, reason, switchBackOf } = transfer;
  return {
    id,
    position,
    state: "PREPARED",
    from,
    scope,
    record: {
      prepared: { atMs, by: party, keyId: caller.keyId, reason },
      accepted: null,
      decided: null,
      switchBackOf,
      isRebuilt: false,
      shards,
      reports: { from: null, to: null },
    },
  };
}
