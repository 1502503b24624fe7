import { describeFailure, unknownFrom, type Answer } from "../client/answer.ts";
import type { Batch, Conflict } from "../client/api-types.ts";
import type { CallOptions } from "../client/connection.ts";
import { errorOf } from "../client/errors.ts";
import type { BeginCallOptions } from "../client/leases.ts";
import type { Positions } from "../router/positions.ts";
import type { SourceRow } from "./changes.ts";
import { LocalCommitUnknownError, NotSavedError, reasonOf, transactionEnded } from "./errors.ts";
import type { LocalTransactions } from "./local.ts";
import { isUnknownLease, type ClientLeases, type LeaseAnswer, type LeaseState } from "./remote-leases.ts";

/** `not_needed`: no ops are left. */
export type Begun = LeaseAnswer | { kind: "not_needed" };

/**
 * Begins a lease. If all conflicts are destroys of claims that are not this row's, it begins once more
 * without them. Otherwise the row could not be renamed or deleted. `notOwned` is called, because this should
 * not happen. A certain refusal leaves nothing behind, so the same UUID can be used again.
 */
export async function beginAdjusting(
  leases: Pick<ClientLeases, "begin">,
  uuid: string,
  batch: Batch,
  options: BeginCallOptions,
  notOwned: (conflicts: readonly Conflict[]) => void,
): Promise<Begun> {
  const started = performance.now();
  const answer = await leases.begin(uuid, batch, options);
  if (
    answer.kind !== "refused" ||
    !answer.outcomeKnown ||
    answer.conflicts.length === 0 ||
    !answer.conflicts.every(isOfAnotherRow)
  )
    return answer;
  notOwned(answer.conflicts);
  const { creates = [], destroys = [], replaces = [] } = batch;
  const dropped = new Set(answer.conflicts.map(({ index }) => index));
  const kept = [...destroys.keys()].filter((index) => !dropped.has(index));
  if (creates.length + kept.length + replaces.length === 0) return { kind: "not_needed" };
  const next = { ...batch, destroys: destroys.filter((_, index) => !dropped.has(index)) };
  const elapsedMs = performance.now() - started;
  const { deadlineMs, waitMs = 0 } = options;
  // The time for the wait comes on top of the deadline.
  const waitedMs = Math.min(elapsedMs, waitMs);
  const left = {
    ...(deadlineMs === undefined ? {} : { deadlineMs: Math.max(1, deadlineMs - (elapsedMs - waitedMs)) }),
    ...(waitMs === 0 ? {} : { waitMs: waitMs - waitedMs }),
  };
  const again = await leases.begin(uuid, next, { ...options, ...left });
  if (again.kind !== "refused") return again;
  const atOriginalIndex = (conflict: Conflict): Conflict =>
    conflict.list === "destroys" ? { ...conflict, index: kept[conflict.index] ?? conflict.index } : conflict;
  return { ...again, conflicts: again.conflicts.map(atOriginalIndex) };
}

const isOfAnotherRow = ({ list, kind }: Conflict): boolean =>
  list === "destroys" && (kind === "not_owner" || kind === "mismatch");

/** The batch of a lease, and the rows that it is for. */
interface Claimed {
  batch: Batch;
  sources: readonly SourceRow[];
}

/** The cell's leases at the coordinator. */
export interface LeaseCalls {
  begin(uuid: string, batch: Batch, options: BeginCallOptions): Promise<Begun>;
  commit(uuid: string): Promise<Answer<LeaseState>>;
  /** With `givesUp`, no caller waits, so it may take long. */
  rollback(uuid: string, givesUp?: AbortSignal): Promise<Answer<LeaseState>>;
}

/** Events that no call can report, because the call itself succeeded or failed for another reason. */
export type LeaseEvent =
  /** Left to reconciliation. */
  | { kind: "commit_postponed" | "rollback_postponed" | "removal_postponed"; uuid: string; error: string }
  /**
   * The rows are saved, but the coordinator rolled their lease back, so another cell may hold the names. The
   * rows are queued for verification.
   */
  | { kind: "contradicted"; uuid: string; coordinator: "ROLLED_BACK" | "NOT_FOUND" }
  /**
   * Names to be released belong to another cell, to another row, or to nobody: rows and claims already
   * differed.
   */
  | { kind: "not_owned"; uuid: string; conflicts: readonly Conflict[] };

export interface LeasedTransactionPorts<Tx> {
  local: LocalTransactions<Tx>;
  leases: LeaseCalls;
  /** Starts work that no caller waits for. Answers false if too much of it is under way. */
  inBackground: (work: (givesUp: AbortSignal) => Promise<void>) => boolean;
  report: (event: LeaseEvent) => void;
}

