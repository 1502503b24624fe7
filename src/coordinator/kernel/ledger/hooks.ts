import type { HookLists } from "../half.ts";
import type {
  BeginRequest,
  CellCall,
  Caller,
  CellStatus,
  DecideRequest,
  LedgerCopies,
  MaintainAnswer,
  Envelope,
  Maintain,
  Told,
} from "../messages.ts";
import type { Refusal, Result } from "../refusal.ts";
import type { LeaseRow } from "./lease-table.ts";
import type { LedgerMetrics } from "../metrics/messages.ts";

/** What capabilities do in a ledger besides their methods. */
export interface LedgerHooks {
  /** Why a call of the cell is refused before the ledger compares what the cell has seen of it. */
  guardCall?(call: CellCall): Refusal | undefined;
  /** Takes over what the sender of a message has seen of other parts. */
  learn?(message: Envelope): void;
  /** Adds fields to all answers that tell more than their content. */
  tell?(): Partial<Told>;
  /** Why a caller is refused (A1): when it calls, and in the transaction that grants its begin. */
  guardCaller?(caller: Caller): Refusal | undefined;
  /** Why a begin is refused: when it arrives, and in the transaction that grants it. */
  guardGrant?(request: LedgerBegin): Refusal | undefined;
  /** Whether a begin is for the batch of a known lease, although the hashes differ. Undefined: not known. */
  compareBatch?(row: LeaseRow, request: BeginRequest): Result<null> | undefined;
  /** Runs in the transaction that grants a lease. */
  granted?(request: LedgerBegin, row: LeaseRow): void;
  /** Why a decision is refused. It never is for load (C6). */
  guardDecision?(request: DecideRequest): Refusal | undefined;
  /** Runs in the transaction that decides a lease. One that was never granted has no row. */
  decided?(request: DecideRequest, before: LeaseRow | null): void;
  /** Adds fields to what the ledger tells of its cell. */
  status?(): Partial<CellStatus>;
  /** Takes over what the cron tells, before the ledger resumes unfinished work, unless it refuses it. */
  maintaining?(message: Maintain): Refusal | undefined;
  /** Adds fields to what the cron is told. */
  maintained?(): Partial<MaintainAnswer>;
  metrics?(): Partial<LedgerMetrics>;
  /** Runs in the transaction that decides a lease, or refuses to. */
  decisionAnswered?(request: DecideRequest, result: Result<unknown>): void;
  /** Why the state of the cell cannot be set, and it gets no more names. The refusal ends with `remedy`. */
  guardCell?(remedy: string): Refusal | undefined;
  /** Runs in the transaction that ends the cell for good (X4). */
  cellEnded?(): void;
  /** Takes back what others have of this ledger, in the transaction after which it works again. */
  resumed?(copies: LedgerCopies): void;
}

/** A begin as its ledger carries it out. */
export interface LedgerBegin extends BeginRequest {
  /** The ledger makes it for an operation that has entries of its own in the audit. */
  isPart?: true;
}

export const noLedgerHooks = (): HookLists<LedgerHooks> => ({
  guardCall: [],
  learn: [],
  tell: [],
  guardCaller: [],
  guardGrant: [],
  compareBatch: [],
  granted: [],
  guardDecision: [],
  decided: [],
  status: [],
  maintaining: [],
  maintained: [],
  metrics: [],
  decisionAnswered: [],
  guardCell: [],
  cellEnded: [],
  resumed: [],
});
