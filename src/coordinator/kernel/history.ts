import type { HistoryPoint, Operator } from "./messages.ts";
import type { DeclaredLoss, LostHistory, PartState, PartStatus } from "../capabilities/loss/messages.ts";
import { deleteMeta, readMeta, readMetaNumber, writeMeta } from "./meta.ts";
import type { Ports, Sql } from "./ports.ts";
import { refused, type Refusal } from "./refusal.ts";

/** The instances of one object, oldest first, with the first position that each of them could assign. */
export const INCARNATION_TABLE = `CREATE TABLE incarnation (
   incarnation INTEGER NOT NULL PRIMARY KEY,
   first_position INTEGER NOT NULL
 ) STRICT, WITHOUT ROWID`;

/**
 * The low part of an incarnation is random, so that an object whose storage was set back does not use an
 * incarnation a second time (H1). The high part counts the instances: 2^29 fit into a safe integer.
 */
const RANDOM_DIGITS = 6;
const RANDOM_PART = 16 ** RANDOM_DIGITS;

/**
 * The largest number that is taken over from a point that a part does not have. Positions that follow the
 * clock reach it in the year 2109. Numbers that only a lie can contain would leave no room to count on.
 */
export const MAX_BELIEVED = 2 ** 52;

/**
 * The number of incarnations that an object remembers. An object that is evicted every two minutes needs two
 * weeks for that many. Older points cannot be checked any more, and pass.
 */
const MAX_INCARNATIONS = 10_000;

/**
 * How far a part goes beyond every point that its peers have seen when it accepts its loss: what it has lost
 * may be more than they have seen of it.
 */
const INCARNATION_MARGIN = 1_000;
export const POSITION_MARGIN = 1_000_000;

/** The number of incarnations that a part tells when it asks what it has lost. Older ones count as known. */
export const TOLD_INCARNATIONS = 1_000;

/**
 * How many instances a part can have lost. One that starts every second needs seven weeks for them, and a
 * backup that is restored is younger. A cell that names a later incarnation has made it up (L7).
 */
const MAX_LOST_INSTANCES = 2 ** 22;

/** The header of the API in which a cell tells its ledger what it has seen of it (L7). */
export const HISTORY_HEADER = "leasehold-history";

/** The loss as it is stored. */
export interface StoredLoss extends LostHistory {
  /** True once the loss was accepted, until the reconciliation is finished (H6). */
  isReconciling: boolean;
}

/** What an operator's request to reconcile a part says of a loss that nobody has noticed. */
interface Declaration {
  declared?: DeclaredLoss;
  dryRun: boolean;
  operator: Operator;
}

/**
 * The history of one part: its incarnations, and how far each has got (H1). A peer stores the newest point
 * that it has seen. A part that does not have this point has lost something: its storage was set back, and
 * it must not answer from what is left (H4).
 */
export class History {
  readonly #ports: Pick<Ports, "sql" | "clock" | "randomness" | "log">;
  readonly #name: string;
  /** The newest incarnation on disk when this instance started. */
  readonly #previous: number;
  readonly #firstPosition: number;
  /** The newest point on disk when this instance started. */
  readonly before: HistoryPoint | undefined;
  #own: number | undefined;
  /** The newest point that is durable. No other point is ever told to a peer (H2). */
  #point: HistoryPoint | undefined;
  #loss: StoredLoss | undefined;
  /** All points of incarnations before this one count as included, because their loss was accepted (H6). */
  #accepted = 0;

  /**
   * @param name the part, as messages to operators name it: `shard 3`
   * @param lastPosition the largest position that this part has assigned so far
   */
  constructor(
    ports: Pick<Ports, "sql" | "clock" | "randomness" | "log">,
    name: string,
    lastPosition: number,
  ) {
    this.#ports = ports;
    this.#name = name;
    this.#firstPosition = lastPosition + 1;
    this.#previous = newestIncarnation(ports.sql);
    this.before = this.#previous > 0 ? { incarnation: this.#previous, position: lastPosition } : undefined;
    this.#point = this.before;
    this.#loadLoss();
  }

