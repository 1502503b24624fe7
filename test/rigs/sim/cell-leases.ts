import type { LeaseCalls, LeaseEvent, LeasedTransactionPorts } from "../../../src/cell/leased-transaction.ts";
import type { LocalTransactions, NewLocalLease, TransactionResult } from "../../../src/cell/local.ts";
import type { LeaseState } from "../../../src/cell/remote-leases.ts";
import { rowKey } from "../../../src/cell/verification/ports.ts";
import type { SourceRow } from "../../../src/cell/changes.ts";
import type { Answer as CellAnswer } from "../../../src/client/answer.ts";
import type { Batch as WireBatch } from "../../../src/client/api-types.ts";
import type { Op, Outcome } from "../../../src/core/messages.ts";
import type { Batch, Reach } from "./api.ts";
import type { Cell, Process } from "./cell.ts";
import { cellAnswerOf } from "./lease-ports.ts";
import { LocalFailure, type LocalChange } from "./local.ts";
import type { Random } from "./random.ts";
import { Violation } from "./violation.ts";
import type { CellCrash } from "./weather.ts";

const BEGIN_TRIES = 3;
/** Local transactions that take long, and how long at most. */
const LONG_CHANCE = 0.2;
const LONG_MS = 15_000;
const LONGEST_MS = 60_000;

/** One that has not ended yet. */
export interface LocalTransaction {
  lease?: NewLocalLease;
}

/** What one local transaction is to do, and with which lease. */
export interface Work {
  lease: string;
  /** What the coordinator is asked for. */
  opsOf: (batch: WireBatch) => Op[];
  allowMissing: boolean;
  change: LocalChange;
  /** Rows to keep from changing. */
  locks: { mode: "shared" | "exclusive"; rows: () => readonly SourceRow[] };
  /** Thrown when all is ready to be committed: the user changed their mind. */
  abandon?: Error | undefined;
}

interface Around {
  cell: Cell;
  process: Process;
  reach: Reach;
  random: Random;
  mayDie: (where: CellCrash) => Promise<void>;
}

/** What the production code needs to lease: a cell's database, and its leases over the simulated network. */
export class CellLeases {
  readonly #around: Around;

  constructor(around: Around) {
    this.#around = around;
  }

  portsFor(work: Work): LeasedTransactionPorts<LocalTransaction> {
    return {
      local: this.#local(work),
      leases: this.#leases(work),
      report: (event: LeaseEvent) => this.#hear(event),
    };
  }

  #local(work: Work): LocalTransactions<LocalTransaction> {
    const { cell, process, mayDie } = this.#around;
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
    const { cell, process, reach, random, mayDie } = this.#around;
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
    // A verification that found nothing to do.
    if (lease === undefined) return { kind: "committed", value };
    if (locks.mode === "shared" && random.chance(LONG_CHANCE))
      await process.api.sleep(Math.min(LONGEST_MS, random.exponential(LONG_MS)));
    const saved = trySaving(() => cell.local.commit(change, lease));
    if (saved?.isUnknown === true) reach.judge.see("L3");
    if (saved !== undefined) return { kind: saved.isUnknown ? "unknown" : "rolled_back", error: saved };
    await mayDie("after_local_commit");
    return { kind: "committed", value };
  }

  #leases({ lease, opsOf, allowMissing }: Work): LeaseCalls {
    const { reach, mayDie } = this.#around;
    const batch: Batch = { lease, ops: [], allowMissing };
    return {
      begin: async (_, given) => {
        batch.ops = opsOf(given);
        return this.#begin(batch);
      },
      commit: () => {
        reach.judge.see("L4");
        return this.#finish(batch, "COMMITTED");
      },
      rollback: async () => {
        reach.judge.see("L2");
        const answer = await this.#finish(batch, "ROLLED_BACK");
        await mayDie("after_rollback");
        return answer;
      },
    };
  }

  #hear(event: LeaseEvent): void {
    const { cell, reach } = this.#around;
    reach.judge.see(`heard ${event.kind}`);
    if (event.kind === "contradicted")
      throw new Violation(
        "I5",
        `cell ${cell.id} saved lease ${event.uuid}, and the coordinator says ${event.coordinator}`,
      );
  }

  /** As the client does it: a refusal after a try without an answer is not the last word. */
  async #begin(batch: Batch): Promise<CellAnswer<LeaseState>> {
    const { cell, process, reach, random } = this.#around;
    let isSure = true;
    for (let tried = 1; ; tried += 1) {
      const answer = await process.api.begin(cell.id, cell.caller, batch);
      if (answer.kind === "ok") {
        if (tried > 1) reach.judge.see("B2");
        return { kind: "ok", value: answer.value.lease.state };
      }
      if (answer.kind === "refused") {
        reach.judge.see(`refused ${answer.refusal.code}`);
        return { ...unlessOk(cellAnswerOf(answer)), outcomeKnown: isSure };
      }
      if (tried === BEGIN_TRIES) return cellAnswerOf(answer);
      isSure = false;
      await process.api.sleep(random.exponential(50) * tried);
    }
  }

  async #finish(batch: Batch, outcome: Outcome): Promise<CellAnswer<LeaseState>> {
    const { cell, process, reach } = this.#around;
    const { judge, scheduler } = reach;
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
        `cell ${cell.id} saved lease ${batch.lease}, and its commit is refused: ${code} ${reason}`,
      );
    }
    return cellAnswerOf(answer);
  }
}

/** Undefined: saved. */
function trySaving(save: () => void): LocalFailure | undefined {
  try {
    save();
    return undefined;
  } catch (error) {
    if (error instanceof LocalFailure) return error;
    throw error;
  }
}

/** For a type that knows it. */
function unlessOk(answer: CellAnswer<LeaseState>): Exclude<CellAnswer<LeaseState>, { kind: "ok" }> {
  if (answer.kind === "ok") throw new TypeError("a refusal became a success");
  return answer;
}
