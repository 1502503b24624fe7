import { LocalCommitUnknownError, NotSavedError } from "../../../src/cell/errors.ts";
import { LeasedTransaction } from "../../../src/cell/leased-transaction.ts";
import type { SourceRow } from "../../../src/cell/changes.ts";
import type { VerifyOptions } from "../../../src/cell/verification/options.ts";
import { MAX_AGE_MS, type Cursor } from "../../../src/cell/verification/cursor.ts";
import {
  rowKey,
  type LockedRows,
  type RepairResult,
  type VerificationPorts,
  type VerifiedTable,
} from "../../../src/cell/verification/ports.ts";
import type { VerificationItem, VerificationReport } from "../../../src/cell/verification/report.ts";
import { VerificationAborted, verify } from "../../../src/cell/verification/verify.ts";
import { isLeaseholdError, LeaseholdError } from "../../../src/client/errors.ts";
import type { Batch as WireBatch } from "../../../src/client/api-types.ts";
import { defaultLimits } from "../../../src/core/limits.ts";
import type { SourceTypeName } from "../../../src/core/registry.ts";
import { isRefused, type Api, type Reach } from "./api.ts";
import type { CellLeases } from "./cell-leases.ts";
import type { Cell } from "./cell.ts";
import type { SpendingRun } from "./judge/verification-watch.ts";
import { LocalFailure } from "./local.ts";
import type { Random } from "./random.ts";
import { VerifiedRanges } from "./verified-ranges.ts";
import { CoordinatorFailed, SimulatedRecords, valueOf } from "./verified-records.ts";
import { Violation } from "./violation.ts";
import type { CellCrash } from "./weather.ts";

interface Around {
  cell: Cell;
  process: SpendingRun["process"];
  api: Api;
  reach: Reach;
  leases: CellLeases;
  random: Random;
  mayDie: (where: CellCrash) => Promise<void>;
}

/** Tables by the source of their rows. Of what type a name is says nothing about where it may come from. */
const TABLES = ["RAILS_TABLE_ROUTES", "RAILS_TABLE_USERS"] as const satisfies readonly SourceTypeName[];
const FIRST_CURSOR = `claim ${TABLES[0]} `;
const BUCKET_TYPES = ["ROUTES", "USERNAMES"] as const;

/** One run of the production code, over a cell's database and the simulated network. Whatever it cannot do must have a cause that was planted. */
export class Verifier {
  readonly #around: Around;
  /** Rows of the queue are known to lack their claims: how old they are does not matter. */
  #queue: ReadonlySet<string> = new Set();
  /** By the coordinator's clock, of the latest records that were read. */
  #asOfMs = -Infinity;
  /** When the run began that this one goes on with. */
  #sinceMs: number;
  /** Once it has begun to change something. */
  #spendingRun: SpendingRun | undefined;
  #cursors: ReadonlySet<string> = new Set([FIRST_CURSOR]);

  constructor(around: Around) {
    this.#around = around;
    this.#sinceMs = around.reach.scheduler.nowMs;
  }

  /** Undefined: it could not go on. */
  async run(options: VerifyOptions): Promise<VerificationReport | undefined> {
    const { judge } = this.#around.reach;
    const { recentMs = 0 } = options;
    const ranges = new VerifiedRanges(this.#around.cell.id, judge, recentMs);
    try {
      const report = await verify(this.#ports(options, ranges), {
        ...options,
        onItem: (item) => this.#hear(item),
        onProgress: () => {},
      });
      ranges.ends(report.status === "done");
      this.#see(report);
      return report;
    } catch (error) {
      ranges.breaksOff();
      const cause = error instanceof VerificationAborted ? error.cause : error;
      judge.see(`verified aborted by the ${this.#blamed(cause)}`);
      return undefined;
    } finally {
      if (this.#spendingRun !== undefined) judge.verifications.ends(this.#around.cell.id, this.#spendingRun);
    }
  }

  #blamed(cause: unknown): string {
    const { id } = this.#around.cell;
    if (cause instanceof NotSavedError)
      throw new Violation("I5", `cell ${id} lost what it had saved with a lease of a verification`);
    if (cause instanceof LocalFailure || cause instanceof LocalCommitUnknownError) return "database";
    if (cause instanceof CoordinatorFailed || isLeaseholdError(cause)) return "coordinator";
    throw cause;
  }

