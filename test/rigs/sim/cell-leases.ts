import type {
  LeaseCalls,
  LeaseEvent,
  LeasedTransactionPorts,
} from "../../../src/users/cell/leased-transaction.ts";
import type { LocalTransactions, NewLocalLease, TransactionResult } from "../../../src/users/cell/local.ts";
import type { LeaseState } from "../../../src/users/cell/remote-leases.ts";
import { rowKey } from "../../../src/users/cell/verification/ports.ts";
import type { SourceRow } from "../../../src/users/cell/changes.ts";
import type { Answer as CellAnswer } from "../../../src/users/client/answer.ts";
import type { Batch as ApiBatch } from "../../../src/users/client/api-types.ts";
import type { Op, Outcome } from "../../../src/coordinator/kernel/messages.ts";
import type { Batch, SimulationContext } from "./api.ts";
import type { Cell, Process } from "./cell.ts";
import { cellAnswerOf } from "./lease-ports.ts";
import { LocalFailure, type LocalChange } from "./local.ts";
import type { Random } from "./random.ts";
import { Violation } from "./violation.ts";
import type { CellCrash } from "./simulation-settings.ts";

const BEGIN_TRIES = 3;
/** The share of slow local transactions, their mean and their longest duration. */
const LONG_CHANCE = 0.2;
const LONG_MS = 15_000;
const LONGEST_MS = 60_000;

/** How often no more work fits into the background. */
const FULL_CHANCE = 0.1;

/** An open local transaction. */
export interface LocalTransaction {
  lease?: NewLocalLease;
}

/** The work of one local transaction, and its lease. */
export interface Work {
  lease: string;
  /** The ops to begin. */
  opsOf: (batch: ApiBatch) => Op[];
  allowMissing: boolean;
  isVerification?: true;
  change: LocalChange;
  /** The rows to lock. */
  locks: { mode: "shared" | "exclusive"; rows: () => readonly SourceRow[] };
  /** The error to throw right before the commit if the user cancels. */
  abandon?: Error | undefined;
}

interface CellLeasesContext {
  cell: Cell;
  process: Process;
  context: SimulationContext;
  random: Random;
  mayDie: (where: CellCrash) => Promise<void>;
}

/** The ports that the production code needs: a cell's database, and its leases over the simulated network. */
export class CellLeases {
  readonly #context: CellLeasesContext;

  constructor(context: CellLeasesContext) {
    this.#context = context;
  }

  portsFor(work: Work): LeasedTransactionPorts<LocalTransaction> {
    return {
      local: this.#local(work),
      leases: this.#leases(work),
      inBackground: (background) => this.#inBackground(background),
      report: (event: LeaseEvent) => this.#onEvent(event),
    };
  }

