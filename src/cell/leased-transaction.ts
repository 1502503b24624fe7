import { describeFailure, type Answer } from "../client/answer.ts";
import type { CallOptions } from "../client/connection.ts";
import { errorOf } from "../client/errors.ts";
import type { Batch, Conflict } from "../client/api-types.ts";
import type { Begun } from "./begin.ts";
import type { SourceRow } from "./changes.ts";
import { LocalCommitUnknownError, NotSavedError } from "./errors.ts";
import type { LocalTransactions } from "./local.ts";
import { isUnknownLease, type LeaseState } from "./remote-leases.ts";

/** What a lease takes, and the rows that it is for. */
export interface Claimed {
  batch: Batch;
  sources: readonly SourceRow[];
}

/** The cell's leases at the coordinator. */
export interface LeaseCalls {
  begin(uuid: string, batch: Batch, options: CallOptions): Promise<Begun>;
  commit(uuid: string): Promise<Answer<LeaseState>>;
  rollback(uuid: string): Promise<Answer<LeaseState>>;
}

/** What a caller is not told, because its own call succeeded or failed for another reason. */
export type LeaseEvent =
  /** Not yet; reconciliation will. */
  | { kind: "commit_left" | "rollback_left" | "remove_left"; uuid: string; why: string }
  /** The rows are saved, and the coordinator says that their lease was rolled back: another cell may have the names. They are queued for verification. */
  | { kind: "contradicted"; uuid: string; coordinator: "ROLLED_BACK" | "NOT_FOUND" }
  /** Names that were to be given up are another cell's, another row's, or nobody's: rows and claims had differed before. */
  | { kind: "not_owned"; uuid: string; conflicts: readonly Conflict[] };

export interface LeasedTransactionPorts<Tx> {
  local: LocalTransactions<Tx>;
  leases: LeaseCalls;
  report: (event: LeaseEvent) => void;
}

interface Wanted<T> {
  value: T;
  /** Undefined: no claim changes, so no lease is needed. */
  claimed: Claimed | undefined;
}

/**
 * One local transaction and its lease: local writes, begin with the outstanding-lease row, COMMIT, commit of the lease. Whatever fails, and wherever
 * the process dies, the lease's row is in the database exactly when the rows are, and reconciliation brings the coordinator to agree.
 */
export class LeasedTransaction<Tx> {
  readonly #ports: LeasedTransactionPorts<Tx>;
  readonly #uuid: string;
  /** Undefined: not asked. */
  #begun: Answer<LeaseState> | undefined;

  constructor(ports: LeasedTransactionPorts<Tx>, uuid: string) {
    this.#ports = ports;
    this.#uuid = uuid;
  }

