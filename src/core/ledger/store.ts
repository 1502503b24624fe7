import type {
  CellState,
  HistoryPoint,
  Lease,
  LeaseChange,
  LeaseCounts,
  LeaseState,
  Outcome,
} from "../messages.ts";
import { laterPoint } from "../history.ts";
import { readMeta, readMetaNumber, writeMeta } from "../meta.ts";
import type { Sql } from "../ports.ts";
import { decodePayload } from "./payload.ts";
import { msOf } from "./position.ts";

export interface LeaseRow extends LeaseCounts {
  lease: string;
  decided: 0 | 1;
  position: number;
  created_position: number;
  state: LeaseState;
  fence: 0 | 1;
  incarnation: number;
  counter: number;
  /** The executions of the grant (executions.ts). */
  epochs: string | null;
  payload: string | null;
  payload_hash: string;
  decided_by: string | null;
  reason: string | null;
}

type Counter = "fences" | "cell_state_version" | "pruned_position";

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
}

/** All columns except the payload, for listings and replays. */
const HEAD = `lease, decided, position, created_position, state, fence, incarnation, counter, epochs,
  NULL AS payload, payload_hash, creates, destroys, replaces, missing, decided_by, reason`;

/** The SQL statements on the ledger's tables. It makes no decisions. */
export class LedgerStore {
  readonly #sql: Sql;
  readonly #cell: string;
  // Copies in memory, because every call reads these two. Only this class writes them.
  #cellState: CellState;
  #revokedKeys: ReadonlySet<string>;
  #applied: Applied;

