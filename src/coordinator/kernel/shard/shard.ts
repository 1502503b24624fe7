import { Audit, type AuditPage, type PullAudit } from "../../capabilities/audit/audit.ts";
import { GroupCommit } from "../group-commit.ts";
import { keyHash } from "../../capabilities/reports/key-hash.ts";
import type { Limits } from "../../../common/limits.ts";
import {
  type BucketKey,
  type CellClaimCounts,
  type CheckHolds,
  type FindNames,
  type FinishShard,
  type FoundNames,
  type HandedOver,
  type CellClaims,
  type ChangesPage,
  type ChangesRequest,
  type CountCellClaims,
  type ListCellClaims,
  type Decision,
  type DigestRecordsAnswer,
  type DigestRecordsRequest,
  type Envelope,
  type ErasedPeriods,
  type ErasePeriods,
  type Exchange,
  type ExchangeAnswer,
  type HistoryPoint,
  type HoldCheck,
  type HoldPage,
  type HoldState,
  type LeaveQueue,
  type ListHolds,
  type ListPeriods,
  type ListRecordsAnswer,
  type ListRecordsRequest,
  type LookupAnswer,
  type LookupFound,
  type LookupRequest,
  type PartStatus,
  type PeriodPage,
  type PingShard,
  type Prepare,
  type ReconcileShard,
  type Report,
  type ReportRequest,
  type ScrubStatus,
  type ScrubStep,
  type Settle,
  type SettleAnswer,
  type ShardReconciliation,
  type ShardWork,
  type Told,
  type WaitAnswer,
  type WaitForName,
} from "../messages.ts";
import { ask } from "../ask.ts";
import { fanOut } from "../fan-out.ts";
import { Tables } from "../tables.ts";
import { Histogram } from "../metrics/histogram.ts";
import type { ShardMetrics } from "../metrics/messages.ts";
import { ShardCounters } from "../metrics/shard-counters.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, valuesOf, type Refusal, type Result } from "../refusal.ts";
import type { PlanTransfer, TransferPlan } from "../../capabilities/transfer/messages.ts";
import type { LedgerCalls, Peers, ShardCalls } from "../methods.ts";
import { PlacementGuard, type Change } from "../placement-guard.ts";
import { Scrub } from "../../capabilities/scrub/scrub.ts";
import { CHUNK_ROWS, chunksOf } from "./chunks.ts";
import { ChangeCounts } from "../../capabilities/records/change-counts.ts";
import { History } from "../history.ts";
import type {
  AbortedGrowth,
  Confirmed,
  Growth,
  GrowthProgress,
  GrowthStep,
  Receive,
  Received,
} from "../../capabilities/growth/messages.ts";
import { placementOf, shardsOf, type Placement } from "../placement.ts";
import { changesPage } from "../../capabilities/feed/changes-page.ts";
import { DigestReader } from "../../capabilities/records/digest-records.ts";
import { endHolds, type EndedAs } from "./end-holds.ts";
import { GrowthSource } from "../../capabilities/growth/source.ts";
import { GrowthTarget, WIPE_ROWS } from "../../capabilities/growth/target.ts";
import { Inquirer } from "./inquirer.ts";
import { holdPage } from "../../capabilities/loss/hold-page.ts";
import { ShardReconciler } from "../../capabilities/loss/shard.ts";
import { MovedNames } from "../../capabilities/growth/moved-names.ts";
import { PastClaims } from "../../capabilities/past-claims/shard.ts";
import { mayBeCut, RangeHolds } from "../../capabilities/transfer/range-holds.ts";
import { readPeriods } from "../../capabilities/past-claims/periods.ts";
import { ShardLog } from "./shard-log.ts";
import { NameQueues } from "../../capabilities/waiting/shard.ts";
import { Preparation } from "./prepare.ts";
import { ReadQueue } from "./read-queue.ts";
import { ShardReader } from "./reader.ts";
import { reportAfter } from "../../capabilities/reports/shard.ts";
import { shardSchema } from "./schema.ts";
import { nameOf } from "./hold-entries.ts";
import type { ExecutionId, HoldRow } from "./rows.ts";
import { ScanStore } from "../../capabilities/records/scan-store.ts";
import { ScopeStore } from "../../capabilities/transfer/scope-store.ts";
import { MOVE_WEIGHT, PRECOMMIT_WEIGHT, ShardTransfers } from "../../capabilities/transfer/shard.ts";
import { checkHolds, ShardScrub } from "../../capabilities/scrub/shard.ts";
import { ShardStore } from "./store.ts";
import { Sweeper } from "./sweeper.ts";

/**
 * A shard works for all cells, so its transactions are short: 1,000 rows take about 25 ms. A lease with more
 * ops is carried out in one transaction all the same (B4).
 */
const MAX_TRANSACTION_ROWS = 1_000;

/**
 * The number of parts of one cell's messages that may wait for a transaction. A ledger sends one message at a
 * time, and gives up on it after `exchangeTimeoutMs`. So the queue is this long only if the disk hangs.
 */
const MAX_WAITING_PARTS = 100;

/** The part of the held names of a shard that one cell may have. */
const CELL_PART = 1 / 2;

/** Who the work of operators belongs to, which takes its turn like the work of a cell. */
const OPERATORS = "operators";

/** The holds in the way of a transfer that a shard asks about. */
const MOST_ASKED_HOLDS = 1_000;

/** The rows that a shard sends at once after a cut. Its alarm sends the others. */
const HAND_OVER_ROWS = 100_000;

/** What a part of an exchange has done, to be answered with the others. */
interface CarriedOut {
  /** Present if nothing was carried out: the ledger has not said that it has the stored point (H5). */
  isUnchecked?: true;
  prepares: ExchangeAnswer["prepares"];
  /** The leases whose decisions wait. */
  unapplied: string[];
}

