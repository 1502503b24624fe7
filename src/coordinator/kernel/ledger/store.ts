import { type CellState, type Lease, type PlacedLease, type ShardPositions } from "../messages.ts";
import { readMeta, readMetaNumber, writeMeta } from "../meta.ts";
import type { Sql } from "../ports.ts";
import { decodeExecutions } from "./executions.ts";
import { decodePayload } from "./payload.ts";
import { ChangeTimes } from "./change-times.ts";
import { leaseTable, type LeaseRow, type StoredLease } from "./lease-table.ts";
import type { Positions } from "./position.ts";

/** The columns of most new leases. */
export const plainLease = { renewed_at_ms: null, renewal_reason: null, transfer: null } as const;

type Counter = "cell_state_set_at_ms" | "cell_state_version" | "pruned_position";

/** A lease, as far as pruning needs it. */
export type OutcomeRow = Pick<
  StoredLease,
  "lease" | "created_position" | "position" | "created_at_ms" | "decided_at_ms" | "decided" | "pending"
>;

/** A decision that some shard may not have applied. */
export type UnappliedRow = Pick<LeaseRow, "lease" | "created_position" | "position">;

/** Up to where the leases were examined. Capabilities add what must be stored with it. */
export interface Applied {
  /** Of the leases created up to this position, those that are unfinished are pending. */
  through: number;
  /** The ledger's last position then. */
  last: number;
  /** The time of the latest change up to there. */
  atMs: number;
}

const COLUMNS = leaseTable.names.join(", ");

/** All columns except the payload, for listings and replays. */
const HEAD = COLUMNS.replace(/\bpayload\b/, "NULL AS payload");

const UNAPPLIED = "lease, created_position, position";
const OUTCOME = "lease, created_position, position, created_at_ms, decided_at_ms, decided, pending";

const VALUES = `(${COLUMNS.replaceAll(/\w+/g, "?")})`;
const INSERT_ROW = `INSERT INTO lease (${COLUMNS}) VALUES ${VALUES}`;
const TAKE_ROW = `UPDATE lease SET (${COLUMNS}) = ${VALUES}
  WHERE created_position = ? AND decided = 1 AND pending = 0 AND created_position <= ? RETURNING lease`;

/** The SQL statements on the ledger's tables. It makes no decisions. */
export class LedgerStore {
  readonly times: ChangeTimes;
  readonly #sql: Sql;
  readonly #cell: string;
  // Copies in memory, because every call reads these. Only this class writes them.
  #cellState: CellState;
  #applied: Applied;

  constructor(sql: Sql, cell: string) {
    this.#sql = sql;
    this.#cell = cell;
    const state = readMeta(sql, "cell_state");
    this.#cellState = (state ?? "ACTIVE") as CellState;
    const applied = readMeta(sql, "applied");
    this.#applied =
      typeof applied === "string"
        ? (JSON.parse(applied) as Applied)
        : ({ through: 0, last: 0, atMs: 0 } as Applied);
    this.times = new ChangeTimes(this);
  }

  /** Returns the row of a lease without its payload. */
  find(lease: string): StoredLease | undefined {
    return this.#sql.all<StoredLease>(`SELECT ${HEAD} FROM lease WHERE lease = ?`, lease)[0];
  }

  findWhole(lease: string): StoredLease | undefined {
    return this.#sql.all<StoredLease>("SELECT * FROM lease WHERE lease = ?", lease)[0];
  }

  /** @param over the created position of an outcome that is forgotten, and whose row the lease takes */
  insert(row: LeaseRow, over?: number): void {
    // A lease that is rebuilt may keep an old position. Fences are found among what is pending, too.
    const pending = row.decided === 2 || row.created_position <= this.through ? 1 : 0;
    const values = leaseTable.valuesOf({ ...row, pending });
    if (over !== undefined && this.#sql.all(TAKE_ROW, ...values, over, this.through).length > 0) return;
    this.#sql.all(INSERT_ROW, ...values);
  }

  /** Whether a lease is decided, and every shard has applied that (S2). */
  isApplied({ decided, pending, created_position: created }: StoredLease): boolean {
    return decided === 1 && pending === 0 && created <= this.through;
  }

  /** Deletes a lease that the same transaction writes again. */
  delete(lease: string): void {
    this.#sql.all("DELETE FROM lease WHERE lease = ?", lease);
  }

  /** The batch is not needed any more: decisions name executions (C2). */
  decide(row: LeaseRow): void {
    this.#sql.all(
      `UPDATE lease SET decided = 1, state = ?, position = ?, decided_at_ms = ?, decided_by = ?,
                        decided_by_key = ?, reason = ?, payload = NULL
        WHERE created_position = ? AND decided = 0`,
      row.state,
      row.position,
      row.decided_at_ms,
      row.decided_by,
      row.decided_by_key,
      row.reason,
      row.created_position,
    );
  }

