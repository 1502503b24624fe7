import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Ports } from "../ports.ts";
import type { Begins } from "./begins.ts";
import type { Decisions } from "./decisions.ts";
import type { OldOutcomes } from "./old-outcomes.ts";
import type { LedgerStore, OutcomeRow } from "./store.ts";

/** The rows per transaction, and the transactions per call. What is left is pruned a second later. */
const STEP_ROWS = 1_000;
const MAX_STEPS = 20;
/** Once the database may need this part of `ledgerBytes`, outcomes are forgotten early (S1). */
const SHORT_OF_SPACE = 0.75;
/** For this part of the retention, outcomes are left to new leases. */
const LEFT_TO_NEW = 1 / 8;

/** What one call has pruned, and whether more may be pruned now. */
export interface Pruned {
  total: number;
  more: boolean;
}

interface Needs {
  readonly ports: Ports;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly commits: GroupCommit;
  readonly begins: Begins;
  readonly decisions: Decisions;
  readonly oldOutcomes: OldOutcomes;
}

/**
 * Forgets outcomes that are applied on every shard and old enough (S1). The cron and the ledger's own alarm
 * call it. An outcome that is not applied is skipped, so it holds up no others. Leases are read in the order
 * of their creation.
 */
export class Pruner {
  readonly #part: Needs;
  /** Where the next call continues: outcomes before this position are gone, or not applied. */
  readonly #from: Record<1 | 2, number> = { 1: 0, 2: 0 };
  #isRunning = false;

  constructor(part: Needs) {
    this.#part = part;
  }

  async prune(): Promise<Pruned> {
    // A call that overlaps with another one has nothing to add to it.
    if (this.#isRunning) return { total: 0, more: false };
    this.#isRunning = true;
    try {
      const fences = await this.#pruneKind(2);
      const outcomes = await this.#pruneKind(1);
      return { total: fences.total + outcomes.total, more: fences.more || outcomes.more };
    } finally {
      this.#isRunning = false;
    }
  }

  async #pruneKind(kind: 1 | 2): Promise<Pruned> {
    let total = 0;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const { rows, old } = this.#part.oldOutcomes.page(
        kind,
        this.#from[kind],
        STEP_ROWS,
        this.#retentionS(kind),
      );
      if (old.length > 0) {
        const weight = old.length;
        const forgotten = await this.#part.commits.submit("prune", () => this.#forget(kind, old), { weight });
        if (!forgotten.ok) return { total, more: false };
        total += old.length;
      }
      if (rows.length < STEP_ROWS) {
        // The next call begins at the front again, because leases that were skipped may be old by then.
        this.#from[kind] = 0;
        return { total, more: false };
      }
      this.#from[kind] = rows.at(-1)?.created_position ?? 0;
    }
    return { total, more: true };
  }

  #forget(kind: 1 | 2, rows: readonly OutcomeRow[]): void {
    this.#part.store.forget(rows);
    if (kind === 2) this.#part.decisions.forgotten(rows.length);
  }

  /**
   * How old an outcome, or a fence without a begin (2), must be to be forgotten (S1, C7). Most outcomes leave
   * their rows to new leases before that.
   */
  #retentionS(kind: 1 | 2): number {
    const { outcomeRetentionS, lateBeginS } = this.#part.limits;
    if (kind === 2) return lateBeginS;
    if (this.#isShortOfSpace()) return Math.min(lateBeginS, outcomeRetentionS);
    return outcomeRetentionS * (1 + LEFT_TO_NEW);
  }

  /** True if the database is so large that outcomes are forgotten early. */
  #isShortOfSpace(): boolean {
    return this.#part.begins.neededBytes() > this.#part.limits.ledgerBytes * SHORT_OF_SPACE;
  }
}