/**
 * Serializes everything that happens to its buckets. The protocol needs nothing that a shard has only in
 * memory: a crash loses answers and nothing else.
 */
export class Shard implements ShardCalls {
  readonly #part: ShardPart;
  #waking: Promise<unknown> | undefined;

  constructor(index: number, ports: Ports, limits: Limits, peers: Peers, logOf = readLog) {
    this.#part = makePart(index, ports, limits, peers, logOf, (confirmed, adopt) =>
      this.#changePlacement(confirmed, adopt),
    );
  }

  /**
   * Applies the decisions and then the prepares of any number of leases, in one transaction (N1, N2). It
   * waits for no other object.
   */
  exchange(message: Exchange): Promise<Result<ExchangeAnswer>> {
    this.#part.counters.add("exchanges");
    return this.#part.exchangeDurations.time(() => this.#exchange(message));
  }

  #exchange(message: Exchange): Promise<Result<ExchangeAnswer>> {
    return this.#answer(
      message,
      async (): Promise<Result<ExchangeAnswer>> => {
        if (this.#part.commits.waitingOf(message.cell) >= MAX_WAITING_PARTS) {
          return refused("UNAVAILABLE", "the shard still has earlier messages of this cell to carry out", {
            retryAfterMs: 1_000,
          });
        }
        const weigh: Weigh = (decision) => decisionWeight(decision, this.#part.store.countHoldsOf(decision));
        const parts = partsOf(message, weigh).map((part) =>
          this.#part.commits.submit("exchange", () => ok(this.#carryOut(part)), {
            weight: weightOf(part, weigh),
            owner: message.cell,
          }),
        );
        const carriedOut = valuesOf(await Promise.all(parts));
        if (!carriedOut.ok) return carriedOut;
        const done = carriedOut.value;
        const seen = this.#part.log.ledgerPoint(message.cell) ?? null;
        const unchecked = done.filter(({ isUnchecked }) => isUnchecked === true).length;
        if (unchecked === done.length)
          return ok({ seen, point: this.#point, isUnchecked: true, prepares: [] });
        // A message of another instance has come in between, so nobody knows what this one has changed.
        if (unchecked > 0)
          return refused("UNAVAILABLE", "the shard has carried out only a part of the message; retry", {
            retryAfterMs: 1_000,
          });
        const prepares = done.flatMap((part) => part.prepares);
        this.#askBlocking(message, prepares);
        const unapplied = [...done.flatMap((part) => part.unapplied), ...this.#movingOf(message)];
        return ok({ seen, point: this.#point, prepares, ...(unapplied.length === 0 ? {} : { unapplied }) });
      },
      `the ledger of cell ${message.cell}`,
    );
  }

  /**
   * Asks about the holds that are in the way of transfers: their leases may be over (B8). The next try then
   * finds them gone.
   */
  #askBlocking({ prepares, traces }: Exchange, answers: ExchangeAnswer["prepares"]): void {
    for (const [index, { transfer }] of prepares.entries()) {
      if (transfer === undefined || answers[index]?.granted !== false) continue;
      const holds = this.#part.scopes.holds(transfer.from, transfer.scope, MOST_ASKED_HOLDS);
      this.#part.inquirer.inquire(holds, traces).catch(() => {});
    }
  }

  /** Returns the transfers among the decisions whose claims are not all rewritten (Y5). */
  #movingOf({ decisions }: Exchange): string[] {
    const leases = decisions.flatMap(({ lease, transfer }) => (transfer === undefined ? [] : [lease]));
    return leases.length === 0 ? [] : this.#part.transfers.moving(leases);
  }

  get tables(): Tables {
    return this.#part.tables;
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    const { point } = this.#part.history;
    return point === undefined ? {} : { point };
  }

  get #point(): HistoryPoint | null {
    return this.#part.history.point ?? null;
  }

  #carryOut(message: Exchange): CarriedOut {
    const { placementGuard, log, source, ranges, queues, sweeper } = this.#part;
    const { cell, point, confirmed, decisions, prepares } = message;
    // The placement may have changed while the message waited for its transaction (M1, G3).
    if (placementGuard.refuseOutdated(message) !== undefined) return { prepares: [], unapplied: [] };
    const now = this.#part.ports.clock.now();
    if (!log.note(cell, point, confirmed)) return { isUnchecked: true, prepares: [], unapplied: [] };
    const missing = this.#decide(decisions, now);
    // A decision stays unapplied until its names that may be handed over are here (G5).
    const waiting = decisions.filter((decision) => !this.#hasAllOf(decision));
    if (waiting.length > 0) this.#wakeSources();
    // Names whose claims are lost look free, and only their owners' verification may take them (H6).
    const refusal = this.#part.history.reconcilingRefusal;
    const full = prepares.length > 0 ? this.#fullRefusal() : undefined;
    const unserved = new Set(prepares.filter(({ ops }) => !this.#servesAll(ops)));
    const preparation = new Preparation(this.#part, now, prepares);
    const answers = prepares.map((request) => {
      if (unserved.has(request)) return { granted: false as const, refusal: this.#notHere() };
      if (request.transfer !== undefined && (source.isRunning || !this.#isWhole))
        return { granted: false as const, refusal: growing };
      if (refusal !== undefined && request.isVerification !== true)
        return { granted: false as const, refusal };
      if (full !== undefined && request.ops.some(({ kind }) => kind !== "destroy"))
        return { granted: false as const, refusal: full };
      if (request.transfer !== undefined) return this.#part.transfers.prepare(request, request.transfer, now);
      const crowded = this.#holdsRefusal(request, preparation.made);
      if (crowded !== undefined) return { granted: false as const, refusal: crowded };
      return preparation.carryOut(request);
    });
    for (const hold of preparation.write())
      log.noteHeld(keyHash({ type: hold.bucket_type, canonical: hold.canonical }));
    for (const [index, request] of prepares.entries())
      queues.prepared(request, answers[index]?.granted ?? false);
    // Refused prepares also arm the alarm: they met a hold, and its alarm may have been lost (M3).
    // A growth may have waited for the range hold that has ended.
    if (prepares.length > 0 || ranges.hasCut || source.hasWork) sweeper.arm();
    return { prepares: answers, unapplied: [...waiting.map(({ lease }) => lease), ...missing] };
  }

  /** Why a shard without room for more names refuses a prepare. Only destroys make room. */
  #fullRefusal(): Refusal | undefined {
    if (!this.#part.isFull()) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `a shard has reached its limit of ${this.#part.limits.shardBytes} bytes; release names, and retry`,
      { reason: "SHARD_FULL", retryAfterMs: 60_000 },
    ).refusal;
  }

  /**
   * Why a shard that holds too many names refuses a prepare. They are in memory, and no cell takes all room.
   *
   * @param made the holds that the message has made so far, all of the same cell
   */
  #holdsRefusal({ cell, ops }: Prepare, made: number): Refusal | undefined {
    const { heldNames } = this.#part.limits;
    const { held } = this.#part.log;
    const more = made + ops.length;
    const ofCell = heldNames * CELL_PART;
    if (held.size + more <= heldNames && held.countOf(cell) + more <= ofCell) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `open leases hold as many names on a shard as it may have in all (${heldNames}), or as one cell may ` +
        `hold there (${ofCell}); commit or roll back some of them, and retry`,
      { reason: "SHARD_HOLDS_FULL", retryAfterMs: 1_000 },
    ).refusal;
  }

  /**
   * Applies each decision to its own holds of names that this shard serves, and to nothing else. If a hold is
   * missing, the decision was applied before (C2). Returns the transfers whose precommit found no range hold
   * (Y6).
   */
  #decide(decisions: readonly Decision[], now: number): string[] {
    const missing: string[] = [];
    const ended = new Map<string, { hold: HoldRow; as: EndedAs }>();
    for (const decision of decisions) {
      const range = decision.transfer && this.#part.ranges.on(decision.transfer);
      const isHeld = range !== undefined && decides(decision, range);
      if (decision.outcome === "PRECOMMITTED") {
        if (isHeld) this.#part.transfers.precommit(range);
        else missing.push(decision.lease);
        continue;
      }
      if (isHeld) this.#part.transfers.end(range, endedAs(decision), now);
      for (const hold of this.#part.store.holdsOf(decision))
        if (decides(decision, hold) && this.#serves(hold))
          ended.set(nameOf(hold), { hold, as: endedAs(decision) });
    }
    endHolds(this.#part.store, this.#part.log, [...ended.values()], !this.#isWhole, now);
    return missing;
  }

  /**
   * Inquires about the holds on these keys and clears those that are over (B8). Returns one state per key.
   */
  settle(message: Settle): Promise<Result<SettleAnswer>> {
    this.#part.counters.add("settles");
    return this.#answer(message, async () => {
      // A name that gets here during the wait was not read (G5).
      const wasHere = message.keys.map((key) => this.#part.serves(key));
      const settled = await this.#part.inquirer.settle(message.keys, message.traces);
      const states = settled.map((state, index): HoldState => {
        const key = message.keys[index];
        return key === undefined || (wasHere[index] === true && this.#part.serves(key)) ? state : "unknown";
      });
      const isAwaited = (index: number): boolean => {
        const key = message.keys[index];
        return key !== undefined && this.#part.queues.isAwaited(key);
      };
      return ok({
        states: states.map((state, index) => (state === "free" && isAwaited(index) ? "awaited" : state)),
        point: this.#point,
      });
    });
  }

  /** Waits in the queue of a name (B11). */
  wait(message: WaitForName): Promise<Result<WaitAnswer>> {
    this.#part.counters.add("waits");
    return this.#answer(message, async () => {
      if (!this.#part.serves(message.key)) return { ok: false, refusal: this.#notHere() };
      const hold = this.#part.store.holdOn(message.key.type, message.key.canonical);
      const isFirst = this.#part.queues.isFirst(message);
      const state = this.#part.queues.wait(message, hold !== undefined);
      // The lease of the hold may be over without a message about it (B8). The first that still waits asks.
      if (isFirst && hold !== undefined) this.#part.inquirer.inquire([hold], message.traces).catch(() => {});
      return ok({ state: await state });
    });
  }

  /** Gives up a place in the queue of a name. */
  leave(message: LeaveQueue): Promise<Result<null>> {
    return this.#answer(message, async () => {
      this.#part.queues.leave(message);
      return ok(null);
    });
  }

  lookup(message: LookupRequest): Promise<Result<LookupAnswer>> {
    this.#part.counters.add("lookups", message.keys.length);
    return this.#read(message, async () => {
      const { position } = this.#part.log;
      // A name that gets here during the wait has rows that were read too early (R2, G5).
      const wasHere = message.keys.map((key) => this.#part.serves(key));
      const answers = await this.#part.reader.lookup(message.keys, message.traces);
      // A claim that is not there may be lost (R2, H6).
      const isReconciling = this.#part.history.state === "reconciling";
      const isHere = message.keys.map((key, index) => wasHere[index] === true && this.#part.serves(key));
      if (isHere.includes(false)) this.#wakeSources();
      return ok({
        found: answers.map(({ found }, index) =>
          isHere[index] === false ? NOT_KNOWN : isReconciling ? neverNone(found) : found,
        ),
        settled: answers.map(({ isSettled }, index) => isSettled && isHere[index] === true),
        position,
      });
    });
  }

  /** Returns the keys that were put on hold after a position, for routers (Q3). */
  report({ after, ...envelope }: ReportRequest): Promise<Result<Report>> {
    this.#part.counters.add("reports");
    return this.#read(envelope, async () => {
      const newest = this.#part.log.position;
      // A router's word proves no loss: it is no peer, and nothing of it is stored (H4).
      if (after !== null && after > newest) {
        return refused(
          "UNAVAILABLE",
          `the shard is at position ${newest}, and the report should begin after position ${after}`,
          { retryAfterMs: 1_000 },
        );
      }
      const report = reportAfter(this.#part.log, after ?? newest);
      return report === undefined
        ? refused(
            "FAILED_PRECONDITION",
            `the shard no longer has all changes after position ${after}; forget what it has answered, and ` +
              "ask for its newest position",
            { reason: "REPORT_PRUNED" },
          )
        : ok(report);
    });
  }

  /** Returns what happened after a position, for the change feed (F4). */
  listChanges({ after, ...message }: ChangesRequest): Promise<Result<ChangesPage>> {
    const { log, history, reads } = this.#part;
    this.#part.counters.add("changeReads");
    return this.#read(message, async () => {
      const newest = log.position;
      // A consumer's word proves no loss, like a router's (Q3).
      if (after !== null && after > newest) {
        return refused(
          "UNAVAILABLE",
          `the shard is at position ${newest}, and the changes should begin after position ${after}`,
          { retryAfterMs: 1_000 },
        );
      }
      return reads
        .run<Result<ChangesPage>>(message.cell ?? OPERATORS, () => {
          const start = after ?? newest;
          const read = changesPage(log, start, message, history.lastPositionAfter(start));
          return read === undefined
            ? { value: changesPruned(after), rows: 0 }
            : { value: ok(this.#withPoints(read.page)), rows: read.visited };
        })
        .then((done) => (done.ok ? done.value : done));
    });
  }

  #withPoints(page: Omit<ChangesPage, "incarnations">): ChangesPage {
    const { after, through } = page;
    const incarnations: ChangesPage["incarnations"] = [
      this.#part.history.incarnationAt(after),
      this.#part.history.incarnationAt(through),
    ];
    return { ...page, incarnations };
  }

  listRecords(message: ListRecordsRequest): Promise<Result<ListRecordsAnswer>> {
    this.#part.counters.add("recordReads");
    return this.#readClaims(message, () => this.#part.reader.listRecords(message));
  }

  /** Returns some claims of a cell that is removed, held or not (X3). */
  listCellClaims(message: ListCellClaims): Promise<Result<CellClaims>> {
    const { claimReads, store, limits } = this.#part;
    this.#part.counters.add("recordReads");
    return this.#readClaims(message, () =>
      claimReads.run(message.cell, () => {
        const claims = store.claimsOf(message.cell, Math.min(message.limit, limits.scanRows));
        const transfers = this.#part.transfers.holding(message.cell);
        return { value: { claims, transfers }, rows: claims.length };
      }),
    );
  }

  /** Counts claims of a cell by their types, held or not. */
  countCellClaims(message: CountCellClaims): Promise<Result<CellClaimCounts>> {
    this.#part.counters.add("recordReads");
    return this.#readClaims(message, () =>
      this.#part.claimReads.run(message.cell, () => {
        const value = this.#part.store.countClaims(message.cell, message.behind, this.#part.limits.scanRows);
        return { value, rows: value.counts.reduce((sum, { claims }) => sum + claims, 0) };
      }),
    );
  }

  /** Counts what this shard has of a scope, before a transfer of it is prepared (Y2). */
  planTransfer(message: PlanTransfer): Promise<Result<TransferPlan>> {
    this.#part.counters.add("recordReads");
    return this.#readClaims({ ...message, cell: message.from }, () =>
      this.#part.claimReads.run(message.from, () => {
        const value = this.#part.transfers.plan(message);
        return { value, rows: value.counts.reduce((sum, { claims }) => sum + claims, value.present) };
      }),
    );
  }

  /** Searches the claims of all cells for the names of a subject. */
  findNames(message: FindNames): Promise<Result<FoundNames>> {
    this.#part.counters.add("recordReads");
    return this.#readAll(message, () =>
      this.#part.reads.run(OPERATORS, () => {
        const rows = this.#part.limits.scanRows;
        return { value: this.#part.store.findNames(message, rows), rows };
      }),
    );
  }

  /** Returns digests of ranges (R4). */
  digestRecords(message: DigestRecordsRequest): Promise<Result<DigestRecordsAnswer>> {
    this.#part.counters.add("recordReads");
    return this.#readClaims(message, () => this.#part.digests.digestRecords(message));
  }

  /**
   * Called by the readiness check and by the cron. Confirms the placement, reads the disk, and sets the alarm
   * again if it was lost (M3), or if past claims are due to be dropped (K3).
   */
  ping(message: PingShard): Promise<Result<ShardWork>> {
    return this.#answer(message, async () => {
      this.#part.sweeper.arm();
      if (!this.#part.target.isWhole) this.#wakeSources();
      const { newShard } = message;
      const handedOver = newShard === undefined ? undefined : this.#part.source.handedOverTo(newShard);
      const work = { auditEntries: this.#part.audit.count, scrub: this.#part.scrub.work };
      return ok({ ...work, ...(handedOver === undefined ? {} : { handedOver }) });
    });
  }

  /** Checks the next rows of this shard, or the first ones (Z1). */
  scrub(message: ScrubStep): Promise<Result<ScrubStatus>> {
    return this.#readAll(message, () => this.#part.scrub.step(message));
  }

  /** Returns which holds of granted leases are not here, for the scrub of their ledger (Z3). */
  checkHolds(message: CheckHolds): Promise<Result<HoldCheck>> {
    return this.#answer(
      message,
      async () => {
        if (message.executions.some(({ keys }) => !this.#servesAll(keys)))
          return { ok: false, refusal: this.#notHere() };
        const found = await this.#part.reads.run(message.cell, () => ({
          value: checkHolds(this.#part.store, this.#part.ranges, this.#part.index, message),
          rows: message.executions.reduce((sum, { keys }) => sum + keys.length, 0),
        }));
        if (!found.ok) return found;
        await this.#part.ports.sql.flush();
        if (!found.value.ok) return found.value;
        return ok({
          ...found.value.value,
          isReconciling: this.#part.history.state === "reconciling",
          seen: this.#part.log.ledgerPoint(message.cell) ?? null,
        });
      },
      `the ledger of cell ${message.cell}`,
    );
  }

  /** Returns the owners of a name, now and before, the latest first (K2). */
  listPeriods(message: ListPeriods): Promise<Result<PeriodPage>> {
    const { store, pastClaims, limits, ranges, history, ports } = this.#part;
    this.#part.counters.add("lookups");
    return this.#read(message, async () => {
      if (!this.#part.serves(message.key)) return { ok: false, refusal: this.#notHere() };
      // A hold whose lease is decided is cleared first, so the claim is what the lookup shows (R2).
      if (message.before === null) {
        const [current] = await this.#part.reader.lookup([message.key], message.traces);
        if (current === undefined || current.found.kind === "unknown") return unknownOwner;
      }
      return this.#part.reads
        .run<Result<PeriodPage>>(OPERATORS, () => {
          // The claim may not be rewritten yet, although its transfer was cut (Y4).
          if (message.before === null && ranges.over(store.claim(message.key))?.cut_at_ms != null)
            return { value: unknownOwner, rows: 1 };
          const page = readPeriods(store, pastClaims, limits.scanRows, message);
          // What was lost and is not verified yet may be missing (H6, K4).
          const isReconciling = history.state === "reconciling";
          const completeSinceMs = isReconciling ? ports.clock.now() : pastClaims.completeSinceMs;
          return { value: ok({ ...page, completeSinceMs }), rows: page.rows };
        })
        .then((done) => (done.ok ? done.value : done));
    });
  }

  /** Erases the past claims of a name (K5). A dry run returns what would be erased. */
  erasePeriods(message: ErasePeriods): Promise<Result<ErasedPeriods>> {
    const { key, operator, dryRun } = message;
    const most = this.#part.limits.scanRows;
    const epochHere = (): number | null => this.#part.store.claim(key)?.epoch ?? null;
    const eraseFromLog = (): number => {
      const current = epochHere() ?? message.claimEpoch ?? undefined;
      return this.#part.log.eraseName(key, current, { dryRun });
    };
    return this.#answer(message, async () => {
      // Until its rows are deleted, a shard that had the name before may have past claims of it.
      if (!this.#isWhole) return { ok: false, refusal: this.#notHere() };
      if (dryRun) {
        const found = this.#part.pastClaims.count(key, most + 1);
        const changes = found > most ? 0 : eraseFromLog();
        return ok({
          erased: Math.min(found, most),
          changes,
          hasMore: found > most,
          claimEpoch: epochHere(),
        });
      }
      return this.#part.commits.submit(
        "erase_past_claims",
        (): Result<ErasedPeriods> => {
          const full = this.#part.audit.refusal;
          if (full !== undefined) return { ok: false, refusal: full };
          const result = this.#part.pastClaims.erase(key, most);
          // The log may have periods that are no longer kept as past claims.
          const changes = result.hasMore ? 0 : eraseFromLog();
          if (result.erased > 0 || changes > 0) {
            this.#part.audit.append(operator, {
              action: "erase_history",
              cell: null,
              target: keyHash(key),
              before: { periods: result.erased },
              after: { periods: 0 },
            });
          }
          return ok({ ...result, changes, claimEpoch: epochHere() });
        },
        { weight: most, owner: OPERATORS },
      );
    });
  }

  /** Returns the audit entries that were not copied yet, and drops those that were (O2). */
  pullAudit(message: PullAudit): Promise<Result<AuditPage>> {
    return this.#read(message, async () => {
      const { copied, limit } = message;
      if (copied !== null)
        await this.#part.commits.submit("forget_audit", () => this.#part.audit.forget(copied));
      return ok(this.#part.audit.page(limit));
    });
  }

  alarm(): Promise<void> {
    this.#part.counters.add("sweeps");
    return this.#part.sweeper.run();
  }

  // The calls below are also answered by a shard that has gone back in time.

  /** Returns what this shard knows of its own history. */
  part(message: Envelope): Promise<Result<PartStatus>> {
    return this.#answerAlways(message, async () => ok(this.#part.history.status));
  }

  /** Returns what the scrub has found. */
  scrubStatus(message: Envelope): Promise<Result<ScrubStatus>> {
    return this.#answerAlways(message, async () => {
      await this.#part.ports.sql.flush();
      return ok(this.#part.scrub.status);
    });
  }

  /** Returns what this instance has counted. It reads a limited number of rows and writes none. */
  metrics(message: Envelope): Promise<Result<ShardMetrics>> {
    return this.#answerAlways(message, async () =>
      ok({
        startedAtMs: this.#part.startedAtMs,
        state: this.#part.history.state,
        sizeBytes: this.#part.ports.sql.sizeBytes(),
        waitingWrites: this.#part.commits.waiting,
        scrub: this.#part.scrub.metrics,
        waitingReads: this.#part.reads.waiting,
        holds: this.#part.log.held.size,
        holdsOfOneCell: this.#part.log.held.mostOfOneCell,
        ...this.#part.queues.counts,
        ...this.#part.counters.counts(),
        exchangeDurations: this.#part.exchangeDurations.durations,
      }),
    );
  }

  /** Accepts that this shard has gone back in time (H6). A dry run returns what would be accepted. */
  reconcile(message: ReconcileShard): Promise<Result<ShardReconciliation>> {
    return this.#answerAlways(message, async () => {
      const reply = await this.#part.reconciler.reconcile(message);
      // A shard that was lost had no alarm, and has handed nothing over.
      void this.#handOver();
      return reply;
    });
  }

  /** Ends the reconciliation, once every cell has verified, and removed cells have no names (H6, X4). */
  finishReconciliation(message: FinishShard): Promise<Result<PartStatus>> {
    return this.#answerAlways(message, async () =>
      // Until a source has stopped to serve its names, others may get them there (G5).
      this.#part.target.isWhole
        ? this.#part.reconciler.finish(message)
        : { ok: false, refusal: this.#notHere() },
    );
  }

  /** Returns a page of a cell's holds, for a ledger that has lost leases (H7). */
  listHolds(message: ListHolds): Promise<Result<HoldPage>> {
    return this.#answerAlways(message, async () => {
      if (!this.#isWhole) return { ok: false, refusal: this.#notHere() };
      const page = holdPage(this.#part.log.held, this.#part.ranges, message);
      await this.#part.ports.sql.flush();
      return ok({ ...page, point: this.#point, seen: this.#part.log.ledgerPoint(message.cell) ?? null });
    });
  }

  /** Does some of the work of a growth: copies names, hands them over, or deletes those that have moved. */
  async growStep(message: GrowthStep): Promise<Result<GrowthProgress>> {
    const { growth } = message;
    if (growth?.phase === "aborted" && this.#part.target.hasOnlyCopies) return this.#dropCopies(growth);
    // A step after the cut may have either placement, and may change that of this shard.
    const isCut = growth?.phase === "cut";
    const { placement = message.placement } = isCut ? this.#part.placementGuard : message;
    const refusal =
      (await this.#part.placementGuard.admit({ ...message, placement })) ??
      this.#part.history.refuse(message.seen, "a caller") ??
      this.#refuseSeen(message);
    const reply =
      refusal === undefined ? await this.#part.source.step(message) : { ok: false as const, refusal };
    await this.#part.ports.sql.flush();
    return reply;
  }

  /**
   * Drops the copies that an aborted growth has sent here (G1). The alarm deletes what is left. If it was
   * lost, the next messages of the cron do (M3).
   */
  async #dropCopies(growth: AbortedGrowth): Promise<Result<GrowthProgress>> {
    await this.#part.placementGuard.begin();
    const weight = WIPE_ROWS;
    const dropped = await this.#part.commits.submit("clean", () => this.#part.target.abort(growth), {
      weight,
    });
    if (!dropped.ok) return dropped;
    this.#part.sweeper.arm();
    const { progress } = this.#part.source;
    return ok(this.#part.target.hasCopiesToDrop ? { ...progress, state: "cleaning" } : progress);
  }

  #refuseSeen({ sightings = [] }: GrowthStep): Refusal | undefined {
    for (const { cell, point } of sightings) {
      const refusal = this.#part.history.refuse(point, `the ledger of cell ${cell}`);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Returns how far this shard is with a growth. */
  growthProgress(message: Envelope): Promise<Result<GrowthProgress>> {
    return this.#read(message, async () => ok(this.#part.source.progress));
  }

  /** Stores names that another shard gives to this one (G5). This shard may have no placement yet. */
  async receive(message: Receive): Promise<Result<Received>> {
    const sender = `shard ${message.source}`;
    const { growth, seen, placement } = message;
    await this.#part.placementGuard.begin();
    // Before the cut, this shard has nothing but copies, so it can get what it has lost again.
    const isReplaceable =
      this.#part.placementGuard.placement === undefined && placement === placementOf(growth.from);
    const hasSeen = seen === undefined || this.#part.history.includes(seen);
    if (isReplaceable && !hasSeen && !this.#part.history.isLost) {
      await this.#part.ports.sql.flush();
      return ok({ state: "unknown", point: this.#point, seen: null });
    }
    const refusal = this.#part.history.refuse(seen, sender);
    if (refusal !== undefined) {
      if (this.#part.history.isLost) await this.#part.ports.sql.flush();
      return { ok: false, refusal };
    }
    const reply = await this.#part.commits.submit("receive", () => this.#part.target.receive(message), {
      weight: 2 * message.names.length + 8,
    });
    // The moved holds need a sweep, and the first message may have found no alarm (M3).
    this.#part.sweeper.arm();
    return reply.ok ? ok({ ...reply.value, point: this.#point }) : reply;
  }

  /**
   * Changes to a placement that the directory has confirmed. A shard that has names to give away stops to
   * serve them in the same transaction, and then hands them over (G6).
   */
  async #changePlacement({ placement, growth }: Confirmed, adopt: () => void): Promise<void> {
    // There is no such shard.
    if (this.#part.index >= shardsOf(placement)) return;
    const before = this.#part.placementGuard.placement;
    const cut = growth?.phase === "cut" ? growth : undefined;
    if (before === undefined && (cut === undefined || this.#part.index >= cut.from)) {
      // A growth in which this shard got its names has ended, and it has only those of an aborted one.
      if (cut === undefined && this.#part.target.hasCopiesToDrop)
        this.#part.history.refuseBehind("the directory");
      this.#part.ports.sql.transaction(["confirm_placement"], () => {
        adopt();
        if (cut !== undefined) this.#part.target.expect(cut);
      });
      return;
    }
    if (before !== undefined && (cut === undefined || shardsOf(before) !== cut.from))
      // The growth has ended, which it does only after this shard has handed over: this shard went back.
      this.#part.history.refuseBehind("the directory");
    const fence = (): void => {
      if (this.#part.placementGuard.placement === placement) return;
      const missed = missedGrowth(before ?? placement, placement);
      adopt();
      this.#part.changes.reset();
      this.#part.source.fence(cut ?? missed);
    };
    // Also a shard that went back must not serve with an old placement after its loss is accepted (G3).
    await this.#part.commits.submit("fence", fence, { evenIfStopped: true });
    this.#part.queues.sendAway((key) => !this.#part.serves(key));
    void this.#handOver();
  }

  /** Nobody serves the names until they are handed over. If this fails, the alarm goes on. */
  async #handOver(): Promise<void> {
    this.#part.sweeper.arm();
    try {
      await this.#part.source.work(HAND_OVER_ROWS, { mostDeleted: 0 });
    } catch (error) {
      this.#part.ports.log("hand_over_failed", {
        shard: this.#part.index,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** Tells the shards that have not handed over what is in force, so that they do. */
  #wakeSources(): void {
    const { placement } = this.#part.placementGuard;
    if (placement === undefined || this.#waking !== undefined) return;
    const message = { placement, newShard: this.#part.index };
    const { inquiryTimeoutMs, fanOut: width } = this.#part.limits;
    this.#waking = fanOut(this.#part.target.missingSources, width, async (source) => {
      const answer = await ask(this.#part.ports.clock, inquiryTimeoutMs, () =>
        this.#part.peers.shard(source).ping(message),
      );
      if (answer.kind === "ok" && answer.value.handedOver !== undefined)
        this.#handedOverBy(source, answer.value.handedOver);
    }).finally(() => {
      this.#waking = undefined;
    });
  }

  /** A source has handed over, which it knows only if that was durable here. */
  #handedOverBy(source: number, handedOver: HandedOver): void {
    if (!this.#part.target.missingSources.includes(source)) return;
    if (this.#part.history.state !== "reconciling") this.#part.history.refuseBehind(`shard ${source}`);
    else
      void this.#part.commits.submit("receive", () => {
        // The source may have sent it again during the wait (M1).
        if (this.#part.target.missingSources.includes(source)) this.#part.target.giveUp(source, handedOver);
      });
  }

  #servesAll(keys: readonly BucketKey[]): boolean {
    return this.#isWhole || keys.every((key) => this.#part.serves(key));
  }

  #serves({ bucket_type: type, canonical }: HoldRow): boolean {
    return this.#isWhole || this.#part.serves({ type, canonical });
  }

  /** Whether this shard already has all holds of a decision that it gets. Others may hand over some (G5). */
  #hasAllOf({ keys, grantedBy }: Decision): boolean {
    if (keys !== undefined) return this.#servesAll(keys);
    return grantedBy === undefined || this.#part.target.isWhole;
  }

  /** Whether the rows here are exactly the names that this shard serves (G8). */
  get #isWhole(): boolean {
    return this.#part.target.isWhole && this.#part.source.isWhole;
  }

  #notHere(): Refusal {
    this.#wakeSources();
    return refused(
      "UNAVAILABLE",
      `shard ${this.#part.index} is taking over or handing over names, because the deployment gets more ` +
        "shards; retry the call",
      { retryAfterMs: 1_000, isMoving: true },
    ).refusal;
  }

  async #answerAlways<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const refusal = await this.#part.placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (this.#part.history.isLost) await this.#part.ports.sql.flush();
    return work();
  }

  /** Answers from the rows, once they are durable. */
  #read<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#answer(message, async () => {
      const reply = await work();
      await this.#part.ports.sql.flush();
      return reply;
    });
  }

  /** Reads all names of a cell or of this shard, which must be exactly those that it serves (G8). */
  #readAll<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#read(message, async () =>
      this.#isWhole ? work() : { ok: false as const, refusal: this.#notHere() },
    );
  }

  /**
   * Reads claims of a cell. It first asks about the transfers from and to the cell that may have been cut, so
   * that an answer shows what an acknowledged cut has moved (Y4).
   */
  #readClaims<T>(message: Envelope & { cell: string }, work: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#readAll(message, async () => {
      const open = this.#part.ranges.involving(message.cell).filter(mayBeCut);
      if (open.length > 0) {
        const verdicts = await this.#part.inquirer.inquire(open, message.traces);
        if ([...verdicts.values()].includes("unknown")) return unknownTransfer;
      }
      return work();
    });
  }

  /** Carries out a message, unless it does not fit or its sender has seen more than this shard has (H4). */
  async #answer<T>(
    message: Envelope,
    work: () => Promise<Result<T>>,
    sender = "a caller",
  ): Promise<Result<T>> {
    const refusal =
      (await this.#part.placementGuard.admit(message)) ?? this.#part.history.refuse(message.seen, sender);
    const done = refusal === undefined ? await work() : { ok: false as const, refusal };
    // During the wait, the names may have moved, and the loss may have been noticed (M1, G3, H4).
    const late = this.#part.placementGuard.refuseOutdated(message) ?? this.#part.history.refusal;
    const isLate = refusal === undefined && late !== undefined;
    const reply = isLate ? { ok: false as const, refusal: late } : done;
    // Whoever learns of the loss can rely on it, also after a crash (H4).
    if (this.#part.history.isLost) await this.#part.ports.sql.flush();
    return reply;
  }
}

/** Reads the log of a shard. Only the simulator sets another one. */
type LogOf = (ports: Ports, limits: Limits) => ShardLog;

const readLog: LogOf = ({ sql, clock }, limits) => new ShardLog(sql, clock, limits);

type ShardPart = ReturnType<typeof makePart>;

/** Makes the parts in their order. One that needs a later one does not compile, except in a closure. */
function makePart(index: number, ports: Ports, limits: Limits, peers: Peers, logOf: LogOf, change: Change) {
  const tables = new Tables(ports, shardSchema);
  const log = logOf(ports, limits);
  const startedAtMs = ports.clock.now();
  const counters = new ShardCounters();
  const exchangeDurations = new Histogram(ports.clock);
  const changes = new ChangeCounts(ports.randomness);
  const isFull = (): boolean => ports.sql.sizeBytes() > limits.shardBytes;
  const pastClaims = new PastClaims(ports.sql, limits, isFull);
  const audit = new Audit(ports, limits, `shard ${index}`);
  const store = new ShardStore(
    ports.sql,
    log,
    pastClaims,
    (cell) => changes.add(cell),
    (key, isHeld) => {
      queues.holdChanged(key, isHeld);
      source.changed(key);
    },
  );
  const queues = new NameQueues(ports.clock, limits);
  const scans = new ScanStore(ports.sql, log.held);
  const reads = new ReadQueue(ports.clock, limits);
  const ranges = new RangeHolds(ports.sql, (cell) => changes.add(cell));
  const scopes = new ScopeStore(ports.sql, log.held);
  const stored = {
    index,
    ports,
    limits,
    peers,
    store,
    pastClaims,
    audit,
    changes,
    scans,
    ranges,
    scopes,
    log,
  };
  const transfers = new ShardTransfers(stored);
  const claimReads = transfers.readsIn(reads);
  const history = new History(ports, `shard ${index}`, log.position);
  const placementGuard = new PlacementGuard(ports, limits, peers, {
    firstUse: () => sweeper.start(),
    change,
  });
  /** Writes the log row of a transaction that changed something. */
  const logTransaction = (): void => {
    const hasChanged = [store, pastClaims, ranges, target].map((part) => part.takeChanged()).includes(true);
    if (!hasChanged && !log.hasJumped && !log.held.hasChanged && log.changes.isEmpty) return log.discard();
    history.raise();
    log.append();
  };
  const durable = (): void => {
    history.madeDurable(log.position);
    queues.committed();
  };
  const commits = new GroupCommit(ports, history, logTransaction, durable, MAX_TRANSACTION_ROWS);
  const names = new MovedNames(ports.sql, log);
  const working = {
    ...stored,
    names,
    queues,
    reads,
    transfers,
    claimReads,
    history,
    placementGuard,
    commits,
  };
  const source: GrowthSource = new GrowthSource(working);
  const target: GrowthTarget = new GrowthTarget(working);
  const serves = (key: BucketKey): boolean => target.serves(key) && source.serves(key);
  const ledger = (cell: string): LedgerCalls => {
    counters.add("inquiries");
    return peers.ledger(cell);
  };
  const inquirer = new Inquirer({ ...working, serves, peers: { ledger } });
  const part = { ...working, source, target, inquirer };
  const reader = new ShardReader(part);
  const digests = new DigestReader(part);
  const sweeper: Sweeper = new Sweeper(part);
  const reconciler = new ShardReconciler(part);
  const rows = new ShardScrub(part);
  const scrub = new Scrub(ports, limits, history, (cursor, step) => rows.check(cursor, step));
  const counts = { startedAtMs, counters, exchangeDurations };
  return { ...part, tables, ...counts, isFull, serves, reader, digests, sweeper, reconciler, scrub };
}

/** A growth that this shard has missed, because it went back in time. The names are handed over already. */
const missedGrowth = (before: Placement, after: Placement): Growth => ({
  id: `missed ${after}`,
  from: shardsOf(after),
  to: shardsOf(after),
  phase: "cut",
  startedAtMs: 0,
  startedBy: "",
  cutAtMs: 0,
  position: shardsOf(before),
});

const unknownOwner: Result<never> = refused(
  "UNAVAILABLE",
  "the ledger that knows whether the name is taken cannot be reached",
  { retryAfterMs: 1_000 },
);

const unknownTransfer: Result<never> = refused(
  "UNAVAILABLE",
  "the ledger that knows whether a transfer of the cell's claims was cut cannot be reached; retry the call",
  { retryAfterMs: 1_000 },
);

const changesPruned = (after: number | null): Result<never> =>
  refused(
    "FAILED_PRECONDITION",
    `the shard no longer has all changes after position ${after}; read the newest positions, then export ` +
      "the records, and continue from these positions",
    { reason: "CHANGES_PRUNED" },
  );

const growing = refused(
  "UNAVAILABLE",
  "the deployment is getting more shards: prepare the transfer when that is finished",
  { retryAfterMs: 60_000 },
).refusal;

const NOT_KNOWN: LookupFound = { kind: "unknown" };

const neverNone = (found: LookupFound): LookupFound => (found.kind === "none" ? { kind: "unknown" } : found);

type Weigh = (decision: Decision) => number;

/** A transfer is a part by itself: it touches many rows, and sees the holds of the parts before it. */
const decisionWeight = ({ outcome, transfer }: Decision, holds: number): number =>
  outcome === "PRECOMMITTED" ? PRECOMMIT_WEIGHT : transfer === undefined ? holds : MOVE_WEIGHT;
const prepareWeight = ({ ops, transfer }: Prepare): number =>
  transfer === undefined ? ops.length : CHUNK_ROWS;

const weightOf = ({ decisions, prepares }: Exchange, weigh: Weigh): number =>
  decisions.reduce((sum, each) => sum + weigh(each), 0) +
  prepares.reduce((sum, each) => sum + prepareWeight(each), 0) +
  1;

/**
 * Cuts a large message into parts, so that the messages of other cells get their turns in between. The leases
 * of a message are independent. The decisions stay before the prepares (N2).
 */
function partsOf(message: Exchange, weigh: Weigh): Exchange[] {
  if (weightOf(message, weigh) <= CHUNK_ROWS) return [message];
  const decisions = chunksOf(message.decisions, CHUNK_ROWS, weigh);
  const prepares = chunksOf(message.prepares, CHUNK_ROWS, prepareWeight);
  return [
    ...decisions.map((part) => ({ ...message, decisions: part, prepares: [] })),
    ...prepares.map((part) => ({ ...message, decisions: [], prepares: part })),
  ];
}

/** A release without an epoch is of an attempt that was never granted. */
function endedAs({ outcome, epoch }: Decision): EndedAs {
  if (outcome === "COMMITTED") return "committed";
  return epoch === null ? "gone" : "rolled_back";
}

function decides({ cell, lease, incarnation, counter, epoch }: Decision, hold: ExecutionId): boolean {
  return (
    hold.cell === cell &&
    hold.lease === lease &&
    hold.incarnation === incarnation &&
    hold.counter === counter &&
    (epoch === null || hold.epoch === epoch)
  );
}