  constructor(sql: Sql, cell: string) {
    this.#sql = sql;
    this.#cell = cell;
    this.#cellState = readMeta(sql, "cell_state") === "FROZEN" ? "FROZEN" : "ACTIVE";
    this.#revokedKeys = this.#readRevokedKeys();
    const applied = readMeta(sql, "applied");
    this.#applied =
      typeof applied === "string"
        ? (JSON.parse(applied) as Applied)
        : { position: 0, shards: {}, through: 0 };
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
      `INSERT INTO lease (lease, decided, position, created_position, state, fence, incarnation, counter,
                          epochs, payload, payload_hash, creates, destroys, replaces, missing,
                          decided_by, reason)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.lease,
      row.decided,
      row.position,
      row.created_position,
      row.state,
      row.fence,
      row.incarnation,
      row.counter,
      row.epochs,
      row.payload,
      row.payload_hash,
      row.creates,
      row.destroys,
      row.replaces,
      row.missing,
      row.decided_by,
      row.reason,
    );
  }

  decide(lease: string, outcome: Outcome, position: number, decidedBy: string, reason: string | null): void {
    this.#sql.all(
      `UPDATE lease SET decided = 1, state = ?, position = ?, decided_by = ?, reason = ?
        WHERE lease = ? AND decided = 0`,
      outcome,
      position,
      decidedBy,
      reason,
      lease,
    );
  }

  /** Returns granted leases after a position, in the order of their grants. */
  granted(afterPosition: number, limit: number): LeaseRow[] {
    return this.#sql.all<LeaseRow>(
      `SELECT ${HEAD} FROM lease WHERE decided = 0 AND position > ? ORDER BY position LIMIT ?`,
      afterPosition,
      limit,
    );
  }

  /**
   * Returns leases whose last change is after a position, in the order of the changes. Granted leases have
   * their payload. Stops at `limit` rows, and at about `maxBytes` of payload, because the platform limits an
   * answer between objects.
   */
  changes(afterPosition: number, limit: number, maxBytes: number): { rows: LeaseRow[]; more: boolean } {
    const sizes = (decided: 0 | 1): { position: number; bytes: number }[] =>
      this.#sql.all(
        `SELECT position, ${decided === 1 ? "0" : "octet_length(payload)"} AS bytes
           FROM lease WHERE decided = ? AND position > ? ORDER BY position LIMIT ?`,
        decided,
        afterPosition,
        limit + 1,
      );
    const all = [...sizes(0), ...sizes(1)].toSorted((a, b) => a.position - b.position);
    let bytes = 0;
    const fitting = all
      .slice(0, limit)
      .filter((row, index) => (bytes += row.bytes) <= maxBytes || index === 0);
    const through = fitting.at(-1)?.position ?? afterPosition;
    const rows = (decided: 0 | 1): LeaseRow[] =>
      this.#sql.all<LeaseRow>(
        `SELECT ${decided === 1 ? HEAD : "*"} FROM lease
          WHERE decided = ? AND position > ? AND position <= ?`,
        decided,
        afterPosition,
        through,
      );
    return {
      rows: [...rows(0), ...rows(1)].toSorted((a, b) => a.position - b.position),
      more: all.length > fitting.length,
    };
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

  /** Deletes outcomes up to a position, oldest first. All decisions up to this position must be applied. */
  prune(throughPosition: number, limit: number): { position: number; fence: 0 | 1 }[] {
    return this.#sql.all(
      `DELETE FROM lease WHERE lease IN (
         SELECT lease FROM lease WHERE decided = 1 AND position <= ? ORDER BY position LIMIT ?
       ) RETURNING position, fence`,
      throughPosition,
      limit,
    );
  }

  hasOutcomeThrough(position: number): boolean {
    return (
      this.#sql.all("SELECT 1 FROM lease WHERE decided = 1 AND position <= ? LIMIT 1", position).length > 0
    );
  }

  countGranted(): number {
    return this.#sql.all<{ n: number }>("SELECT count(*) AS n FROM lease WHERE decided = 0")[0]?.n ?? 0;
  }

  lastDecidedPosition(): number {
    return this.#lastPosition(1);
  }

  /** All decisions up to this position are applied on every shard. */
  get appliedPosition(): number {
    return this.#applied.position;
  }

  setApplied(position: number, shards: ReadonlyMap<number, HistoryPoint>): void {
    this.#applied = {
      position,
      shards: Object.fromEntries(
        [...shards].map(([shard, point]) => [shard, [point.incarnation, point.position]]),
      ),
      through: this.lastPosition(),
    };
    writeMeta(this.#sql, "applied", JSON.stringify(this.#applied));
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
      // SQLite takes the other columns from the row with the maximum.
      const rows = this.#sql.all<{ shard: string; position: number; incarnation: number }>(
        `SELECT execution.key AS shard, max(execution.value ->> 0) AS position,
                execution.value ->> 1 AS incarnation
           FROM lease, json_each(lease.epochs) AS execution
          WHERE decided = ? AND lease.position > ? GROUP BY execution.key`,
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
    return Math.max(this.#lastPosition(0), this.#lastPosition(1), this.number("pruned_position"));
  }

  #lastPosition(decided: 0 | 1): number {
    return (
      this.#sql.all<{ position: number }>(
        "SELECT position FROM lease WHERE decided = ? ORDER BY position DESC LIMIT 1",
        decided,
      )[0]?.position ?? 0
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

  setCellState(state: CellState): void {
    this.#cellState = state;
    writeMeta(this.#sql, "cell_state", state);
    this.setNumber("cell_state_version", this.number("cell_state_version") + 1);
  }

  isRevoked(keyId: string): boolean {
    return this.#revokedKeys.has(keyId);
  }

  revoke(keyId: string, expiresAtMs: number, nowMs: number): void {
    // An expired key is refused anyway, so its revocation is not needed any more.
    this.#sql.all("DELETE FROM revoked_key WHERE expires_at_ms < ?", nowMs);
    this.#sql.all(
      "INSERT INTO revoked_key (key_id, expires_at_ms) VALUES (?, ?) ON CONFLICT (key_id) DO NOTHING",
      keyId,
      expiresAtMs,
    );
    this.#revokedKeys = this.#readRevokedKeys();
  }

  #readRevokedKeys(): ReadonlySet<string> {
    return new Set(
      this.#sql.all<{ key_id: string }>("SELECT key_id FROM revoked_key").map(({ key_id }) => key_id),
    );
  }

  /** Converts a row to the lease that the API shows. */
  leaseOf(row: LeaseRow, nowMs: number): Lease {
    const createdAtMs = msOf(row.created_position);
    const { lease, state, creates, destroys, replaces, missing } = row;
    return {
      lease,
      cell: this.#cell,
      state,
      createdAtMs,
      ageMs: Math.max(0, nowMs - createdAtMs),
      counts: { creates, destroys, replaces, missing },
      ...(row.decided === 1 ? { decidedAtMs: msOf(row.position) } : {}),
      ...(row.decided_by === null ? {} : { decidedBy: row.decided_by }),
      ...(row.reason === null ? {} : { reason: row.reason }),
      ...(row.decided === 0 && row.payload !== null ? { ops: decodePayload(row.payload) } : {}),
    };
  }

  changeOf(row: LeaseRow, nowMs: number): LeaseChange {
    return { ...this.leaseOf(row, nowMs), position: row.position, createdPosition: row.created_position };
  }
}