  #see({ status, resumed, counts, applied }: VerificationReport): void {
    const { judge } = this.#around.reach;
    judge.see(`verified ${status}`);
    if (resumed) judge.see("verified resumed");
    if (!applied) judge.see("verified without changes");
    if (counts.recent > 0) judge.see("V1");
    if (status === "needs_approval") judge.see("V5");
  }

  #hear({ action, reason, outcome, skipReason }: VerificationItem): void {
    const { judge } = this.#around.reach;
    judge.see(`verified ${action} ${skipReason ?? outcome}`);
    if (skipReason === "changed") judge.see("V2");
    if (action === "replace" && reason === "row" && outcome === "done") judge.see("V3");
  }

  #ports(options: VerifyOptions, ranges: VerifiedRanges): VerificationPorts {
    const { cell, process, api, reach, random, mayDie } = this.#around;
    const { recentMs = 0, apply } = options;
    const { verifications } = reach.judge;
    const { local } = cell;
    const records = new SimulatedRecords(cell.id, api, reach);
    const slot = random.uuid();
    return {
      cell: cell.id,
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
          ranges.told(asked.ranges, answer);
          return answer;
        },
        lookup: async (buckets) => {
          await mayDie("before_verify_lookup");
          return records.lookup(buckets);
        },
      },
      repair: (rows, decide) => this.#repair(rows, decide, recentMs),
      // Nobody deletes later here.
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
            this.#spendingRun ??= verifications.runs(
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
          if (this.#spendingRun !== undefined) verifications.counts(this.#spendingRun, cursor.changes);
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
          reach.judge.see("a queued row is settled");
        },
      },
    };
  }

  /** A run that asks, breaks off or is about to change something stores its cursor as it was. */
  #hasMoved({ pass, source, after }: Cursor): boolean {
    const cursor = `${pass} ${source} ${after}`;
    const hasMoved = !this.#cursors.has(cursor);
    this.#cursors = new Set([FIRST_CURSOR, cursor]);
    return hasMoved;
  }

  #table(source: SourceTypeName, ranges: VerifiedRanges): VerifiedTable {
    const { mayDie, cell } = this.#around;
    return {
      name: source,
      source,
      bucketTypes: BUCKET_TYPES,
      hasEveryAttribute: true,
      count: async () => {
        // The queue is through, and so is the table before this one.
        this.#queue = new Set();
        ranges.goesOn();
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
    decide: (rows: LockedRows) => WireBatch | undefined,
    recentMs: number,
  ): Promise<RepairResult> {
    const { cell, leases, random, mayDie, reach } = this.#around;
    await mayDie("before_verify_mend");
    await this.#takeTime();
    const lease = random.uuid();
    const locks = { mode: "exclusive", rows: () => rows } as const;
    const opsOf = (batch: WireBatch): ReturnType<Cell["placed"]> => cell.placed(batch);
    const ports = leases.portsFor({
      lease,
      opsOf,
      allowMissing: false,
      change: { puts: [], removes: [] },
      locks,
    });
    let isNeeded = false;
    try {
      await new LeasedTransaction(ports, lease).inTransaction(async () => {
        const locked = await this.#locked(rows);
        const batch = decide(locked);
        isNeeded = batch !== undefined;
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
          reach.judge.verifications.begins(begun, (row) =>
            this.#queue.has(rowKey(row)) ? undefined : cell.local.ageOf(row),
          );
        }
        return { value: undefined, claimed: batch === undefined ? undefined : { batch, sources: rows } };
      }, {});
      return { kind: isNeeded ? "done" : "not_needed" };
    } catch (error) {
      if (!(error instanceof LeaseholdError) || !error.outcomeKnown || error.conflicts.length === 0)
        throw error;
      reach.judge.verifications.refused(cell.id, lease, error.conflicts);
      return { kind: "refused", conflicts: error.conflicts };
    }
  }

  /** Pages of real tables are large: meanwhile others change what was read. */
  async #takeTime(): Promise<void> {
    const { api, random, reach } = this.#around;
    if (!reach.isCalm() && random.chance(0.4)) await api.sleep(random.exponential(random.pick([50, 1_000])));
  }

  /** As they are now: nobody changes them while the transaction lasts. */
  async #locked(rows: readonly SourceRow[]): Promise<LockedRows> {
    const { local } = this.#around.cell;
    const locked = new Map<string, Awaited<ReturnType<typeof local.read>>[number]>();
    for (const type of TABLES) {
      const ids = rows.filter((row) => row.type === type).map(({ id }) => id);
      if (ids.length === 0) continue;
      for (const row of await local.read(type, ids)) locked.set(rowKey({ type, id: row.id }), row);
    }
    return locked;
  }
}

/** Also where a run begins anew and a question is open: only an answer gives it more to spend. */
function isResumed(
  cursor: Cursor | undefined,
  ageMs: number,
  { startOver, digests }: VerifyOptions,
): boolean {
  if (cursor === undefined || cursor.isDone || startOver === true) return false;
  return cursor.needsApproval || (ageMs < MAX_AGE_MS && (cursor.isFull || digests !== false));
}