  /**
   * Returns granted leases after a position, in the order of their grants, without those of other kinds: only
   * their own calls decide them. The position of a granted lease is its created position.
   */
  granted(afterPosition: number, limit: number, throughPosition = Number.MAX_SAFE_INTEGER): LeaseRow[] {
    return this.#open(afterPosition, throughPosition, limit, "AND transfer IS NULL");
  }

  /** Returns granted leases of all kinds after a position, in the order of their grants. */
  undecided(afterPosition: number, limit: number): LeaseRow[] {
    return this.#open(afterPosition, Number.MAX_SAFE_INTEGER, limit);
  }

  /** The pending ones are older than the others. */
  #open(after: number, through: number, limit: number, where = ""): LeaseRow[] {
    const read = (isPending: 0 | 1, from: number, most: number): LeaseRow[] =>
      this.#sql.all<LeaseRow>(
        `SELECT ${HEAD} FROM lease WHERE pending = ${isPending} AND decided = 0
            AND created_position > ? AND created_position <= ? ${where} ORDER BY created_position LIMIT ?`,
        from,
        through,
        most,
      );
    const pending = read(1, after, limit);
    return [...pending, ...read(0, Math.max(after, this.through), limit - pending.length)];
  }

  /**
   * Returns decisions of leases created after a position that some shard may not have applied yet: those of
   * pending leases, and those of newer leases that an earlier instance has made, up to another position.
   */
  unapplied(afterPosition: number, madeThrough: number, limit: number): UnappliedRow[] {
    const pending = this.#pending<UnappliedRow>(UNAPPLIED, 1, afterPosition, limit);
    const newer = this.#sql.all<UnappliedRow>(
      `SELECT ${UNAPPLIED} FROM lease
        WHERE created_position > ? AND decided = 1 AND pending = 0 AND epochs IS NOT NULL AND position <= ?
        ORDER BY created_position LIMIT ?`,
      Math.max(afterPosition, this.through),
      madeThrough,
      limit - pending.length,
    );
    return [...pending, ...newer];
  }

  #pending<Row>(columns: string, kind: 1 | 2, after: number, limit: number): Row[] {
    return this.#sql.all<Row>(
      `SELECT ${columns} FROM lease
        WHERE pending = 1 AND decided = ? AND created_position > ? ORDER BY created_position LIMIT ?`,
      kind,
      after,
      limit,
    );
  }

  /**
   * Returns the next leases that were not examined yet, in the order of creation: granted ones, and those
   * that an earlier instance has decided, up to a position.
   */
  unexamined(madeThrough: number, limit: number): number[] {
    const rows = this.#sql.all<{ created: number }>(
      `SELECT created_position AS created FROM lease
        WHERE created_position > ? AND pending = 0
          AND (decided = 0 OR (decided = 1 AND epochs IS NOT NULL AND position <= ?))
        ORDER BY created_position LIMIT ?`,
      this.through,
      madeThrough,
      limit,
    );
    return rows.map(({ created }) => created);
  }

  /** Returns the position of the last decision of the leases that were not examined. 0: there is none. */
  lastUnexamined(): number {
    const [row] = this.#sql.all<{ last: number | null }>(
      "SELECT max(position) AS last FROM lease WHERE created_position > ? AND decided = 1",
      this.through,
    );
    return row?.last ?? 0;
  }

  /** Marks leases, by their created positions, as pending or not. */
  setPending(created: readonly number[], pending: 0 | 1): void {
    if (created.length === 0) return;
    this.#sql.all(
      `UPDATE lease SET pending = ?
        WHERE created_position IN (SELECT value FROM json_each(?)) AND decided < 2`,
      pending,
      JSON.stringify(created),
    );
  }

  /**
   * Returns fences (2), or all leases that were examined (1), created after a position, in the order of
   * creation.
   */
  outcomes(kind: 1 | 2, afterPosition: number, limit: number): OutcomeRow[] {
    if (kind === 2) return this.#pending<OutcomeRow>(OUTCOME, kind, afterPosition, limit);
    return this.#sql.all<OutcomeRow>(
      `SELECT ${OUTCOME} FROM lease WHERE created_position > ? AND created_position <= ?
        ORDER BY created_position LIMIT ?`,
      afterPosition,
      this.through,
      limit,
    );
  }

  /** Deletes outcomes, and notes up to which position outcomes were deleted. */
  forget(outcomes: readonly OutcomeRow[]): void {
    this.#sql.all(
      `DELETE FROM lease WHERE created_position IN (SELECT value FROM json_each(?))
          AND (decided = 2 OR (decided = 1 AND pending = 0))`,
      JSON.stringify(outcomes.map((row) => row.created_position)),
    );
    this.setLastPosition(Math.max(...outcomes.map(({ position }) => position)));
  }

  /** Returns the number of granted leases (0) or fences (2). */
  count(kind: 0 | 2): number {
    const [row] = this.#sql.all<{ n: number }>(
      `SELECT (SELECT count(*) FROM lease WHERE pending = 1 AND decided = ?1)
            + (SELECT count(*) FROM lease WHERE created_position > ?2 AND pending = 0 AND decided = ?1) AS n`,
      kind,
      this.through,
    );
    return row?.n ?? 0;
  }

  /** All leases created up to this position were examined: those that are unfinished are pending. */
  get through(): number {
    return this.#applied.through;
  }

  setApplied(positions: Pick<Applied, "through" | "last">, more: Partial<Applied>): void {
    this.#applied = { ...positions, atMs: this.times.latestMs, ...more } as Applied;
    writeMeta(this.#sql, "applied", JSON.stringify(this.#applied));
  }

  /** What is stored with the position up to which the leases were examined. */
  get applied(): Applied {
    return this.#applied;
  }

  /** Returns the largest position that was ever assigned. To be read once, when an instance starts. */
  lastPosition(): number {
    const newest = this.#newestChange()?.position ?? 0;
    return Math.max(newest, this.#applied.last, this.number("pruned_position"));
  }

  /** Returns positions and times of the latest changes, and the time of the last renewal. */
  lastChanges(): { position: number; atMs: number }[] {
    const [renewed] = this.#sql.all<{ atMs: number | null }>(
      `SELECT max(renewed_at_ms) AS atMs FROM lease INDEXED BY lease_by_renewal
        WHERE decided = 0 AND renewed_at_ms IS NOT NULL`,
    );
    const newest = this.#newestChange();
    const { last, atMs } = this.#applied;
    // A renewal has no position. Marks have changed its time itself (`setClockMarks`).
    const renewals = renewed?.atMs == null ? [] : [{ position: Infinity, atMs: renewed.atMs }];
    return [{ position: last, atMs }, ...(newest === undefined ? [] : [newest]), ...renewals];
  }

  /** The latest change of what may be unfinished. What else has changed was examined afterwards. */
  #newestChange(): { position: number; atMs: number } | undefined {
    return this.#sql.all<{ position: number; atMs: number }>(
      `SELECT position, coalesce(decided_at_ms, created_at_ms) AS atMs FROM lease WHERE pending = 1
       UNION ALL
       SELECT position, coalesce(decided_at_ms, created_at_ms) FROM lease WHERE created_position > ?
       ORDER BY position DESC LIMIT 1`,
      this.through,
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
    if (position > this.number("pruned_position")) this.setNumber("pruned_position", position);
  }

  /** Assigns a position to a change that no lease row records (H1). */
  takePosition(positions: Positions, nowMs: number): void {
    this.times.note(nowMs, positions.last);
    this.setLastPosition(positions.next(nowMs));
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

  /** Makes versions of the state that were assigned before a loss invalid (A2). */
  raiseStateVersion(by: number): void {
    this.setNumber("cell_state_version", this.number("cell_state_version") + by);
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