interface BodyResult<T> {
  value: T;
  /** Undefined: no claim changes, so no lease is needed. */
  claimed: Claimed | undefined;
}

/**
 * One local transaction with its lease: local writes, begin, outstanding-lease row, COMMIT, commit of the
 * lease. Whatever fails, and wherever the process dies, the lease's row is in the database if and only if the
 * rows are. Reconciliation then makes the coordinator agree.
 */
export class LeasedTransaction<Tx> {
  readonly #ports: LeasedTransactionPorts<Tx>;
  readonly #uuid: string;
  /** Undefined before the begin, or if no lease is needed. */
  #begun: LeaseAnswer | undefined;
  /** Whether the lease's row is written before the body runs, so that a body which ends early may save it. */
  #isRowFirst = false;
  /** Whether the body ended the local transaction itself. */
  hasEnded = false;

  constructor(ports: LeasedTransactionPorts<Tx>, uuid: string) {
    this.#ports = ports;
    this.#uuid = uuid;
  }

  /** The positions from which on routers show the lease. Undefined without one. */
  get positions(): Positions | undefined {
    return this.#begun?.kind === "ok" ? this.#begun.positions : undefined;
  }

  /** The begin is the last step before COMMIT, because ids are often known only after the insert. */
  async inTransaction<T>(body: (tx: Tx) => Promise<BodyResult<T>>, begin: CallOptions): Promise<T> {
    const result = await this.#ports.local.run(async (tx) => {
      const { value, claimed } = await body(tx);
      if (claimed !== undefined) await this.#beginAndSave(tx, claimed, begin);
      return value;
    });
    return this.#end(result);
  }

  /** The begin comes first, so there is no network call inside the local transaction. */
  async preflight<T>(
    claimed: Claimed | undefined,
    body: (tx: Tx) => Promise<T>,
    begin: BeginCallOptions,
  ): Promise<T> {
    if (claimed !== undefined) {
      this.#note(await this.#ports.leases.begin(this.#uuid, claimed.batch, begin));
      const { error } = this.#refusal() ?? {};
      if (error !== undefined) {
        await this.#cleanUp();
        throw error;
      }
    }
    const sources = this.#begun === undefined ? undefined : claimed?.sources;
    this.#isRowFirst = sources !== undefined;
    const result = await this.#ports.local.run(async (tx) => {
      // Comes first: if a reconciliation has fenced the lease, this insert fails before anything else is
      // done.
      if (sources !== undefined) await this.#ports.local.insertLease(tx, { uuid: this.#uuid, sources });
      return body(tx);
    });
    return this.#end(result);
  }

  /** Writes the row and begins the lease at the same time, because each waits for another server. */
  async #beginAndSave(tx: Tx, { batch, sources }: Claimed, options: CallOptions): Promise<void> {
    const { local, leases } = this.#ports;
    const [saved, begun] = await Promise.allSettled([
      local.insertLease(tx, { uuid: this.#uuid, sources }),
      leases.begin(this.#uuid, batch, options),
    ]);
    this.#note(begun.status === "fulfilled" ? begun.value : unknownFrom(begun.reason));
    const { error } = this.#refusal() ?? {};
    if (error !== undefined) throw error;
    if (saved.status === "rejected") throw saved.reason;
    if (this.#begun === undefined) await local.removeLease(tx, this.#uuid);
  }

  #note(begun: Begun): void {
    this.#begun = begun.kind === "not_needed" ? undefined : begun;
  }

  #refusal(): { error: Error } | undefined {
    const begun = this.#begun;
    if (begun === undefined) return undefined;
    if (begun.kind !== "ok") return { error: errorOf(begun, this.#uuid) };
    // A new UUID can only be granted, unless somebody has already closed the lease.
    return begun.value === "GRANTED"
      ? undefined
      : {
          error: new Error(
            `the lease was already ${begun.value} when it was begun: run the transaction again`,
          ),
        };
  }

  async #end<T>(result: Awaited<ReturnType<LocalTransactions<Tx>["run"]>>): Promise<T> {
    if (result.kind === "ended") {
      this.hasEnded = true;
      // Only the database knows whether the lease's row is saved, so reconciliation decides.
      if (this.#isRowFirst) throw transactionEnded(result.error.cause, this.#uuid);
      if (this.#begun !== undefined) await this.#cleanUp();
      throw result.error;
    }
    if (this.#begun === undefined) {
      if (result.kind === "committed") return result.value as T;
      throw result.kind === "unknown" ? new LocalCommitUnknownError(result.error, undefined) : result.error;
    }
    switch (result.kind) {
      case "rolled_back":
        await this.#cleanUp();
        throw result.error;
      case "unknown":
        // Only the database knows the outcome, so neither commit nor rollback is safe. Reconciliation
        // decides.
        throw new LocalCommitUnknownError(result.error, this.#uuid);
      case "committed":
        await this.#commitIfSaved();
        return result.value as T;
    }
  }

  /**
   * Also rolls back after an unknown begin, because only that closes the lease permanently (C7). The
   * coordinator may not answer the rollback either, so the caller does not wait for it. After a granted begin
   * it waits, because then the names are free when it tries again.
   */
  async #cleanUp(): Promise<void> {
    const begun = this.#begun;
    if (begun?.kind === "ok") return this.#rollBack();
    if (begun?.outcomeKnown === true) return;
    if (!this.#ports.inBackground((givesUp) => this.#rollBack(givesUp)))
      this.#reportPostponed("rollback_postponed", "too many rollbacks are under way");
  }

  async #rollBack(givesUp?: AbortSignal): Promise<void> {
    const answer = await this.#ports.leases.rollback(this.#uuid, givesUp);
    if (answer.kind !== "ok") this.#reportPostponed("rollback_postponed", describeFailure(answer));
  }

  /**
   * The database reported a commit. Before the lease is committed, its row is read again outside the
   * transaction.
   */
  async #commitIfSaved(): Promise<void> {
    const seen = await caught(() => this.#ports.local.look(this.#uuid));
    if (seen.error !== undefined) return this.#reportPostponed("commit_postponed", seen.error);
    if (seen.value.isInTransaction)
      return this.#reportPostponed("commit_postponed", "a local transaction is still open around this one");
    if (seen.value.isSaved) return this.#commit();
    await this.#notSaved();
  }

  async #commit(): Promise<void> {
    const { local, leases } = this.#ports;
    const answer = await leases.commit(this.#uuid);
    if (answer.kind === "ok") {
      const removed = await caught(() => local.remove(this.#uuid));
      if (removed.error !== undefined) this.#reportPostponed("removal_postponed", removed.error);
    } else if (answer.kind === "refused" && answer.reason === "LEASE_ROLLED_BACK")
      await this.#contradicted("ROLLED_BACK");
    else if (isUnknownLease(answer)) await this.#contradicted("NOT_FOUND");
    else this.#reportPostponed("commit_postponed", describeFailure(answer));
  }

  async #contradicted(coordinator: "ROLLED_BACK" | "NOT_FOUND"): Promise<void> {
    const queued = await caught(() => this.#ports.local.queueForVerification(this.#uuid));
    this.#report({ kind: "contradicted", uuid: this.#uuid, coordinator });
    // The row of the lease is still there, so the next reconciliation finds the same contradiction.
    if (queued.error !== undefined) this.#reportPostponed("removal_postponed", queued.error);
  }

  /**
   * The row is missing. Either the transaction was undone although the database reported a commit, or a
   * reconciliation has already committed the lease and removed the row. Writing a fence in its place tells
   * which.
   */
  async #notSaved(): Promise<void> {
    const { local, leases } = this.#ports;
    const fenced = await caught(() => local.fence(this.#uuid));
    if (fenced.error !== undefined)
      throw this.#unknownOutcome("commit_postponed", fenced.error, fenced.cause);
    if (fenced.value === "saved")
      return this.#reportPostponed("commit_postponed", "its row was not seen at first");
    if (fenced.value !== "fenced") throw this.#unknownOutcome("commit_postponed", "its row is in flight");
    const answer = await leases.rollback(this.#uuid);
    if (answer.kind === "ok") throw new NotSavedError();
    if (answer.kind === "refused" && answer.reason === "LEASE_COMMITTED") return;
    // The lease may have been committed, and then the rows are saved.
    throw this.#unknownOutcome("rollback_postponed", describeFailure(answer));
  }

  #unknownOutcome(
    kind: "commit_postponed" | "rollback_postponed",
    error: string,
    cause: unknown = error,
  ): LocalCommitUnknownError {
    this.#reportPostponed(kind, error);
    return new LocalCommitUnknownError(cause, this.#uuid);
  }

  #reportPostponed(kind: `${"commit" | "rollback" | "removal"}_postponed`, error: string): void {
    this.#report({ kind, uuid: this.#uuid, error });
  }

  #report(event: LeaseEvent): void {
    this.#ports.report(event);
  }
}

type Caught<T> = { value: T; error?: undefined } | { error: string; cause: unknown };

async function caught<T>(work: () => Promise<T>): Promise<Caught<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    return { error: reasonOf(error), cause: error };
  }
}
