import type { SQL } from "drizzle-orm";
import type { Batch } from "../client/api-types.ts";
import type { SourceRow } from "./changes.ts";
import type { AnyRow, Claimable } from "./claimable.ts";
import type { LocalLeases } from "./reconcile.ts";
import type { VerificationDatabase } from "./verification/database.ts";

/** What became of a local transaction. */
export type Ran<T> =
  | { kind: "committed"; value: T }
  /** Certainly: COMMIT was never sent, or the database answered it with an error that undoes everything. */
  | { kind: "rolled_back"; error: unknown }
  /** COMMIT was sent, and nobody knows what became of it. */
  | { kind: "unknown"; error: unknown };

/** The row that is written in the same local transaction as the rows that a lease is for. */
export interface NewLocalLease {
  uuid: string;
  /** The rows to look at, if the coordinator should turn out to disagree. */
  sources: readonly SourceRow[];
  /** To be begun after the transaction: see `DeferredLeases`. */
  deferred?: Batch;
}

/** The local transaction around a lease. */
export interface LocalTransactions<Tx> extends LocalLeases {
  /** One local transaction. Never rejects. */
  run<T>(body: (tx: Tx) => Promise<T>): Promise<Ran<T>>;
  insertLease(tx: Tx, lease: NewLocalLease): Promise<void>;
  /** Takes the lease's row out again, within the transaction that wrote it. */
  removeLease(tx: Tx, uuid: string): Promise<void>;
  /** Outside of any transaction: whether the lease's row is there, and whether that can be trusted. */
  look(uuid: string): Promise<{ isSaved: boolean; isInTransaction: boolean }>;
}

/** A deletion that is saved and whose claims are still to be given up. */
export interface Deferred {
  uuid: string;
  batch: Batch;
}

/** A cell's database: rows of claimable tables, and the cell's own tables. One implementation for each dialect. */
export interface CellDatabase<Tx> extends LocalTransactions<Tx> {
  verification: VerificationDatabase<Tx>;
  /** The same, with transactions that see what others have committed meanwhile, and lock rows but no gaps between them. */
  readCommitted: CellDatabase<Tx>;
  /** Makes the cell's own tables, where they are missing. */
  install(): Promise<void>;
  /** Answers the rows as they are stored. With `skipExisting` those that meet a unique key are left out. */
  insert(
    tx: Tx,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options?: { skipExisting?: boolean },
  ): Promise<AnyRow[]>;
  /** Reads rows and keeps them from changing until the transaction ends; in the order of their ids. */
  lock(tx: Tx, claimable: Claimable, where: SQL | undefined, limit?: number): Promise<AnyRow[]>;
  /** The rows as they are in the transaction now, whatever it read before; in the order of their ids, those that are gone left out. */
  read(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]>;
  /** Answers the rows as they are now. */
  update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]>;
  /** Answers how many rows. */
  delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number>;
  /** Saved leases that are still to be begun, in the order of their UUIDs (by time), after `afterUuid` ("" for the first page). */
  listDeferred(page: { afterUuid: string; limit: number }): Promise<Deferred[]>;
  /** Gives a deferred lease another UUID and batch; without those it is removed. False when it is gone, or another's already: nothing was done. */
  replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean>;
  /** Foreign keys that would change or delete claimed rows behind the cell's back, so that their claims stay: a sentence for each. */
  cascades(claimables: readonly Claimable[]): string[];
}