  /** The newest seed's order: the begin is the last thing before COMMIT, because ids are often known only after the insert. */
  async inTransaction<T>(body: (tx: Tx) => Promise<Wanted<T>>, begin: CallOptions): Promise<T> {
    const ran = await this.#ports.local.run(async (tx) => {
      const { value, claimed } = await body(tx);
      if (claimed !== undefined) await this.#beginAndSave(tx, claimed, begin);
      return value;
    });
    return this.#end(ran);
  }

  /** The other order: no network inside the local transaction. */
  async preflight<T>(
    claimed: Claimed | undefined,
    body: (tx: Tx) => Promise<T>,
    begin: CallOptions,
  ): Promise<T> {
    if (claimed !== undefined) {
      this.#note(await this.#ports.leases.begin(this.#uuid, claimed.batch, begin));
      const { error } = this.#refusal() ?? {};
      if (error !== undefined) {
        await this.#rollBackUnlessRefused();
        throw error;
      }
    }
    const sources = this.#begun === undefined ? undefined : claimed?.sources;
    const ran = await this.#ports.local.run(async (tx) => {
      // First, so that a reconciliation that gave the lease up meanwhile stops this before it has done anything (the fence row has the key).
      if (sources !== undefined) await this.#ports.local.insertLease(tx, { uuid: this.#uuid, sources });
      return body(tx);
    });
    return this.#end(ran);
  }

  /** At the same time: the row waits for the database, the begin for the coordinator. */
  async #beginAndSave(tx: Tx, { batch, sources }: Claimed, options: CallOptions): Promise<void> {
    const { local, leases } = this.#ports;
    const [saved, begun] = await Promise.allSettled([
      local.insertLease(tx, { uuid: this.#uuid, sources }),
      leases.begin(this.#uuid, batch, options),
    ]);
    this.#note(begun.status === "fulfilled" ? begun.value : unanswered(begun.reason));
    const { error } = this.#refusal() ?? {};
    if (error !== undefined) throw error;
    if (saved.status === "rejected") throw saved.reason;
    if (this.#begun === undefined) await local.removeLease(tx, this.#uuid);
  }

  /** A lease that is not needed is none. */
  #note(begun: Begun): void {
    this.#begun = begun.kind === "not_needed" ? undefined : begun;
  }

  #refusal(): { error: Error } | undefined {
    const begun = this.#begun;
    if (begun === undefined) return undefined;
    if (begun.kind !== "ok") return { error: errorOf(begun, this.#uuid) };
    // A UUID of one's own can only be granted, unless somebody closed it in the meantime.
    return begun.value === "GRANTED"
      ? undefined
      : { error: new Error(`the lease was ${begun.value} before it was used`) };
  }

  async #end<T>(ran: Awaited<ReturnType<LocalTransactions<Tx>["run"]>>): Promise<T> {
    if (this.#begun === undefined) {
      if (ran.kind === "committed") return ran.value as T;
      throw ran.kind === "unknown" ? new LocalCommitUnknownError(ran.error, undefined) : ran.error;
    }
    switch (ran.kind) {
      case "rolled_back":
        await this.#rollBackUnlessRefused();
        throw ran.error;
      case "unknown":
        // Neither commit nor rollback: only the database knows, and reconciliation asks it.
        throw new LocalCommitUnknownError(ran.error, this.#uuid);
      case "committed":
        await this.#settle();
        return ran.value as T;
    }
  }

  /** Also after an unknown begin: only this closes the lease for good (rule C7). */
  async #rollBackUnlessRefused(): Promise<void> {
    const begun = this.#begun;
    if (begun !== undefined && begun.kind !== "ok" && begun.outcomeKnown) return;
    const answer = await this.#ports.leases.rollback(this.#uuid);
    if (answer.kind !== "ok")
      this.#report({ kind: "rollback_left", uuid: this.#uuid, why: describeFailure(answer) });
  }

  /** The rows are saved, says the database. Before the coordinator is told, it is asked once more, outside of the transaction. */
  async #settle(): Promise<void> {
    const seen = await attempt(() => this.#ports.local.look(this.#uuid));
    if (seen.error !== undefined) return this.#left("commit_left", seen.error);
    if (seen.value.isInTransaction)
      return this.#left("commit_left", "a local transaction is still open around this one");
    if (seen.value.isSaved) return this.#commit();
    await this.#notSaved();
  }

  async #commit(): Promise<void> {
    const { local, leases } = this.#ports;
    const answer = await leases.commit(this.#uuid);
    if (answer.kind === "ok") {
      const removed = await attempt(() => local.remove(this.#uuid));
      if (removed.error !== undefined) this.#left("remove_left", removed.error);
    } else if (answer.kind === "refused" && answer.reason === "LEASE_ROLLED_BACK")
      await this.#contradicted("ROLLED_BACK");
    else if (isUnknownLease(answer)) await this.#contradicted("NOT_FOUND");
    else this.#left("commit_left", describeFailure(answer));
  }

  async #contradicted(coordinator: "ROLLED_BACK" | "NOT_FOUND"): Promise<void> {
    const queued = await attempt(() => this.#ports.local.queueForVerification(this.#uuid));
    this.#report({ kind: "contradicted", uuid: this.#uuid, coordinator });
    // Its row is still there then, and the next reconciliation meets the same contradiction.
    if (queued.error !== undefined) this.#left("remove_left", queued.error);
  }

  /**
   * The row is not there: the transaction was undone although the database said otherwise; or a reconciliation has committed the lease and removed the
   * row already. The fence tells which, and cannot be mistaken: it is written where the row would be.
   */
  async #notSaved(): Promise<void> {
    const { local, leases } = this.#ports;
    const fenced = await attempt(() => local.fence(this.#uuid));
    if (fenced.error !== undefined) throw this.#unsure("commit_left", fenced.error);
    if (fenced.value === "saved") return this.#left("commit_left", "its row was not seen at first");
    if (fenced.value !== "fenced") throw this.#unsure("commit_left", "its row is in flight");
    const answer = await leases.rollback(this.#uuid);
    if (answer.kind === "ok") throw new NotSavedError();
    if (answer.kind === "refused" && answer.reason === "LEASE_COMMITTED") return;
    // It may have been committed, and then the rows are saved.
    throw this.#unsure("rollback_left", describeFailure(answer));
  }

  #unsure(kind: "commit_left" | "rollback_left", why: string): LocalCommitUnknownError {
    this.#left(kind, why);
    return new LocalCommitUnknownError(why, this.#uuid);
  }

  #left(kind: "commit_left" | "rollback_left" | "remove_left", why: string): void {
    this.#report({ kind, uuid: this.#uuid, why });
  }

  #report(event: LeaseEvent): void {
    this.#ports.report(event);
  }
}

const unanswered = (error: unknown): Answer<LeaseState> => ({
  kind: "unknown",
  why: "unavailable",
  error: error instanceof Error ? error.message : String(error),
  cause: error,
  outcomeKnown: false,
});

type Attempt<T> = { value: T; error?: undefined } | { error: string };

async function attempt<T>(work: () => Promise<T>): Promise<Attempt<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
