import {
  cellStates,
  type CellState,
  type HistoryPoint,
  type Lease,
  type LeaseCounts,
  type LeaseState,
  type PlacedLease,
  type ShardPositions,
  type StoredRemoval,
} from "../messages.ts";
import { laterPoint } from "../history.ts";
import type { TransferRange } from "../transfer/range.ts";
import { readMeta, readMetaNumber, writeMeta } from "../meta.ts";
import type { Sql } from "../ports.ts";
import { decodeExecutions } from "./executions.ts";
import { decodePayload } from "./payload.ts";
import { ChangeTimes } from "./change-times.ts";
import type { Positions } from "./position.ts";

export interface LeaseRow extends LeaseCounts {
  lease: string;
  /** 0: granted. 1: an outcome. 2: a fence of a lease without a running begin, which is forgotten sooner. */
  decided: 0 | 1 | 2;
  position: number;
  created_position: number;
  created_at_ms: number;
  decided_at_ms: number | null;
  state: LeaseState;
  fence: 0 | 1;
  incarnation: number;
  counter: number;
  /**
   * The executions of the grant (executions.ts). Dropped together with the payload once the decision is
   * applied everywhere (S2).
   */
  epochs: string | null;
  /** The number of shards at the grant. Names of the lease may have moved to shards that were added since. */
  shards: number;
  payload: string | null;
  payload_hash: string;
  decided_by: string | null;
  /** The id of the key, if an operator decided. */
  decided_by_key: string | null;
  reason: string | null;
  /** When the cell said last that it still works on the lease (C8). */
  renewed_at_ms: number | null;
  renewal_reason: string | null;
  /** The source and the scope of a transfer (`encodeRange`). Null: an ordinary lease. */
  transfer: string | null;
}

/** The columns of most new leases. */
export const plainLease = { renewed_at_ms: null, renewal_reason: null, transfer: null } as const;

export const encodeRange = ({ from, scope }: TransferRange): string => JSON.stringify([from, scope]);

export function decodeRange(stored: string): TransferRange {
  const [from, scope] = JSON.parse(stored) as [string, string];
  return { from, scope };
}

/** Drops the payload, which neither an answer nor a decision has. */
export const withoutBatch = (row: LeaseRow): LeaseRow => ({ ...row, payload: null });

type Counter = "cell_state_set_at_ms" | "cell_state_version" | "pruned_position" | "refused_through_ms";

/** The kinds of rows, each with its own range in the index `lease_by_position`. */
const KINDS = [0, 1, 2] as const;
type Kind = (typeof KINDS)[number];

/** A decided lease, as far as pruning needs it. */
export interface OutcomeRow {
  lease: string;
  position: number;
  decided_at_ms: number;
  /** 1 if the decision is applied on every shard, or has nothing to apply. */
  applied: 0 | 1;
}

/**
 * How far decisions are applied, with what this ledger has seen of the shards. Both are one value, because a
 * decision that is not told to the shards again must not be the last trace of what they have done (H3).
 */
interface Applied {
  /** All decisions up to this position are applied on every shard. */
  position: number;
  /** The newest point of each shard that this ledger had seen: incarnation and position, by shard. */
  shards: Record<string, [incarnation: number, position: number]>;
  /** The ledger's last position when the points were stored. Later rows may have newer points. */
  through: number;
  /** The newest point of the directory that this ledger had seen: incarnation and position. */
  directory?: [incarnation: number, position: number];
}

/** All columns except the payload, for listings and replays. */
const HEAD = `lease, decided, position, created_position, created_at_ms, decided_at_ms, state, fence,
  incarnation, counter, epochs, shards, NULL AS payload, payload_hash, creates, destroys, replaces, missing,
  decided_by, decided_by_key, reason, renewed_at_ms, renewal_reason, transfer`;

/** The SQL statements on the ledger's tables. It makes no decisions. */
export class LedgerStore {
  readonly times: ChangeTimes;
  readonly #sql: Sql;
  readonly #cell: string;
  // Copies in memory, because every call reads these. Only this class writes them.
  #cellState: CellState;
  #revokedKeys: ReadonlySet<string>;
  #applied: Applied;
  #refusedThroughMs: number;

