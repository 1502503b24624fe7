import type { Batch } from "../client/api-types.ts";
import type { LeaseholdError } from "../client/errors.ts";
import type { SourceRow } from "./changes.ts";
import type { Claimable } from "./claimable.ts";
import type { LocalLeases } from "./reconcile.ts";
import type { LedgerHistoryTable } from "./saved-history.ts";
import type { AnyRow } from "./table.ts";
import type { VerificationDatabase } from "./verification/ports.ts";

/** The outcome of a local transaction. */
export type TransactionResult<T> =
  | { kind: "committed"; value: T }
  /** Certain: COMMIT was never sent, or the database answered it with an error that undoes everything. */
  | { kind: "rolled_back"; error: unknown }
  /** The body ended the transaction itself. What was written before that is saved, or not. */
  | { kind: "ended"; error: LeaseholdError }
  /** COMMIT was sent, and its outcome is unknown. */
  | { kind: "unknown"; error: unknown };

/** The row of a lease, written in the same local transaction as the rows that the lease is for. */
export interface NewLocalLease {
  uuid: string;
  /** The rows to verify if the coordinator turns out to disagree. */
  sources: readonly SourceRow[];
  /** The batch to begin after the transaction: see `DeferredLeases`. */
  deferred?: Batch;
}

/** Local transactions, and the rows of their leases. */
export interface LocalTransactions<Tx> extends LocalLeases {
  /** Runs one local transaction. Never rejects. */
  run<T>(body: (tx: Tx) => Promise<T>): Promise<TransactionResult<T>>;
  insertLease(tx: Tx, lease: NewLocalLease): Promise<void>;
  /** Removes the lease's row within the transaction that wrote it. */
  removeLease(tx: Tx, uuid: string): Promise<void>;
  /** Reads the lease's row outside any transaction. With `isInTransaction`, the answer cannot be trusted. */
  look(uuid: string): Promise<{ isSaved: boolean; isInTransaction: boolean }>;
}

/** A deletion that is saved, and whose claims are to be destroyed by this lease. */
export interface Deferred {
  uuid: string;
  batch: Batch;
}

/** What an error of the database means for the cell. */
export type DatabaseProblem =
  /** A unique key of this table refused a row. `columns` are those of the key, as rows name them. */
  | { kind: "duplicate"; table: Claimable; columns: readonly string[] }
  /** One of the cell's own tables does not exist. */
  | { kind: "not_installed"; table: string };

/** The table that a statement wrote, and the id of the row if it was one row with an id. */
export interface FailedWrite {
  claimable: Claimable;
  id: unknown;
}

/** Rows of a table: by a condition of the table's adapter, where undefined matches all, or by their ids. */
export type Selection = { where: unknown } | { ids: readonly unknown[] };

/** A cell's database: rows of claimable tables, and the cell's own tables. Each dialect implements it. */
export interface CellDatabase<Tx> extends LocalTransactions<Tx> {
  verification: VerificationDatabase<Tx>;
  ledgerHistory: LedgerHistoryTable;
  /** The same database, with transactions at READ COMMITTED, which lock rows but no gaps between them. */
  readCommitted: CellDatabase<Tx>;
  /** Creates the cell's own tables if they are missing. */
  install(): Promise<void>;
  /** Answers the stored rows in the order of the given ones. */
  insert(tx: Tx, claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[]>;
  /**
   * The same. If a unique key refuses a row, it stores none, answers undefined, and the transaction goes on,
   * unless the table has a deferrable key.
   */
  tryInsert(tx: Tx, claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[] | undefined>;
  /** Whether a unique key of all rows consists of exactly these columns, as rows name them. */
  isUniqueKey(tx: Tx, claimable: Claimable, key: readonly string[]): Promise<boolean>;
  /**
   * Whether there may be rows that match. Ask this before `lock` where there may be none: on MySQL, locking
   * rows that don't exist blocks inserts of other transactions.
   */
  mayHave(tx: Tx, claimable: Claimable, where: unknown): Promise<boolean>;
  /** Reads rows in the order of their ids, and locks them until the transaction ends. */
  lock(tx: Tx, claimable: Claimable, rows: Selection, limit?: number): Promise<AnyRow[]>;
  /**
   * Reads the current rows in the order of their ids, whatever the transaction read before. Omits missing
   * ones.
   */
  read(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<AnyRow[]>;
  /** Answers the updated rows. */
  update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]>;
  /** Answers the number of deleted rows. */
  delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number>;
  /** Answers deferred leases by UUID, which is by time, after `afterUuid` ("" for the first page). */
  listDeferred(page: { afterUuid: string; limit: number }): Promise<Deferred[]>;
  /** Gives a deferred lease another UUID and batch, or removes it. False if the lease is already gone. */
  replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean>;
  /**
   * Tells what an error of a local transaction means. Undefined for all other errors.
   *
   * @param tables The cell's claimable tables.
   */
  problemOf(error: unknown, tables: readonly Claimable[]): Promise<DatabaseProblem | undefined>;
  /** The insert or update of this object that failed with this error. */
  writeOf(error: unknown): FailedWrite | undefined;
  /**
   * Answers a sentence for each foreign key that changes or deletes claimed rows without the SDK, as far as
   * the tables declare it.
   */
  cascades(claimables: readonly Claimable[]): string[];
  /** Answers a sentence for each table that cannot be claimed, because of what only the database knows. */
  storedFaults(claimables: readonly Claimable[]): Promise<string[]>;
  /** Answers a sentence for each such foreign key that only the database knows. */
  storedCascades(claimables: readonly Claimable[]): Promise<string[]>;
}