  #loadLoss(): void {
    const { sql } = this.#ports;
    const stored = readMeta(sql, "history_lost");
    this.#loss = typeof stored === "string" ? (JSON.parse(stored) as StoredLoss) : undefined;
    this.#accepted = readMetaNumber(sql, "history_accepted");
  }

  /** The newest incarnation that is durable; 0 before the first one. */
  get incarnation(): number {
    return this.#point?.incarnation ?? 0;
  }

  /** True if this instance has its own incarnation, durably. */
  get isRaised(): boolean {
    return this.#own !== undefined && this.#own === this.#point?.incarnation;
  }

  /** The newest durable point. Undefined before the first change of this part. */
  get point(): HistoryPoint | undefined {
    return this.#point;
  }

  /**
   * The point that rows have which are read in this turn. It may only be told once they are durable (H2).
   *
   * @param position the part's last position, durable or not
   */
  pointOfRows(position: number): HistoryPoint | undefined {
    const incarnation = this.#own ?? this.#previous;
    return incarnation === 0 ? undefined : { incarnation, position };
  }

  get state(): PartState {
    if (this.#loss === undefined) return "complete";
    return this.#loss.isReconciling ? "reconciling" : "lost";
  }

  /** True once this part knows that it has gone back in time, until its loss is accepted. */
  get isLost(): boolean {
    return this.state === "lost";
  }

  /** What an operator is told about this part. */
  get status(): PartStatus {
    const status = { state: this.state, point: this.point ?? null };
    if (this.#loss === undefined) return { ...status, loss: null };
    const { isReconciling: _, ...loss } = this.#loss;
    return { ...status, loss };
  }

  /** The incarnation that had made the part's rows up to a position; 0 before the first one. */
  incarnationAt(position: number): number {
    const [row] = this.#ports.sql.all<{ incarnation: number }>(
      "SELECT incarnation FROM incarnation WHERE first_position <= ? ORDER BY incarnation DESC LIMIT 1",
      position,
    );
    return row?.incarnation ?? 0;
  }

  /** The last position of the incarnation that has made the next one; infinite if it may still go on. */
  lastPositionAfter(position: number): number {
    const [row] = this.#ports.sql.all<{ first: number | null }>(
      "SELECT min(first_position) AS first FROM incarnation WHERE first_position > ?",
      position + 1,
    );
    return row?.first ? row.first - 1 : Infinity;
  }

  /** Must be called in every transaction that changes something. The first call raises the incarnation. */
  raise(): void {
    if (this.#own !== undefined) return;
    const { sql, randomness } = this.#ports;
    this.#own = raiseIncarnation(sql, randomness.uuid(), this.#firstPosition);
  }

  /** Must be called when a transaction that called `raise` is durable. `position` is its last position. */
  madeDurable(position: number): void {
    if (this.#own !== undefined) this.#point = { incarnation: this.#own, position };
  }

  /**
   * Checks what a peer has seen of this part, and returns why the part must refuse (H4). The first point that
   * is missing is stored, so that the part also refuses after a restart.
   *
   * @param noticedBy the peer, such as `cell 1`
   */
  refuse(seen: HistoryPoint | null | undefined, noticedBy: string): Refusal | undefined {
    if (!this.isLost && seen !== null && seen !== undefined && !this.#has(seen)) {
      if (this.#isSuperseded) return superseded(this.#name);
      this.#notice(seen, noticedBy);
    }
    return this.refusal;
  }

  /**
   * Returns why a point from a cell is refused that this part cannot have had, whatever it has lost (L7).
   *
   * @param present the position of the present, by the clock
   * @param margin how far before the real present that may be
   */
  refuseImpossible(seen: HistoryPoint | undefined, present: number, margin: number): Refusal | undefined {
    if (seen === undefined) return undefined;
    const last = this.#point ?? { incarnation: 0, position: 0 };
    const isPossible =
      seen.incarnation <= last.incarnation + MAX_LOST_INSTANCES * RANDOM_PART &&
      seen.position <= Math.max(last.position, present) + margin;
    if (isPossible) return undefined;
    const detail = `\`${HISTORY_HEADER}\` names a point that ${this.#name} cannot have reached`;
    return refused("INVALID_ARGUMENT", `${detail}; send a value that this API answered, or leave it out`, {
      field: HISTORY_HEADER,
    }).refusal;
  }

  /** Call this when a copy of this part is newer than the part. Returns why it must refuse (H4). */
  refuseBehind(noticedBy: string): Refusal | undefined {
    if (!this.isLost) {
      if (this.#isSuperseded) return superseded(this.#name);
      this.#notice(null, noticedBy);
    }
    return this.refusal;
  }

  /**
   * Does the same with the incarnations of attempts that a peer asks about. An incarnation is durable before
   * its first attempt starts (B3), so one that is missing is lost.
   */
  refuseAttempts(incarnations: Iterable<number>, noticedBy: string): Refusal | undefined {
    for (const incarnation of new Set(incarnations)) {
      const refusal = this.refuse({ incarnation, position: 0 }, noticedBy);
      if (refusal !== undefined) return refusal;
    }
    return this.refusal;
  }

  /** An instance that was replaced has nothing of its successors, although their rows are on its disk. */
  #has(seen: HistoryPoint): boolean {
    return seen.incarnation <= (this.#own ?? this.#previous) && this.includes(seen);
  }

  /**
   * Stores a loss that an operator declares (H4), durably, unless the part has noticed one itself or this is
   * a dry run. Returns whether the declaration counts. It does not if a loss was accepted since the operator
   * read this part: each accepted loss makes a new incarnation, above all earlier ones.
   */
  async declare({ declared, dryRun, operator }: Declaration): Promise<boolean> {
    if (declared === undefined || declared.incarnation < this.#accepted) return false;
    if (dryRun) return true;
    if (!this.isLost) this.#notice(null, "an operator", { reason: operator.reason ?? "" });
    await this.#ports.sql.flush();
    return true;
  }

  /** True if another instance has replaced this one: what that instance has written is not a loss (B8). */
  get #isSuperseded(): boolean {
    return newestIncarnation(this.#ports.sql) > (this.#own ?? this.#previous);
  }

  /** Why this part must refuse everything; undefined unless it is lost (H4). */
  get refusal(): Refusal | undefined {
    return this.isLost ? historyLost(this.#name) : undefined;
  }

  /** Why a shard that is being reconciled refuses a prepare that no verification has made (H6). */
  get reconcilingRefusal(): Refusal | undefined {
    return this.state === "reconciling" ? reconciling(this.#name) : undefined;
  }

  /**
   * Accepts the loss (H6, H7), in the current transaction. The part gets a new incarnation, above all that
   * were seen, and the points of all earlier incarnations count as included from then on.
   *
   * @param seen the largest incarnation and the largest position that any peer has seen
   * @param firstPosition the first position of the new incarnation
   * @param isReconciling whether something is left to reconcile
   * @returns a function that must be called when the transaction is durable
   */
  accept(seen: HistoryPoint, firstPosition: number, isReconciling = false): () => void {
    const { sql, randomness } = this.#ports;
    this.#own = raiseIncarnation(
      sql,
      randomness.uuid(),
      firstPosition,
      Math.min(seen.incarnation, MAX_BELIEVED) + INCARNATION_MARGIN * RANDOM_PART,
    );
    writeMeta(sql, "history_accepted", this.#own);
    if (!isReconciling) return this.finish();
    writeMeta(sql, "history_lost", JSON.stringify({ ...this.#loss, isReconciling }));
    return () => this.#loadLoss();
  }

  /**
   * Makes this part reconciling, in the current transaction, because another one has lost what this one has
   * got from it (G5). A part that is lost or reconciling stays so.
   */
  inheritLoss(from: string): void {
    if (this.#loss !== undefined) return;
    const { sql, clock } = this.#ports;
    this.#loss = {
      isReconciling: true,
      noticedBy: from,
      seen: null,
      point: this.#point ?? null,
      noticedAtMs: clock.now(),
    };
    writeMeta(sql, "history_lost", JSON.stringify(this.#loss));
  }

  /** Ends the reconciliation, in the current transaction. Returns the same as `accept`. */
  finish(): () => void {
    deleteMeta(this.#ports.sql, "history_lost");
    // Read again, because the part may have noticed another loss while this became durable.
    return () => this.#loadLoss();
  }

  /** Returns the newest incarnations, newest first, each with its first position. */
  incarnations(limit: number): [incarnation: number, firstPosition: number][] {
    return this.#ports.sql
      .all<{ incarnation: number; first_position: number }>(
        "SELECT incarnation, first_position FROM incarnation ORDER BY incarnation DESC LIMIT ?",
        limit,
      )
      .map((row) => [row.incarnation, row.first_position]);
  }

  /** Returns whether this part has reached the point in its durable history. */
  includes({ incarnation, position }: HistoryPoint): boolean {
    const newest = this.#point;
    if (newest === undefined) return false;
    if (incarnation < this.#accepted) return true;
    if (incarnation === newest.incarnation) return position <= newest.position;
    const [row, next] = this.#ports.sql.all<{ incarnation: number; first_position: number }>(
      `SELECT incarnation, first_position FROM incarnation
        WHERE incarnation >= ? ORDER BY incarnation LIMIT 2`,
      incarnation,
    );
    if (row?.incarnation !== incarnation) return row !== undefined && this.#isForgotten(incarnation);
    // Without a next incarnation, this one is the newest on disk, and is not durable yet.
    return next !== undefined && position < next.first_position;
  }

  #isForgotten(incarnation: number): boolean {
    const { sql } = this.#ports;
    const [kept] = sql.all<{ oldest: number; n: number }>(
      "SELECT min(incarnation) AS oldest, count(*) AS n FROM incarnation",
    );
    return kept !== undefined && kept.n >= MAX_INCARNATIONS && incarnation < kept.oldest;
  }

  #notice(seen: HistoryPoint | null, noticedBy: string, more: { reason?: string } = {}): void {
    const { sql, clock, log } = this.#ports;
    const lost: StoredLoss = {
      isReconciling: false,
      noticedBy,
      seen,
      point: this.#point ?? null,
      noticedAtMs: clock.now(),
    };
    sql.transaction(["record_lost_history"], () => writeMeta(sql, "history_lost", JSON.stringify(lost)));
    this.#loss = lost;
    log("history_lost", {
      part: this.#name,
      noticed_by: noticedBy,
      ...more,
      seen_incarnation: seen?.incarnation ?? 0,
      seen_position: seen?.position ?? 0,
      incarnation: lost.point?.incarnation ?? 0,
      position: lost.point?.position ?? 0,
    });
  }
}

/**
 * Stores the next incarnation and returns it.
 *
 * @param uuid a random UUID, which gives the random part
 * @param above the new incarnation is larger than this one
 */
export function raiseIncarnation(sql: Sql, uuid: string, firstPosition: number, above = 0): number {
  const count = Math.floor(Math.max(newestIncarnation(sql), above) / RANDOM_PART) + 1;
  const incarnation = count * RANDOM_PART + Number.parseInt(uuid.slice(-RANDOM_DIGITS), 16);
  sql.all("INSERT INTO incarnation (incarnation, first_position) VALUES (?, ?)", incarnation, firstPosition);
  sql.all(
    `DELETE FROM incarnation WHERE incarnation IN (
       SELECT incarnation FROM incarnation ORDER BY incarnation DESC LIMIT -1 OFFSET ?
     )`,
    MAX_INCARNATIONS,
  );
  return incarnation;
}

/**
 * Returns the point of a part that a peer knows once the part has told it `point` (H5). A point of another
 * incarnation replaces the known one only if the part says that it has the known one. Otherwise, a part that
 * has gone back in time could make its peers forget what they know. Undefined: the part has not said so, or
 * no point is known or told.
 *
 * @param confirmed a point that the part says it has
 */
export function nextPoint(
  known: HistoryPoint | undefined,
  point: HistoryPoint | null,
  confirmed: HistoryPoint | null,
): HistoryPoint | undefined {
  if (known === undefined) return point ?? undefined;
  if (point?.incarnation === known.incarnation) return point.position > known.position ? point : known;
  const hasKnown = confirmed?.incarnation === known.incarnation && confirmed.position >= known.position;
  return hasKnown && point !== null ? point : undefined;
}

/** Returns the later of two points of one part. */
export function laterPoint(a: HistoryPoint | undefined, b: HistoryPoint): HistoryPoint {
  if (a === undefined || b.incarnation > a.incarnation) return b;
  return b.incarnation === a.incarnation && b.position > a.position ? b : a;
}

/**
 * Returns the larger incarnation and the larger position of two points. The result may be no point of the
 * part's history, but it is above both.
 */
export function abovePoints(a: HistoryPoint, b: HistoryPoint | null | undefined): HistoryPoint {
  return {
    incarnation: Math.max(a.incarnation, b?.incarnation ?? 0),
    position: Math.max(a.position, b?.position ?? 0),
  };
}

export const isSamePoint = (a: HistoryPoint | null | undefined, b: HistoryPoint): boolean =>
  a?.incarnation === b.incarnation && a.position === b.position;

const newestIncarnation = (sql: Sql): number =>
  sql.all<{ newest: number | null }>("SELECT max(incarnation) AS newest FROM incarnation")[0]?.newest ?? 0;

const historyLost = (name: string): Refusal =>
  refused(
    "UNAVAILABLE",
    `${name} has lost a part of its history, so its answers could be wrong; an operator must reconcile it`,
    { reason: "HISTORY_LOST", retryAfterMs: 60_000 },
  ).refusal;

const superseded = (name: string): Refusal =>
  refused("UNAVAILABLE", `this instance of ${name} was replaced by a newer one; retry`, {
    retryAfterMs: 1_000,
  }).refusal;

const reconciling = (name: string): Refusal =>
  refused(
    "UNAVAILABLE",
    `${name} is being reconciled after a loss, and only verification may change names on it until an ` +
      "operator finishes that; retry later",
    { reason: "HISTORY_LOST", retryAfterMs: 60_000 },
  ).refusal;
