import {
  holdRows,
  itemsOf,
  type StoredEnd,
  type StoredEntry,
} from "../../../../src/coordinator/kernel/shard/hold-entries.ts";
import { bucketText, type HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";

/** A row of a shard's log, as far as it is about holds. */
export interface LogRow {
  position: number;
  holds: string | null;
  ended: string | null;
  open_from: number;
}

export const LOG_ROWS = "SELECT position, holds, ended, open_from FROM log ORDER BY position";

/**
 * Returns the holds that rows of a log have: the entries of which no row says that they have ended. It knows
 * nothing of how a shard keeps them.
 */
export function loggedHolds(rows: readonly LogRow[]): HoldRow[] {
  const entries = new Map<string, Map<string, HoldRow>>();
  for (const row of rows) {
    for (const entry of itemsOf<StoredEntry>(row.holds))
      entries.set(
        `${entry[0]}.${entry[1]}`,
        new Map(holdRows(entry).map((hold) => [bucketText(hold.bucket_type, hold.canonical), hold])),
      );
    for (const [since, part, names] of itemsOf<StoredEnd>(row.ended)) {
      const holds = entries.get(`${since}.${part}`);
      for (const name of names ?? [...(holds?.keys() ?? [])]) holds?.delete(name);
    }
  }
  return [...entries.values()].flatMap((holds) => [...holds.values()]);
}

/** Returns what a start of a shard reads of its log. */
export const readAtStart = (rows: readonly LogRow[]): LogRow[] => {
  const first = rows.at(-1)?.open_from ?? 0;
  return rows.filter(({ position }) => position >= first);
};
