import { LocalCommitUnknownError, NotSavedError } from "../../../src/users/cell/errors.ts";
import { LeasedTransaction } from "../../../src/users/cell/leased-transaction.ts";
import type { SourceRow } from "../../../src/users/cell/changes.ts";
import type { VerifyOptions } from "../../../src/users/cell/verification/options.ts";
import { MAX_AGE_MS, type Cursor } from "../../../src/users/cell/verification/cursor.ts";
import {
  rowKey,
  type LockedRows,
  type RepairResult,
  type VerificationPorts,
  type VerifiedTable,
} from "../../../src/users/cell/verification/ports.ts";
import type { VerificationItem, VerificationReport } from "../../../src/users/cell/verification/report.ts";
import { VerificationAborted, verify } from "../../../src/users/cell/verification/loop.ts";
import { isLeaseholdError, LeaseholdError } from "../../../src/users/client/errors.ts";
import type { Batch as ApiBatch, Source } from "../../../src/users/client/api-types.ts";
import { defaultLimits } from "../../../src/common/limits.ts";
import { shipped } from "../../support/types.ts";
import { isRefused, type Api, type SimulationContext } from "./api.ts";
import type { CellLeases } from "./cell-leases.ts";
import type { Cell } from "./cell.ts";
import type { SpendingRun } from "./judge/verification-watch.ts";
import { LocalFailure } from "./local.ts";
import type { Random } from "./random.ts";
import { VerifiedRanges } from "./verified-ranges.ts";
import { CoordinatorFailed, SimulatedRecords, valueOf } from "./verified-records.ts";
import { Violation } from "./violation.ts";
import type { CellCrash } from "./simulation-settings.ts";

interface VerifierContext {
  cell: Cell;
  process: SpendingRun["process"];
  api: Api;
  context: SimulationContext;
  leases: CellLeases;
  random: Random;
  mayDie: (where: CellCrash) => Promise<void>;
}

/** Tables by source type. The bucket type of a name does not limit the table it may come from. */
const TABLES = ["RAILS_TABLE_ROUTES", "RAILS_TABLE_USERS"] as const satisfies readonly Source["type"][];
const FIRST_CURSOR = `claim ${TABLES[0]} `;
const BUCKET_TYPES = ["ROUTES", "USERNAMES"] as const;

/**
 * One verification by the production code, over a cell's database and the simulated network. It may only fail
 * because of a planted fault.
 */
export class Verifier {
  readonly #context: VerifierContext;
  /** Rows of the verification queue. They are known to lack their claims, so their age does not matter. */
  #queue: ReadonlySet<string> = new Set();
  /** The time of the latest read of records, by the coordinator's clock. */
  #asOfMs = -Infinity;
  /** When the verification began that this run continues. */
  #sinceMs: number;
  /** Set once the run has begun to change claims. */
  #spendingRun: SpendingRun | undefined;
  #cursors: ReadonlySet<string> = new Set([FIRST_CURSOR]);

  constructor(context: VerifierContext) {
    this.#context = context;
    this.#sinceMs = context.context.scheduler.nowMs;
  }

  /** Returns undefined if the verification was aborted. */
  async run(options: VerifyOptions): Promise<VerificationReport | undefined> {
    const { judge } = this.#context.context;
    const { recentMs = 0 } = options;
    const ranges = new VerifiedRanges(this.#context.cell.id, judge, recentMs);
    try {
      const report = await verify(this.#ports(options, ranges), {
        ...options,
        onItem: (item) => this.#onItem(item),
        onProgress: () => {},
      });
      ranges.ends(report.status === "done");
      this.#see(report);
      return report;
    } catch (error) {
      ranges.abort();
      const cause = error instanceof VerificationAborted ? error.cause : error;
      judge.see(`verified aborted by the ${this.#blamed(cause)}`);
      return undefined;
    } finally {
      if (this.#spendingRun !== undefined)
        judge.verifications.endRun(this.#context.cell.id, this.#spendingRun);
    }
  }

  #blamed(cause: unknown): string {
    const { id } = this.#context.cell;
    if (cause instanceof NotSavedError)
      throw new Violation("I5", `cell ${id} lost what a verification saved with a lease`);
    if (cause instanceof LocalFailure || cause instanceof LocalCommitUnknownError) return "database";
    if (cause instanceof CoordinatorFailed || isLeaseholdError(cause)) return "coordinator";
    throw cause;
  }

  #see({ status, resumed, counts, applied }: VerificationReport): void {
    const { judge } = this.#context.context;
    judge.see(`verified ${status}`);
    if (resumed) judge.see("verified resumed");
    if (!applied) judge.see("verified without changes");
    if (counts.recent > 0) judge.see("V1");
    if (status === "needs_approval") judge.see("V5");
  }