  #local(work: Work): LocalTransactions<LocalTransaction> {
    const { cell, process, mayDie } = this.#context;
    const { local } = cell;
    const { mode, rows } = work.locks;
    return {
      run: async (body) => {
        const present = (): string[] =>
          rows()
            .filter((row) => local.hasRow(row))
            .map(rowKey);
        const release = await process.rowLocks.take(mode, present);
        try {
          return await this.#run(work, body);
        } finally {
          release();
        }
      },
      insertLease: async (tx, lease) => void (tx.lease = lease),
      removeLease: async (tx) => void delete tx.lease,
      look: async (uuid) => ({ isSaved: (await local.has([uuid])).length > 0, isInTransaction: false }),
      list: (page) => local.list(page),
      has: (uuids) => local.has(uuids),
      remove: async (uuid) => {
        await mayDie("after_commit");
        await local.remove(uuid);
        await mayDie("after_remove");
      },
      fence: (uuid) => local.fence(uuid),
      removeFences: (olderThanMs) => local.removeFences(olderThanMs),
      queueForVerification: (uuid) => local.queueForVerification(uuid),
    };
  }

  async #run<T>(
    { change, abandon, locks }: Work,
    body: (tx: LocalTransaction) => Promise<T>,
  ): Promise<TransactionResult<T>> {
    const { cell, process, context, random, mayDie } = this.#context;
    const tx: LocalTransaction = {};
    let value: T;
    try {
      value = await body(tx);
    } catch (error) {
      await mayDie("before_rollback");
      return { kind: "rolled_back", error };
    }
    await mayDie("after_begin");
    if (abandon !== undefined) return { kind: "rolled_back", error: abandon };
    await mayDie("before_local_commit");
    const { lease } = tx;
    // A verification that has nothing to repair takes no lease.
    if (lease === undefined) return { kind: "committed", value };
    if (locks.mode === "shared" && random.chance(LONG_CHANCE))
      await process.api.sleep(Math.min(LONGEST_MS, random.exponential(LONG_MS)));
    const saved = trySaving(() => cell.local.commit(change, lease));
    if (saved?.isUnknown === true) context.judge.see("L3");
    if (saved !== undefined) return { kind: saved.isUnknown ? "unknown" : "rolled_back", error: saved };
    await mayDie("after_local_commit");
    return { kind: "committed", value };
  }

  #leases({ lease, opsOf, allowMissing, isVerification }: Work): LeaseCalls {
    const { context, mayDie } = this.#context;
    const batch: Batch = {
      lease,
      ops: [],
      allowMissing,
      ...(isVerification === true ? { isVerification } : {}),
    };
    return {
      begin: async (_, given) => {
        batch.ops = opsOf(given);
        return this.#begin(batch);
      },
      commit: () => {
        context.judge.see("L4");
        return this.#finish(batch, "COMMITTED");
      },
      rollback: async () => {
        context.judge.see("L2");
        const answer = await this.#finish(batch, "ROLLED_BACK");
        await mayDie("after_rollback");
        return answer;
      },
    };
  }

  /** Sometimes too much is under way, and then reconciliation has to roll back. */
  #inBackground(work: (givesUp: AbortSignal) => Promise<void>): boolean {
    const { context, random } = this.#context;
    if (random.chance(FULL_CHANCE)) return false;
    context.spawn(work(new AbortController().signal));
    return true;
  }

  #onEvent(event: LeaseEvent): void {
    const { cell, context } = this.#context;
    context.judge.see(`reported ${event.kind}`);
    if (event.kind === "contradicted")
      throw new Violation(
        "I5",
        `cell ${cell.id} saved lease ${event.uuid}, but the coordinator answered ${event.coordinator}`,
      );
  }

  /** Begins as the client does. A refusal after an attempt without an answer is not certain. */
  async #begin(batch: Batch): Promise<CellAnswer<LeaseState>> {
    const { cell, process, context, random } = this.#context;
    let isSure = true;
    for (let tried = 1; ; tried += 1) {
      const answer = await process.api.begin(cell.id, cell.caller, batch);
      if (answer.kind === "ok") {
        if (tried > 1) context.judge.see("B2");
        return { kind: "ok", value: answer.value.lease.state };
      }
      if (answer.kind === "refused") {
        context.judge.see(`refused ${answer.refusal.code}`);
        return { ...unlessOk(cellAnswerOf(answer, batch.ops)), outcomeKnown: isSure };
      }
      if (tried === BEGIN_TRIES) return cellAnswerOf(answer);
      isSure = false;
      await process.api.sleep(random.exponential(50) * tried);
    }
  }

  async #finish(batch: Batch, outcome: Outcome): Promise<CellAnswer<LeaseState>> {
    const { cell, process, context } = this.#context;
    const { judge, scheduler } = context;
    const answer = await process.api.decide(cell.id, cell.caller, batch.lease, outcome);
    if (answer.kind === "ok") {
      cell.remember({ ...batch, outcome, endedAtMs: scheduler.nowMs });
      if (judge.frozen.has(cell.id)) judge.see("C6");
      if (judge.factOf(cell.id, batch.lease)?.isApplied === false) judge.see("C3");
    } else if (
      outcome === "COMMITTED" &&
      answer.kind === "refused" &&
      answer.refusal.reason !== "KEY_REVOKED"
    ) {
      const { code, reason } = answer.refusal;
      throw new Violation(
        "I5",
        `cell ${cell.id} saved lease ${batch.lease}, but its commit was refused: ${code} ${reason}`,
      );
    }
    return cellAnswerOf(answer);
  }
}

/** Returns undefined if the change was saved. */
function trySaving(save: () => void): LocalFailure | undefined {
  try {
    save();
    return undefined;
  } catch (error) {
    if (error instanceof LocalFailure) return error;
    throw error;
  }
}

/** Narrows the type of a refusal. */
function unlessOk(answer: CellAnswer<LeaseState>): Exclude<CellAnswer<LeaseState>, { kind: "ok" }> {
  if (answer.kind === "ok") throw new TypeError("a refusal became a success");
  return answer;
}
