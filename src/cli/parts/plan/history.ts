import type { HistoryPoint, Part } from "../../../client/api-types.ts";

type Incarnations = NonNullable<Part["loss"]>["incarnations"];

/** The history that was left of a shard: incarnation by incarnation, up to a position (H1). */
export class LeftHistory {
  /** Newest first. */
  readonly #incarnations: Incarnations;
  /** The position of the rows that were left. */
  readonly position: number;
  /** With this incarnation, the shard has accepted its loss. */
  readonly #accepted: number;

  constructor(incarnations: Incarnations, position: number, accepted: number) {
    this.#incarnations = incarnations;
    this.position = position;
    this.#accepted = accepted;
  }

  /** Whether the shard has lost a point. What it has done since it accepted the loss is not lost. */
  hasLost(point: HistoryPoint): boolean {
    return point.incarnation < this.#accepted && !this.has(point);
  }

  /** Whether a point is in this history. */
  has({ incarnation, position }: HistoryPoint): boolean {
    if (position === 0) return true;
    const end = this.endOf(incarnation);
    if (end !== undefined) return position <= end;
    // Incarnations that are not listed, because they are too old, were not lost this time.
    const oldest = this.#incarnations.at(-1);
    return oldest !== undefined && oldest.first_position > 1 && incarnation < oldest.incarnation;
  }

  /** The last position of an incarnation. Undefined if the incarnation is not listed. */
  endOf(incarnation: number): number | undefined {
    const index = this.#incarnations.findIndex((each) => each.incarnation === incarnation);
    if (index === -1) return undefined;
    const next = this.#incarnations[index - 1];
    return next === undefined ? this.position : next.first_position - 1;
  }
}

/** Whether the first point is certainly in the history that has the second one. */
export const isBefore = (first: HistoryPoint, second: HistoryPoint): boolean =>
  first.incarnation === second.incarnation && first.position <= second.position;
