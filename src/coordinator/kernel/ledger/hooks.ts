import type { HookLists } from "../half.ts";
import type {
  BeginRequest,
  CellCall,
  CellStatus,
  DecideRequest,
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
  /** Why a begin is refused: when it arrives, and in the transaction that grants it. */
  guardGrant?(request: BeginRequest): Refusal | undefined;
  /** Whether a begin is for the batch of a known lease, although the hashes differ. Undefined: not known. */
  compareBatch?(row: LeaseRow, request: BeginRequest): Result<null> | undefined;
  /** Runs in the transaction that grants a lease. */
  granted?(request: BeginRequest, row: LeaseRow): void;
  /** Why a decision is refused. It never is for load (C6). */
  guardDecision?(request: DecideRequest): Refusal | undefined;
  /** Runs in the transaction that decides a lease. One that was never granted has no row. */
  decided?(request: DecideRequest, before: LeaseRow | null): void;
  /** Adds fields to what the ledger tells of its cell. */
  status?(): Partial<CellStatus>;
  /** Takes over what the cron tells, before the ledger resumes unfinished work. */
  maintaining?(message: Maintain): void;
  /** Adds fields to what the cron is told. */
  maintained?(): Partial<MaintainAnswer>;
  metrics?(): Partial<LedgerMetrics>;
  /** Runs in the transaction that decides a lease, or refuses to. */
  decisionAnswered?(request: DecideRequest, result: Result<unknown>): void;
  /** Runs in the transaction that marks the cell as removed (X4). */
  cellEnded?(): void;
}

export const noLedgerHooks = (): HookLists<LedgerHooks> => ({
  guardCall: [],
  learn: [],
  tell: [],
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
  cellEnded: [],
});