  constructor(sql: Sql, cell: string) {
    this.#sql = sql;
    this.#cell = cell;
    const state = readMeta(sql, "cell_state");
    this.#cellState = cellStates.find((known) => known === state) ?? "ACTIVE";
    this.#revokedKeys = this.#readRevokedKeys();
    const applied = readMeta(sql, "applied");
    this.#applied =
      typeof applied === "string"
        ? (JSON.parse(applied) as Applied)
        : { position: 0, shards: {}, through: 0 };
    this.#refusedThroughMs = this.number("refused_through_ms");
    this.times = new ChangeTimes(this);
  }

  /** Returns the row of a lease without its payload. */
  find(lease: string): LeaseRow | undefined {
    return this.#sql.all<LeaseRow>(`SELECT ${HEAD} FROM lease WHERE lease = ?`, lease)[0];
  }

  findWhole(lease: string): LeaseRow | undefined {
    return this.#sql.all<LeaseRow>("SELECT * FROM lease WHERE lease = ?", lease)[0];
  }

  insert(row: LeaseRow): void {
    this.#sql.all(
      `INSERT INTO lease (lease, decided, position, created_position, created_at_ms, decided_at_ms, state,
                          fence, incarnation, counter, epochs, shards, payload, payload_hash, creates,
                          destroys, replaces, missing, decided_by, decided_by_key, reason, transfer)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.lease,
      row.decided,
      row.position,
      row.created_position,
      row.created_at_ms,
      row.decided_at_ms,
      row.state,
      row.fence,
      row.incarnation,
      row.counter,
      row.epochs,
      row.shards,
      row.payload,
      row.payload_hash,
      row.creates,
      row.destroys,
      row.replaces,
      row.missing,
      row.decided_by,
      row.decided_by_key,
      row.reason,
      row.transfer,
    );
  }

  /** Whether a lease still has its batch, because some shard may not have applied its decision (S2). */
  hasBatch(lease: string): boolean {
    const sql = "SELECT 1 FROM lease WHERE lease = ? AND payload IS NOT NULL";
    return this.#sql.all(sql, lease).length > 0;
  }

  /** Deletes a lease that the same transaction writes again. */
  delete(lease: string): void {
    this.#sql.all("DELETE FROM lease WHERE lease = ?", lease);
  }

  decide(row: LeaseRow): void {
    this.#sql.all(
      `UPDATE lease SET decided = 1, state = ?, position = ?, decided_at_ms = ?, decided_by = ?,
                        decided_by_key = ?, reason = ?
        WHERE lease = ? AND decided = 0`,
      row.state,
      row.position,
      row.decided_at_ms,
      row.decided_by,
      row.decided_by_key,
      row.reason,
      row.lease,
    );
  }

  renew(lease: string, nowMs: number, reason: string): void {
    this.#sql.all(
      "UPDATE lease SET renewed_at_ms = ?, renewal_reason = ? WHERE lease = ? AND decided = 0",
      nowMs,
      reason,
      lease,
    );
  }

  /**
   * Returns granted leases after a position, in the order of their grants. Transfers are none of them: nobody
   * but their own calls decides them (Y1). The position of a granted lease is its created position.
   */
  granted(afterPosition: number, limit: number, throughPosition = Number.MAX_SAFE_INTEGER): LeaseRow[] {
    return this.#sql.all<LeaseRow>(
      `SELECT ${HEAD} FROM lease WHERE decided = 0 AND position > ? AND position <= ? AND transfer IS NULL
        ORDER BY position LIMIT ?`,
      afterPosition,
      throughPosition,
      limit,
    );
  }

  /** Returns granted leases and prepared transfers after a position, in the order of their grants. */
  undecided(afterPosition: number, limit: number): LeaseRow[] {
    return this.#sql.all<LeaseRow>(
      `SELECT ${HEAD} FROM lease WHERE decided = 0 AND position > ? ORDER BY position LIMIT ?`,
      afterPosition,
      limit,
    );
  }

  /**
   * Returns decisions after a position that some shard may not have applied yet. A fence has nothing to
   * apply.
   */
  unapplied(afterPosition: number, limit: number): { lease: string; position: number }[] {
    return this.#sql.all(
      `SELECT lease, position FROM lease
        WHERE decided = 1 AND position > ? AND payload IS NOT NULL ORDER BY position LIMIT ?`,
      afterPosition,
      limit,
    );
  }

  /**
   * Drops the payloads and epochs of decisions that are applied on every shard (S2). The `+` keeps SQLite
   * from reading every decision through `lease_by_position`.
   */
  dropBatches(leases: readonly string[]): void {
    this.#sql.all(
      `UPDATE lease SET payload = NULL, epochs = NULL
        WHERE lease IN (SELECT value FROM json_each(?)) AND +decided = 1`,
      JSON.stringify(leases),
    );
  }

  /** Returns outcomes (1) or fences (2) after a position, oldest first. */
  outcomes(kind: 1 | 2, afterPosition: number, limit: number): OutcomeRow[] {
    return this.#sql.all<OutcomeRow>(
      `SELECT lease, position, decided_at_ms, payload IS NULL AS applied FROM lease
        WHERE decided = ? AND position > ? ORDER BY position LIMIT ?`,
      kind,
      afterPosition,
      limit,
    );
  }

  /** Deletes outcomes that are applied everywhere, and notes up to which position outcomes were deleted. */
  forget(outcomes: readonly OutcomeRow[]): void {
    this.#sql.all(
      `DELETE FROM lease WHERE lease IN (SELECT value FROM json_each(?))
          AND decided > 0 AND payload IS NULL`,
      JSON.stringify(outcomes.map(({ lease }) => lease)),
    );
    const through = Math.max(...outcomes.map(({ position }) => position));
    if (through > this.number("pruned_position")) this.setNumber("pruned_position", through);
  }

  /** Returns the number of granted leases (0), outcomes (1) or fences (2). Reads only the index. */
  count(kind: Kind): number {
    return this.#sql.all<{ n: number }>("SELECT count(*) AS n FROM lease WHERE decided = ?", kind)[0]?.n ?? 0;
  }

  lastDecidedPosition(): number {
    return this.#last(1)?.position ?? 0;
  }

  /** All decisions up to this position are applied on every shard. */
  get appliedPosition(): number {
    return this.#applied.position;
  }

  setApplied(
    position: number,
    shards: ReadonlyMap<number, HistoryPoint>,
    directory: HistoryPoint | undefined,
  ): void {
    this.#applied = {
      position,
      shards: Object.fromEntries(
        [...shards].map(([shard, point]) => [shard, [point.incarnation, point.position]]),
      ),
      through: this.lastPosition(),
      ...(directory === undefined ? {} : { directory: [directory.incarnation, directory.position] }),
    };
    writeMeta(this.#sql, "applied", JSON.stringify(this.#applied));
  }

  /** The newest point of the directory that is stored. */
  get directoryPoint(): HistoryPoint | undefined {
    const { directory } = this.#applied;
    return directory === undefined ? undefined : { incarnation: directory[0], position: directory[1] };
  }

  /** Returns the newest point of each shard that this ledger has stored, in its leases or with `applied`. */
  shardPoints(): Map<number, HistoryPoint> {
    const { shards, through } = this.#applied;
    const points = new Map(
      Object.entries(shards).map(([shard, [incarnation, position]]) => [
        Number(shard),
        { incarnation, position },
      ]),
    );
    for (const decided of [0, 1]) {
      // SQLite takes the other columns from the row with the maximum. The incarnation is unknown (0) in a
      // lease that was rebuilt from holds which have moved. Such a row must not hide an older point.
      const rows = this.#sql.all<{ shard: string; position: number; incarnation: number }>(
        `SELECT execution.key AS shard, max(execution.value ->> 0) AS position,
                execution.value ->> 1 AS incarnation
           FROM lease, json_each(lease.epochs) AS execution
          WHERE decided = ? AND lease.position > ? AND execution.value ->> 1 > 0 GROUP BY execution.key`,
        decided,
        through,
      );
      for (const { shard, position, incarnation } of rows)
        points.set(Number(shard), laterPoint(points.get(Number(shard)), { incarnation, position }));
    }
    return points;
  }

  /** Returns the largest position that was ever assigned. For deleted rows, it is stored separately. */
  lastPosition(): number {
    const positions = KINDS.map((kind) => this.#last(kind)?.position ?? 0);
    return Math.max(...positions, this.number("pruned_position"));
  }

  /** Returns positions and times of the last grant, outcome and fence, and the time of the last renewal. */
  lastChanges(): { position: number; atMs: number }[] {
    const [renewed] = this.#sql.all<{ atMs: number | null }>(
      `SELECT max(renewed_at_ms) AS atMs FROM lease INDEXED BY lease_by_renewal
        WHERE decided = 0 AND renewed_at_ms IS NOT NULL`,
    );
    // A renewal has no position. Marks have changed its time itself (`setClockMarks`).
    const renewals = renewed?.atMs == null ? [] : [{ position: Infinity, atMs: renewed.atMs }];
    return [...KINDS.flatMap((kind) => this.#last(kind) ?? []), ...renewals];
  }

  #last(kind: Kind): { position: number; atMs: number } | undefined {
    return this.#sql.all<{ position: number; atMs: number }>(
      `SELECT position, coalesce(decided_at_ms, created_at_ms) AS atMs FROM lease
        WHERE decided = ? ORDER BY position DESC LIMIT 1`,
      kind,
    )[0];
  }

  clockMarks(): string {
    return String(readMeta(this.#sql, "clock_marks") ?? "[]");
  }

  /** Stores the marks of a clock that went back. All renewals so far are at least as old as that (M4). */
  setClockMarks(marks: string, nowMs: number): void {
    writeMeta(this.#sql, "clock_marks", marks);
    this.#sql.all(
      `UPDATE lease INDEXED BY lease_by_renewal SET renewed_at_ms = ?1
        WHERE decided = 0 AND renewed_at_ms > ?1`,
      nowMs,
    );
  }

  /** Makes `position` count as assigned, although no row has it. */
  setLastPosition(position: number): void {
    this.setNumber("pruned_position", Math.max(this.number("pruned_position"), position));
  }

  /** Assigns a position to a change that no lease row records (H1). */
  takePosition(positions: Positions, nowMs: number): void {
    this.times.note(nowMs, positions.last);
    this.setLastPosition(positions.next(nowMs));
  }

  /**
   * Returns the executions on one shard of the granted leases, or of the decided ones that still have them:
   * those of the newest `limit` rows.
   */
  executionsOn(
    shard: number,
    decided: 0 | 1,
    limit: number,
  ): { lease: string; epoch: number; incarnation: number }[] {
    return this.#sql.all(
      `SELECT lease, execution.value ->> 0 AS epoch, execution.value ->> 1 AS incarnation
         FROM (SELECT lease, epochs FROM lease WHERE decided = ? ORDER BY position DESC LIMIT ?) AS newest,
              json_each(newest.epochs) AS execution
        WHERE execution.key = ?`,
      decided,
      limit,
      String(shard),
    );
  }

  number(name: Counter): number {
    return readMetaNumber(this.#sql, name);
  }

  setNumber(name: Counter, value: number): void {
    writeMeta(this.#sql, name, value);
  }

  cellState(): CellState {
    return this.#cellState;
  }

  /** Sets the state of the cell, as a change of its own (H1). */
  changeCellState(state: CellState, positions: Positions, nowMs: number): void {
    this.takePosition(positions, nowMs);
    this.setCellState(state, nowMs);
  }

  setCellState(state: CellState, nowMs: number): void {
    this.#cellState = state;
    writeMeta(this.#sql, "cell_state", state);
    // People see this time. It grows even if the clock was set back.
    this.setNumber("cell_state_set_at_ms", Math.max(nowMs, this.number("cell_state_set_at_ms") + 1));
    this.setNumber("cell_state_version", this.number("cell_state_version") + 1);
  }

  /** The removal of the cell. Undefined before one is approved. */
  get removal(): StoredRemoval | undefined {
    const removal = readMeta(this.#sql, "removal");
    return removal === undefined ? undefined : (JSON.parse(String(removal)) as StoredRemoval);
  }

  setRemoval(removal: StoredRemoval): void {
    writeMeta(this.#sql, "removal", JSON.stringify(removal));
  }

  /** Must be called in the transaction that commits a lease of the removal (X3). */
  addReleased(claims: number): void {
    const { removal } = this;
    if (removal !== undefined) this.setRemoval({ ...removal, released: removal.released + claims });
  }

  /** Makes versions of the state that were assigned before a loss invalid (A2). */
  raiseStateVersion(by: number): void {
    this.setNumber("cell_state_version", this.number("cell_state_version") + by);
  }

  isRevoked(keyId: string): boolean {
    return this.#revokedKeys.has(keyId);
  }

  /** Keys that expire no later may have been revoked and forgotten, so all of them are refused (A1). */
  get refusedThroughMs(): number {
    return this.#refusedThroughMs;
  }

  /**
   * Remembers up to `limit` revoked keys. No clock determines which one is forgotten: it is the one that
   * expires first (A1).
   */
  revoke(keys: readonly { keyId: string; expiresAtMs: number }[], limit: number): void {
    for (const { keyId, expiresAtMs } of keys)
      this.#sql.all(
        "INSERT INTO revoked_key (key_id, expires_at_ms) VALUES (?, ?) ON CONFLICT (key_id) DO NOTHING",
        keyId,
        expiresAtMs,
      );
    const forgotten = this.#sql.all<{ expires_at_ms: number }>(
      `DELETE FROM revoked_key WHERE key_id IN (
         SELECT key_id FROM revoked_key ORDER BY expires_at_ms DESC, key_id LIMIT -1 OFFSET ?
       ) RETURNING expires_at_ms`,
      limit,
    );
    if (forgotten.length > 0) {
      const expired = forgotten.map((row) => row.expires_at_ms);
      this.#refusedThroughMs = Math.max(this.#refusedThroughMs, ...expired);
      this.setNumber("refused_through_ms", this.#refusedThroughMs);
    }
    this.#revokedKeys = this.#readRevokedKeys();
  }

  #readRevokedKeys(): ReadonlySet<string> {
    return new Set(
      this.#sql.all<{ key_id: string }>("SELECT key_id FROM revoked_key").map(({ key_id }) => key_id),
    );
  }

  /** Converts a row to the lease that the API shows. */
  leaseOf(row: LeaseRow, nowMs: number): Lease {
    const createdAtMs = this.times.timeOf(row.created_position, row.created_at_ms);
    const { lease, state, creates, destroys, replaces, missing } = row;
    return {
      lease,
      cell: this.#cell,
      state,
      createdAtMs,
      ageMs: Math.max(0, nowMs - createdAtMs),
      counts: { creates, destroys, replaces, missing },
      ...(row.decided_at_ms === null
        ? {}
        : { decidedAtMs: this.times.timeOf(row.position, row.decided_at_ms) }),
      ...(row.decided_by === null ? {} : { decidedBy: row.decided_by }),
      ...(row.decided_by_key === null ? {} : { decidedByKey: row.decided_by_key }),
      ...(row.reason === null ? {} : { reason: row.reason }),
      ...(row.renewed_at_ms === null ? {} : { renewedAtMs: row.renewed_at_ms }),
      ...(row.renewal_reason === null ? {} : { renewalReason: row.renewal_reason }),
      ...(row.decided === 0 && row.payload !== null ? { ops: decodePayload(row.payload) } : {}),
    };
  }

  /** Adds the epochs of the lease's executions, which are positions of its shards (E1, Q9). */
  placedLeaseOf(row: LeaseRow, nowMs: number): PlacedLease {
    const lease = this.leaseOf(row, nowMs);
    if (row.epochs === null) return lease;
    const positions = [...decodeExecutions(row.epochs)].map(([shard, { epoch }]) => [shard, epoch]);
    return { ...lease, positions: Object.fromEntries(positions) as ShardPositions };
  }
}
