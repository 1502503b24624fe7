import type { CellAddress } from "./routes.ts";

interface EntryOrigin {
  /** The hash of the key, the same for all spellings of a name. */
  key: string;
  shard: number;
  position: number;
  settled: boolean;
  /**
   * The answer was true at a moment not before this one, on this router's clock: when the question was sent,
   * minus the age in the answer (Q4).
   */
  sinceMs: number;
}

export interface FoundEntry extends EntryOrigin {
  kind: "found";
  cell: CellAddress;
  epoch: number;
}

export interface NoneEntry extends EntryOrigin {
  kind: "none";
}

/** An answer about one name, with what decides whether it may be used. */
export type Entry = FoundEntry | NoneEntry;

/** An entry's own objects and numbers. */
const ENTRY_BYTES = 160;

/** The size of an entry in memory, an estimate. */
export const bytesOf = (entry: Entry): number =>
  ENTRY_BYTES + 2 * entry.key.length + (entry.kind === "found" ? addressBytes(entry.cell) : 0);

const addressBytes = ({ id, address }: CellAddress): number => 2 * (id.length + address.length);
