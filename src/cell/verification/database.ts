import type { AnyRow, Claimable } from "../claimable.ts";
import type { IdRange, QueuedRow, QueuePage } from "./ports.ts";

export interface InspectedRow {
  row: AnyRow;
  /** As the database writes it: what its order and its searches go by. */
  idText: string;
  /** Since the time in the table's `changedAt`, by the database's clock. Undefined: it has none. */
  ageMs: number | undefined;
}

/** What a verification needs of a cell's database, beyond its transactions. One implementation for each dialect. */
export interface VerificationDatabase<Tx> {
  count(claimable: Claimable, range: IdRange): Promise<number>;
  /** In source order: decimal ids as numbers, before all others; the others by bytes. */
  page(claimable: Claimable, range: IdRange & { limit: number }): Promise<InspectedRow[]>;
  /** Those that there are. In a transaction they are kept from changing until it ends. */
  byIds(tx: Tx | undefined, claimable: Claimable, ids: readonly string[]): Promise<InspectedRow[]>;
  /** What `saveProgress` was given last, and how long ago. */
  loadProgress(): Promise<{ text: string; ageMs: number } | undefined>;
  saveProgress(text: string): Promise<void>;
  listQueue(page: QueuePage): Promise<QueuedRow[]>;
  /** Those that were queued again since, for another lease, stay. */
  removeFromQueue(rows: readonly QueuedRow[]): Promise<void>;
}
