/** A point in the history of a cell's ledger: how far the ledger had got when it answered. */
export interface LedgerPoint {
  incarnation: number;
  position: number;
}

/** The header of the API that has a point. */
export const HISTORY_HEADER = "leasehold-history";

/**
 * There are two points while calls overlap a restart of the ledger. More can only come from calls that are
 * not answered.
 */
const MAX_POINTS = 8;

/**
 * The newest points of the cell's ledger that the client has seen (L7). Every call about leases sends one of
 * them. If the ledger's storage went back in time and it does not have that point any more, it refuses the
 * call with `HISTORY_LOST`, and does not grant names that it has forgotten.
 *
 * Each instance of a ledger has its own incarnation. A point is dropped only when the ledger has answered a
 * call with it, and its answer had a newer incarnation. Otherwise a ledger that went back and was restarted
 * could make the client forget what it has seen.
 */
export class LedgerHistory {
  /** The largest position by incarnation, in the order in which they are sent next. */
  readonly #points = new Map<number, number>();
  readonly #replaced = new Map<number, number>();
  #listener: (() => void) | undefined;

  /** What the client has seen, to be stored: usually one point, and two after a restart of the ledger. */
  get points(): LedgerPoint[] {
    return pointsOf(this.#points);
  }

  /** Points that the ledger has confirmed and that a newer one replaces, so they can be deleted. */
  get replaced(): LedgerPoint[] {
    return pointsOf(this.#replaced);
  }

  /** Adds points that this client or another process of the cell has stored. */
  add(points: Iterable<LedgerPoint>): void {
    for (const { incarnation, position } of points)
      if (position > (this.#replaced.get(incarnation) ?? -1)) raise(this.#points, incarnation, position);
  }

  /** Forgets replaced points that were deleted. */
  deleted(points: Iterable<LedgerPoint>): void {
    for (const { incarnation, position } of points)
      if (this.#replaced.get(incarnation) === position) this.#replaced.delete(incarnation);
  }

  /**
   * Calls `listener` after every answer with a new point. It replaces the listener before it: all cells made
   * with one client have the same database, so one of them is enough to save the points. ¶ @internal
   */
  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  /** Returns the point for the next call. If there are several, they take turns. ¶ @internal */
  next(): LedgerPoint | undefined {
    const [first] = this.#points;
    if (first === undefined) return undefined;
    const [incarnation, position] = first;
    this.#points.delete(incarnation);
    this.#points.set(incarnation, position);
    return { incarnation, position };
  }

  /** The ledger has answered a call that sent `sent`, so it has that point. ¶ @internal */
  answered(sent: LedgerPoint | undefined, header: string | null): void {
    const point = readPoint(header);
    if (point === undefined) return;
    if (sent !== undefined && sent.incarnation < point.incarnation) {
      const known = this.#points.get(sent.incarnation);
      if (known !== undefined && known <= sent.position) {
        this.#points.delete(sent.incarnation);
        raise(this.#replaced, sent.incarnation, known);
      }
    }
    if (raise(this.#points, point.incarnation, point.position)) this.#listener?.();
  }
}

export const headerOf = ({ incarnation, position }: LedgerPoint): string => `${incarnation}.${position}`;

const pointsOf = (points: ReadonlyMap<number, number>): LedgerPoint[] =>
  [...points]
    .map(([incarnation, position]) => ({ incarnation, position }))
    .toSorted((a, b) => a.incarnation - b.incarnation);

/** Returns whether the point is new. */
function raise(points: Map<number, number>, incarnation: number, position: number): boolean {
  const known = points.get(incarnation);
  if (known === undefined ? points.size >= MAX_POINTS : position <= known) return false;
  points.set(incarnation, position);
  return true;
}

/** Undefined if there is no header, or one of a form that this client does not know. */
function readPoint(header: string | null): LedgerPoint | undefined {
  const parts = (header ?? "").split(".").map(Number);
  const [incarnation = NaN, position = NaN] = parts;
  const isValid = parts.length === 2 && parts.every((part) => Number.isSafeInteger(part) && part >= 0);
  return isValid && incarnation > 0 ? { incarnation, position } : undefined;
}