  #onItem({ action, reason, outcome, skipReason }: VerificationItem): void {
    const { judge } = this.#context.context;
    judge.see(`verified ${action} ${skipReason ?? outcome}`);
    if (skipReason === "changed") judge.see("V2");
    if (action === "replace" && reason === "row" && outcome === "done") judge.see("V3");
  }

  #ports(options: VerifyOptions, ranges: VerifiedRanges): VerificationPorts {
    const { cell, process, api, context, random, mayDie } = this.#context;
    const { recentMs = 0, apply } = options;
    const { verifications } = context.judge;
    const { local } = cell;
    const records = new SimulatedRecords(cell.id, api, context);
    const slot = random.uuid();
    return {
      cell: cell.id,
      types: shipped,
      limits: defaultLimits,
      tables: TABLES.map((source) => this.#table(source, ranges)),
      records: {
        list: async (page) => {
          await mayDie("before_verify_list");
          await this.#takeTime();
          const listed = await records.list(page);
          this.#asOfMs = Math.max(this.#asOfMs, listed.asOfMs);
          ranges.listed(page);
          return listed;
        },
        digests: async (asked) => {
          await mayDie("before_verify_digests");
          const answer = await records.digests(asked);
          this.#asOfMs = Math.max(this.#asOfMs, answer.asOfMs);
          ranges.digested(asked.ranges, answer);
          return answer;
        },
        lookup: async (buckets) => {
          await mayDie("before_verify_lookup");
          return records.lookup(buckets);
        },
      },
      repair: (rows, decide) => this.#repair(rows, decide, recentMs),
      // The simulation has no deferred deletions.
      deferredReleases: async () => new Set(),
      slots: {
        take: async () => {
          const answer = await api.takeSlot(cell.id, slot);
          if (!isRefused(answer, "NO_VERIFICATION_SLOT"))
            return { isTaken: true, expiresInMs: valueOf(answer).expiresInMs };
          return {
            isTaken: false,
            retryAfterMs: (answer.kind === "refused" && answer.refusal.retryAfterMs) || 0,
          };
        },
        release: async () => {
          await mayDie("before_verify_release");
          valueOf(await api.releaseSlot(cell.id, slot));
        },
      },
      progress: {
        load: async () => {
          const stored = await local.loadProgress();
          const isOpen = stored !== undefined && !(JSON.parse(stored.text) as { isDone: boolean }).isDone;
          if (isOpen) this.#sinceMs = stored.sinceMs;
          const cursor = stored && (JSON.parse(stored.text) as Cursor);
          if (cursor !== undefined) this.#hasMoved(cursor);
          if (apply === true)
            this.#spendingRun ??= verifications.startRun(
              cell.id,
              process,
              !isResumed(cursor, stored?.ageMs ?? 0, options),
            );
          return stored;
        },
        save: async (text) => {
          const cursor = JSON.parse(text) as Cursor;
          if (cursor.isDone) ranges.stored("");
          else if (this.#hasMoved(cursor)) ranges.stored(cursor.after);
          await mayDie("before_verify_save");
          await local.saveProgress(text, this.#sinceMs);
          if (this.#spendingRun !== undefined) verifications.saveCount(this.#spendingRun, cursor.changes);
        },
      },
      queue: {
        list: async (page) => {
          const rows = await local.listQueued(page);
          this.#queue = new Set(rows.map(rowKey));
          return rows;
        },
        remove: async (rows) => {
          await local.removeFromQueue(rows);
          context.judge.see("a queued row is done");
        },
      },
    };
  }

  /**
   * Whether the cursor is a new one. A run that asks for approval, is aborted or is about to change claims
   * saves its cursor again.
   */
  #hasMoved({ pass, source, after }: Cursor): boolean {
    const cursor = `${pass} ${source} ${after}`;
    const hasMoved = !this.#cursors.has(cursor);
    this.#cursors = new Set([FIRST_CURSOR, cursor]);
    return hasMoved;
  }

  #table(source: Source["type"], ranges: VerifiedRanges): VerifiedTable {
    const { mayDie, cell } = this.#context;
    return {
      name: source,
      source,
      bucketTypes: BUCKET_TYPES,
      hasEveryAttribute: true,
      count: async () => {
        // The run is done with the queue and with the previous table.
        this.#queue = new Set();
        ranges.advance();
        return cell.local.count(source);
      },
      page: async (range) => {
        await mayDie("before_verify_page");
        const rows = await cell.local.page(source, range);
        ranges.read(rows);
        return rows;
      },
      read: (ids) => cell.local.read(source, ids),
    };
  }

  async #repair(
    rows: readonly SourceRow[],
    decide: (rows: LockedRows) => ApiBatch | undefined,
    recentMs: number,
  ): Promise<RepairResult> {
    const { cell, leases, random, mayDie, context } = this.#context;
    await mayDie("before_verify_repair");
    await this.#takeTime();
    const lease = random.uuid();
    const locks = { mode: "exclusive", rows: () => rows } as const;
    const opsOf = (batch: ApiBatch): ReturnType<Cell["placed"]> => cell.placed(batch);
    const ports = leases.portsFor({
      lease,
      opsOf,
      allowMissing: false,
      isVerification: true,
      change: { puts: [], removes: [] },
      locks,
    });
    let hasBatch = false;
    try {
      await new LeasedTransaction(ports, lease).inTransaction(async () => {
        const locked = await this.#locked(rows);
        const batch = decide(locked);
        hasBatch = batch !== undefined;
        if (batch !== undefined) {
          const spending = this.#queue.size > 0 ? undefined : this.#spendingRun?.spending;
          const begun = {
            cell: cell.id,
            lease,
            ops: cell.placed(batch),
            recentMs,
            sinceMs: this.#sinceMs,
            asOfMs: this.#asOfMs,
            spending,
          };
          context.judge.verifications.beginRepair(begun, (row) =>
            this.#queue.has(rowKey(row)) ? undefined : cell.local.ageOf(row),
          );
        }
        return { value: undefined, claimed: batch === undefined ? undefined : { batch, sources: rows } };
      }, {});
      return { kind: hasBatch ? "done" : "not_needed" };
    } catch (error) {
      if (!(error instanceof LeaseholdError) || !error.outcomeKnown || error.conflicts.length === 0)
        throw error;
      context.judge.verifications.refused(cell.id, lease, error.conflicts);
      return { kind: "refused", conflicts: error.conflicts };
    }
  }

  /** Reading a page of a real table takes time, in which others change what was read. */
  async #takeTime(): Promise<void> {
    const { api, random, context } = this.#context;
    if (!context.areFaultsOff() && random.chance(0.4))
      await api.sleep(random.exponential(random.pick([50, 1_000])));
  }

  /** Reads the locked rows, which do not change while the transaction is open. */
  async #locked(rows: readonly SourceRow[]): Promise<LockedRows> {
    const { local } = this.#context.cell;
    const locked = new Map<string, Awaited<ReturnType<typeof local.read>>[number]>();
    for (const type of TABLES) {
      const ids = rows.filter((row) => row.type === type).map(({ id }) => id);
      if (ids.length === 0) continue;
      for (const row of await local.read(type, ids)) locked.set(rowKey({ type, id: row.id }), row);
    }
    return locked;
  }
}

/**
 * Whether the run continues a verification. If an approval is pending, a run that starts over continues it
 * too: only an approval raises the limit.
 */
function isResumed(
  cursor: Cursor | undefined,
  ageMs: number,
  { startOver, digests }: VerifyOptions,
): boolean {
  if (cursor === undefined || cursor.isDone || startOver === true) return false;
  return cursor.needsApproval || (ageMs < MAX_AGE_MS && (cursor.isFull || digests !== false));
}
