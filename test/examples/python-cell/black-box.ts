/** A cell as the scenarios see it, whatever language it is written in. */
import type { FaultyFetch } from "../../../src/users/cell/conformance/faulty-fetch.ts";
import type { TestedCell } from "../../users/cell/scenarios/drizzle.ts";

export type Values = Record<string, unknown>;
type TableName = "users" | "emails" | "organizations";

/** One step of a local transaction. `id` is the id of a row. */
export type Step =
  | ["insert", TableName, Values]
  | ["update", TableName, number, Values]
  | ["delete", TableName, number]
  /** SQL that changes no claimed row. */
  | ["sql", string]
  /** Steps inside a savepoint that is undone. */
  | ["undone", Step[]]
  /** An SQL error that the body ignores. */
  | ["spoil"]
  /** An error of the application. */
  | ["fail"];

/** What happens at a step that no body sees. */
export interface Moments {
  /** The answer to COMMIT is lost, after the rows were saved or undone. */
  commit?: "lost_saved" | "lost_undone";
  /** A reconciliation that runs between the begin and COMMIT. */
  reconcileBeforeCommit?: ReconcileOptions;
  /** A fence that is written before the lease row. */
  fenceFirst?: boolean;
}

export interface ReconcileOptions {
  full?: boolean;
  commitGraceS?: number;
  staleS?: number;
  orphanS?: number;
}

export interface Counts {
  committed: number;
  rolledBack: number;
  pending: number;
  orphaned: number;
  contradicted: number;
  failed: number;
}

export interface VerifyOptions {
  apply: boolean;
  /** The run stops before more changes. */
  maxChanges: number;
}

export interface VerifyResult {
  status: string;
  duplicates: number;
}

export interface BlackBox {
  /** The network between this cell and the coordinator. */
  readonly network: FaultyFetch;
  /**
   * Runs one local transaction. Answers the result of each step, and what `moments` noted. Rejects with
   * `BoxError`.
   */
  transaction(steps: Step[], moments?: Moments): Promise<{ results: unknown[]; noted: unknown[] }>;
  reconcile(options?: ReconcileOptions): Promise<Counts>;
  /** Compares rows and claims, however recent they are. */
  verify(options: VerifyOptions): Promise<VerifyResult>;
  fence(lease: string): Promise<string>;
  saveHistory(): Promise<void>;
  /** The kinds of all events so far. */
  events(): Promise<string[]>;
  close(): Promise<void>;
}

/**
 * Why a transaction failed: a code of the API, `UNAVAILABLE` without an answer, `UNKNOWN_COMMIT`,
 * `NOT_SAVED`, or another text for errors of the database or the application.
 */
export class BoxError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** A cell under test, and the SDK's view of its database and of the coordinator. */
export interface BoxedCell {
  box: BlackBox;
  seen: TestedCell;
}
