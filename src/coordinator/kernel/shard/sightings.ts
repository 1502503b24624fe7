import type { HistoryPoint } from "../messages.ts";

/** What a row of the log says of ledgers, by their cells. */
export type StoredPoints = Record<string, [incarnation: number, position: number]>;

/** How far a shard has seen that ledgers have got. Without a capability, nobody compares that. */
export interface Sightings {
  /** The newest point of a ledger that is stored. */
  of(cell: string): HistoryPoint | undefined;
  /** The newest points of all ledgers that are stored, by their cells. */
  readonly all: Record<string, HistoryPoint>;
  /**
   * Notes the point of a ledger whose message is carried out in this transaction (H3). Returns false if the
   * message must not be carried out, because the ledger has not said that it has the stored point (H5).
   */
  note(cell: string, point: HistoryPoint | null, confirmed: HistoryPoint | null): boolean;
  /** Notes the point of a ledger that another shard has stored, if it is later (H3). */
  noteLater(cell: string, point: HistoryPoint): void;
  /** Returns what the next row has, which replaces the row in its slot. */
  take(slot: number): StoredPoints;
  /** Called at the end of each transaction that changes nothing. */
  discard(): void;
}

export const noSightings: Sightings = {
  of: () => undefined,
  all: {},
  note: () => true,
  noteLater: () => {},
  take: () => ({}),
  discard: () => {},
};
