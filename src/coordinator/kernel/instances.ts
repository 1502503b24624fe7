import type { HistoryPoint } from "./messages.ts";
import { readMetaNumber, writeMeta } from "./meta.ts";
import type { Ports, Sql } from "./ports.ts";

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
export const RANDOM_PART = 16 ** RANDOM_DIGITS;

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
 * The instances of one part, and how far each has got (H1). Attempts and points are named by them. Each
 * instance that changes something has an incarnation of its own.
 */
export class Instances {
  readonly #ports: Pick<Ports, "sql" | "randomness">;
  /** The newest incarnation on disk when this instance started. */
  readonly #previous: number;
  readonly #firstPosition: number;
  /** The newest point on disk when this instance started. */
  readonly before: HistoryPoint | undefined;
  #own: number | undefined;
  /** The newest point that is durable. No other point is ever told to a peer (H2). */
  #point: HistoryPoint | undefined;
  #includedBefore = 0;

  /** @param lastPosition the largest position that this part has assigned so far */
  constructor(ports: Pick<Ports, "sql" | "randomness">, lastPosition: number) {
    this.#ports = ports;
    this.#firstPosition = lastPosition + 1;
    this.#previous = newestIncarnation(ports.sql);
    this.before = this.#previous > 0 ? { incarnation: this.#previous, position: lastPosition } : undefined;
    this.#point = this.before;
    this.readIncluded();
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

  /** The incarnation of this instance, durable or not. Before its first change: the newest one on disk. */
  get newest(): number {
    return this.#own ?? this.#previous;
  }

  /** True if another instance has replaced this one: what that instance has written is not a loss (B8). */
  get isSuperseded(): boolean {
    return newestIncarnation(this.#ports.sql) > this.newest;
  }

  /** All points of incarnations before this one count as included, whatever was lost of them (H6). */
  get includedBefore(): number {
    return this.#includedBefore;
  }

  /** Must be called when a transaction that called `raiseAbove` is durable. */
  readIncluded(): void {
    this.#includedBefore = readMetaNumber(this.#ports.sql, "history_accepted");
  }

  /**
   * The point that rows have which are read in this turn. It may only be told once they are durable (H2).
   *
   * @param position the part's last position, durable or not
   */
  pointOfRows(position: number): HistoryPoint | undefined {
    return this.newest === 0 ? undefined : { incarnation: this.newest, position };
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
   * Raises the incarnation above another one, in the current transaction. All earlier points count as
   * included from then on.
   *
   * @param firstPosition the first position of the new incarnation
   */
  raiseAbove(above: number, firstPosition: number): void {
    const { sql, randomness } = this.#ports;
    this.#own = raiseIncarnation(sql, randomness.uuid(), firstPosition, above);
    writeMeta(sql, "history_accepted", this.#own);
  }

  /** Returns the newest incarnations, newest first, each with its first position. */
  list(limit: number): [incarnation: number, firstPosition: number][] {
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
    if (incarnation < this.#includedBefore) return true;
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

export const isSamePoint = (a: HistoryPoint | null | undefined, b: HistoryPoint): boolean =>
  a?.incarnation === b.incarnation && a.position === b.position;

const newestIncarnation = (sql: Sql): number =>
  sql.all<{ newest: number | null }>("SELECT max(incarnation) AS newest FROM incarnation")[0]?.newest ?? 0;
