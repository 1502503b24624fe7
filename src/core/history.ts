import type { HistoryPoint } from "./messages.ts";
import { readMeta, writeMeta } from "./meta.ts";
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
 * The number of incarnations that an object remembers. An object that is evicted every two minutes needs two
 * weeks for that many. Older points cannot be checked any more, and pass.
 */
const MAX_INCARNATIONS = 10_000;

/** What a part stores when it notices that it has gone back in time (H4). */
export interface LostHistory {
  /** Who has seen more of this part than the part has stored, such as `shard 3`. */
  noticedBy: string;
  /** The point that is missing in this part's history. */
  seen: HistoryPoint;
  /** The newest point that this part has, or null if it has none. */
  point: HistoryPoint | null;
  noticedAtMs: number;
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
  #own: number | undefined;
  /** The newest point that is durable. No other point is ever told to a peer (H2). */
  #point: HistoryPoint | undefined;
  #lost: LostHistory | undefined;

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
    if (this.#previous > 0) this.#point = { incarnation: this.#previous, position: lastPosition };
    const lost = readMeta(ports.sql, "history_lost");
    if (typeof lost === "string") this.#lost = JSON.parse(lost) as LostHistory;
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

  /** Set once this part knows that it has gone back in time. */
  get lost(): LostHistory | undefined {
    return this.#lost;
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
    if (this.#lost === undefined && seen !== null && seen !== undefined && !this.includes(seen))
      this.#notice(seen, noticedBy);
    return this.refusal;
  }

  /** Why this part must refuse everything; undefined while nothing is known to be lost (H4). */
  get refusal(): Refusal | undefined {
    return this.#lost === undefined ? undefined : historyLost(this.#name);
  }

  /** Returns whether this part has reached the point in its durable history. */
  includes({ incarnation, position }: HistoryPoint): boolean {
    const newest = this.#point;
    if (newest === undefined) return false;
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

  #notice(seen: HistoryPoint, noticedBy: string): void {
    const { sql, clock, log } = this.#ports;
    const lost: LostHistory = {
      noticedBy,
      seen,
      point: this.#point ?? null,
      noticedAtMs: clock.now(),
    };
    sql.transaction(["record_lost_history"], () => writeMeta(sql, "history_lost", JSON.stringify(lost)));
    this.#lost = lost;
    log("history_lost", {
      part: this.#name,
      noticed_by: noticedBy,
      seen_incarnation: seen.incarnation,
      seen_position: seen.position,
      incarnation: lost.point?.incarnation ?? 0,
      position: lost.point?.position ?? 0,
    });
  }
}

/**
 * Stores the next incarnation and returns it.
 *
 * @param uuid a random UUID, which gives the random part
 */
export function raiseIncarnation(sql: Sql, uuid: string, firstPosition: number): number {
  const count = Math.floor(newestIncarnation(sql) / RANDOM_PART) + 1;
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

/** Returns the later of two points of one part. */
export function laterPoint(a: HistoryPoint | undefined, b: HistoryPoint): HistoryPoint {
  if (a === undefined || b.incarnation > a.incarnation) return b;
  return b.incarnation === a.incarnation && b.position > a.position ? b : a;
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
