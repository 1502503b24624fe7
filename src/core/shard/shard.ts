import { Audit, type AuditPage, type PullAudit } from "../audit.ts";
import { GroupCommit } from "../group-commit.ts";
import { keyHash } from "../key-hash.ts";
import type { Limits } from "../limits.ts";
import {
  MESSAGE_VERSION,
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
import { migrate } from "../meta.ts";
import { Histogram } from "../metrics/histogram.ts";
import type { ShardMetrics } from "../metrics/messages.ts";
import { ShardCounters } from "../metrics/shard-counters.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, valuesOf, type Refusal, type Result } from "../refusal.ts";
import type { PlanTransfer, TransferPlan } from "../transfer/messages.ts";
import type { Peers, ShardCalls } from "../methods.ts";
import { PlacementGuard } from "../placement-guard.ts";
import { Scrub } from "../scrub/scrub.ts";
import { CHUNK_ROWS, chunksOf } from "./chunks.ts";
import { ChangeCounts } from "./change-counts.ts";
import { History } from "../history.ts";
import type {
  AbortedGrowth,
  Confirmed,
  Growth,
  GrowthProgress,
  GrowthStep,
  Receive,
  Received,
} from "../growth/messages.ts";
import { placementOf, shardsOf, type Placement } from "../placement.ts";
import { changesPage } from "./changes-page.ts";
import { DigestReader } from "./digest-records.ts";
import { endHolds, type EndedAs } from "./end-holds.ts";
import { GrowthSource } from "./growth-source.ts";
import { GrowthTarget, WIPE_ROWS } from "./growth-target.ts";
import { Inquirer } from "./inquirer.ts";
import { holdPage } from "./hold-page.ts";
import { ShardReconciler } from "./reconcile.ts";
import { MovedNames } from "./moved-names.ts";
import { PastClaims } from "./past-claims.ts";
import { mayBeCut, RangeHolds } from "./range-holds.ts";
import { readPeriods } from "./periods.ts";
import { ShardLog } from "./shard-log.ts";
import { NameQueues } from "./name-queues.ts";
import { Preparation } from "./prepare.ts";
import { ReadQueue, type ClaimReads } from "./read-queue.ts";
import { ShardReader } from "./reader.ts";
import { reportAfter } from "./report.ts";
import { shardSchema } from "./schema.ts";
import { bucketText, type ExecutionId, type HoldRow } from "./rows.ts";
import { ScanStore } from "./scan-store.ts";
import { ScopeStore } from "./scope-store.ts";
import { MOVE_WEIGHT, PRECOMMIT_WEIGHT, ShardTransfers } from "./shard-transfers.ts";
import { checkHolds, ShardScrub } from "./shard-scrub.ts";
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

/** Who the work of operators belongs to, which takes its turn like the work of a cell. */
const OPERATORS = "operators";

/** The rows that a shard sends at once after a cut. Its alarm sends the others. */
const HAND_OVER_ROWS = 100_000;

/** The holds that a message for metrics counts. */
const MOST_HOLDS = 1_000;

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
  readonly #index: number;
  readonly #ports: Ports;
  readonly #store: ShardStore;
  readonly #pastClaims: PastClaims;
  readonly #audit: Audit;
  readonly #changes: ChangeCounts;
  readonly #scans: ScanStore;
  readonly #queues: NameQueues;
  readonly #ranges: RangeHolds;
  readonly #scopes: ScopeStore;
  readonly #transfers: ShardTransfers;
  readonly #limits: Limits;
  readonly #reads: ReadQueue;
  /** For reads of one cell's claims. */
  readonly #claimReads: ClaimReads;
  readonly #log: ShardLog;
  readonly #history: History;
  readonly #placementGuard: PlacementGuard;
  readonly #commits: GroupCommit;
  readonly #inquirer: Inquirer;
  readonly #reader: ShardReader;
  readonly #digests: DigestReader;
  readonly #sweeper: Sweeper;
  readonly #reconciler: ShardReconciler;
  readonly #scrub: Scrub;
  readonly #source: GrowthSource;
  readonly #target: GrowthTarget;
  readonly #counters = new ShardCounters();
  readonly #exchangeDurations: Histogram;
  readonly #startedAtMs: number;
  readonly #peers: Peers;
  #waking: Promise<unknown> | undefined;

  constructor(index: number, ports: Ports, limits: Limits, peers: Peers) {
    migrate(ports.sql, shardSchema);
    this.#index = index;
    this.#peers = peers;
    this.#ports = ports;
    this.#startedAtMs = ports.clock.now();
    this.#exchangeDurations = new Histogram(ports.clock);
    this.#changes = new ChangeCounts(ports.randomness);
    this.#pastClaims = new PastClaims(ports.sql, limits, () => this.#isFull);
    this.#audit = new Audit(ports, limits, `shard ${index}`);
    this.#store = new ShardStore(
      ports.sql,
      this.#pastClaims,
      (cell) => this.#changes.add(cell),
      (key, isHeld) => {
        this.#queues.holdChanged(key, isHeld);
        this.#source.changed(key);
      },
    );
    this.#queues = new NameQueues(ports.clock, limits);
    this.#scans = new ScanStore(ports.sql);
    this.#limits = limits;
    this.#reads = new ReadQueue(ports.clock, limits);
    this.#log = new ShardLog(ports.sql, ports.clock, limits);
    this.#ranges = new RangeHolds(ports.sql, (cell) => this.#changes.add(cell));
    this.#scopes = new ScopeStore(ports.sql);
    this.#transfers = new ShardTransfers(
      index,
      ports.clock,
      limits,
      this.#ranges,
      this.#scopes,
      this.#pastClaims,
      this.#log,
    );
    this.#claimReads = this.#transfers.readsIn(this.#reads);
    this.#history = new History(ports, `shard ${index}`, this.#log.position);
    this.#placementGuard = new PlacementGuard(ports, limits, peers, {
      firstUse: () => this.#sweeper.start(),
      change: (confirmed, adopt) => this.#changePlacement(confirmed, adopt),
    });
    this.#commits = new GroupCommit(
      ports,
      this.#history,
      () => this.#logTransaction(),
      () => {
        this.#history.madeDurable(this.#log.position);
        this.#queues.committed();
      },
      MAX_TRANSACTION_ROWS,
    );
    const names = new MovedNames(ports.sql);
    this.#source = new GrowthSource(
      index,
      ports,
      limits,
      names,
      this.#ranges,
      this.#log,
      this.#history,
      this.#placementGuard,
      this.#commits,
      peers,
    );
    this.#target = new GrowthTarget(
      index,
      ports,
      names,
      this.#log,
      this.#history,
      this.#placementGuard,
      this.#pastClaims,
    );
    this.#inquirer = new Inquirer(
      index,
      ports,
      limits,
      this.#store,
      this.#ranges,
      this.#transfers,
      this.#log,
      this.#history,
      this.#placementGuard,
      this.#commits,
      {
        ledger: (cell) => {
          this.#counters.add("inquiries");
          return peers.ledger(cell);
        },
      },
      (key) => this.#serves(key),
    );
    this.#reader = new ShardReader(
      this.#store,
      this.#scans,
      this.#ranges,
      this.#claimReads,
      this.#inquirer,
      limits,
    );
    this.#digests = new DigestReader(
      this.#store,
      this.#scans,
      this.#changes,
      this.#claimReads,
      this.#inquirer,
      limits,
    );
    this.#sweeper = new Sweeper(
      ports,
      limits,
      this.#store,
      this.#scans,
      this.#inquirer,
      this.#ranges,
      this.#transfers,
      this.#pastClaims,
      this.#commits,
      this.#source,
      this.#target,
    );
    this.#reconciler = new ShardReconciler(
      index,
      ports,
      limits,
      this.#store,
      this.#ranges,
      this.#log,
      this.#history,
      this.#commits,
      peers,
      this.#pastClaims,
      this.#audit,
      (incarnation) => {
        this.#source.lossAccepted(incarnation);
        this.#target.lossAccepted();
      },
    );
    const rows = new ShardScrub(index, ports, limits, this.#reads, this.#inquirer, () => this.#log.position);
    this.#scrub = new Scrub(ports, limits, this.#history, (cursor, step) => rows.check(cursor, step));
  }

  /**
   * Applies the decisions and then the prepares of any number of leases, in one transaction (N1, N2). It
   * waits for no other object.
   */
  exchange(message: Exchange): Promise<Result<ExchangeAnswer>> {
    this.#counters.add("exchanges");
    return this.#exchangeDurations.time(() => this.#exchange(message));
  }

  #exchange(message: Exchange): Promise<Result<ExchangeAnswer>> {
    return this.#answer(
      message,
      async (): Promise<Result<ExchangeAnswer>> => {
        if (this.#commits.waitingOf(message.cell) >= MAX_WAITING_PARTS) {
          return refused("UNAVAILABLE", "the shard still has earlier messages of this cell to carry out", {
            retryAfterMs: 1_000,
          });
        }
        const parts = partsOf(message).map((part) =>
          this.#commits.submit("exchange", () => ok(this.#carryOut(part)), {
            weight: weightOf(part),
            owner: message.cell,
          }),
        );
        const carriedOut = valuesOf(await Promise.all(parts));
        if (!carriedOut.ok) return carriedOut;
        const done = carriedOut.value;
        const seen = this.#log.ledgerPoint(message.cell) ?? null;
        const unchecked = done.filter(({ isUnchecked }) => isUnchecked === true).length;
        if (unchecked === done.length)
          return ok({ seen, point: this.#point, isUnchecked: true, prepares: [] });
        // A message of another instance has come in between, so nobody knows what this one has changed.
        if (unchecked > 0)
          return refused("UNAVAILABLE", "the shard has carried out only a part of the message; retry", {
            retryAfterMs: 1_000,
          });
        const prepares = done.flatMap((part) => part.prepares);
        const unapplied = [...done.flatMap((part) => part.unapplied), ...this.#movingOf(message)];
        return ok({ seen, point: this.#point, prepares, ...(unapplied.length === 0 ? {} : { unapplied }) });
      },
      `the ledger of cell ${message.cell}`,
    );
  }

  /** Returns the transfers among the decisions whose claims are not all rewritten (Y5). */
  #movingOf({ decisions }: Exchange): string[] {
    const leases = decisions.flatMap(({ lease, transfer }) => (transfer === undefined ? [] : [lease]));
    return leases.length === 0 ? [] : this.#transfers.moving(leases);
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    const { point } = this.#history;
    return point === undefined ? {} : { point };
  }

  get #point(): HistoryPoint | null {
    return this.#history.point ?? null;
  }

  /** Writes the log row of a transaction that changed something. Runs at the end of each transaction. */
  #logTransaction(): void {
    const hasChanged = [this.#store, this.#pastClaims, this.#ranges, this.#target]
      .map((part) => part.takeChanged())
      .includes(true);
    if (!hasChanged && !this.#log.hasJumped && this.#log.changes.isEmpty) return this.#log.discard();
    this.#history.raise();
    this.#log.append();
  }

  #carryOut(message: Exchange): CarriedOut {
    const { cell, point, confirmed, decisions, prepares } = message;
    // The placement may have changed while the message waited for its transaction (M1, G3).
    if (this.#placementGuard.refuseOutdated(message) !== undefined) return { prepares: [], unapplied: [] };
    const now = this.#ports.clock.now();
    if (!this.#log.note(cell, point, confirmed)) return { isUnchecked: true, prepares: [], unapplied: [] };
    // Names that are not handed over yet keep their decisions waiting, and nobody else's (N2, G5).
    const decided = Map.groupBy(decisions, ({ keys }) => this.#servesAll(keys));
    const missing = this.#decide(decided.get(true) ?? [], now);
    const waiting = decided.get(false) ?? [];
    if (waiting.length > 0) this.#wakeSources();
    // Names whose claims are lost look free, and only their owners' verification may take them (H6).
    const refusal = this.#history.reconcilingRefusal;
    const full = prepares.length > 0 ? this.#fullRefusal() : undefined;
    const unserved = new Set(prepares.filter(({ ops }) => !this.#servesAll(ops)));
    const preparation = new Preparation(
      this.#store,
      this.#ports.randomness,
      now,
      () => this.#log.nextEpoch(),
      this.#queues,
      this.#ranges,
      prepares,
    );
    const answers = prepares.map((request) => {
      if (unserved.has(request)) return { granted: false as const, refusal: this.#notHere() };
      if (request.transfer !== undefined && (this.#source.isRunning || !this.#isWhole))
        return { granted: false as const, refusal: growing };
      if (refusal !== undefined && request.isVerification !== true)
        return { granted: false as const, refusal };
      if (full !== undefined && request.ops.some(({ kind }) => kind !== "destroy"))
        return { granted: false as const, refusal: full };
      if (request.transfer !== undefined) return this.#transfers.prepare(request, request.transfer, now);
      return preparation.carryOut(request);
    });
    for (const hold of preparation.write())
      this.#log.noteHeld(keyHash({ type: hold.bucket_type, canonical: hold.canonical }));
    for (const [index, request] of prepares.entries())
      this.#queues.prepared(request, answers[index]?.granted ?? false);
    // Refused prepares also arm the alarm: they met a hold, and its alarm may have been lost (M3).
    // A growth may have waited for the range hold that has ended.
    if (prepares.length > 0 || this.#ranges.hasCut || this.#source.hasWork) this.#sweeper.arm();
    return { prepares: answers, unapplied: [...waiting.map(({ lease }) => lease), ...missing] };
  }

  get #isFull(): boolean {
    return this.#ports.sql.sizeBytes() > this.#limits.shardBytes;
  }

  /** Why a shard without room for more names refuses a prepare. Only destroys make room. */
  #fullRefusal(): Refusal | undefined {
    if (!this.#isFull) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `a shard has reached its limit of ${this.#limits.shardBytes} bytes; release names, and retry`,
      { reason: "SHARD_FULL", retryAfterMs: 60_000 },
    ).refusal;
  }

  /**
   * Applies each decision to its own holds and to nothing else. If a hold is missing, the decision was
   * applied before (C2). Returns the transfers whose precommit found no range hold (Y6).
   */
  #decide(decisions: readonly Decision[], now: number): string[] {
    const missing: string[] = [];
    const holds = this.#store.holdsOn(decisions.flatMap(({ keys }) => keys));
    const ended: { hold: HoldRow; as: EndedAs }[] = [];
    for (const decision of decisions) {
      const range = decision.transfer && this.#ranges.on(decision.transfer);
      const isHeld = range !== undefined && decides(decision, range);
      if (decision.outcome === "PRECOMMITTED") {
        if (isHeld) this.#transfers.precommit(range);
        else missing.push(decision.lease);
        continue;
      }
      if (isHeld) this.#transfers.end(range, endedAs(decision), now);
      for (const { type, canonical } of decision.keys) {
        const bucket = bucketText(type, canonical);
        const hold = holds.get(bucket);
        if (hold === undefined || !decides(decision, hold)) continue;
        holds.delete(bucket);
        ended.push({ hold, as: endedAs(decision) });
      }
    }
    endHolds(this.#store, this.#log, ended, false, now);
    return missing;
  }

  /**
   * Inquires about the holds on these keys and clears those that are over (B8). Returns one state per key.
   */
  settle(message: Settle): Promise<Result<SettleAnswer>> {
    this.#counters.add("settles");
    return this.#answer(message, async () => {
      // A name that gets here during the wait was not read (G5).
      const wasHere = message.keys.map((key) => this.#serves(key));
      const settled = await this.#inquirer.settle(message.keys, message.traces);
      const states = settled.map((state, index): HoldState => {
        const key = message.keys[index];
        return key === undefined || (wasHere[index] === true && this.#serves(key)) ? state : "unknown";
      });
      const isAwaited = (index: number): boolean => {
        const key = message.keys[index];
        return key !== undefined && this.#queues.isAwaited(key);
      };
      return ok({
        states: states.map((state, index) => (state === "free" && isAwaited(index) ? "awaited" : state)),
        point: this.#point,
      });
    });
  }

  /** Waits in the queue of a name (B11). */
  wait(message: WaitForName): Promise<Result<WaitAnswer>> {
    this.#counters.add("waits");
    return this.#answer(message, async () => {
      if (!this.#serves(message.key)) return { ok: false, refusal: this.#notHere() };
      const hold = this.#store.holdOn(message.key.type, message.key.canonical);
      const isFirst = this.#queues.isFirst(message);
      const state = this.#queues.wait(message, hold !== undefined);
      // The lease of the hold may be over without a message about it (B8). The first that still waits asks.
      if (isFirst && hold !== undefined) this.#inquirer.inquire([hold], message.traces).catch(() => {});
      return ok({ state: await state });
    });
  }

  /** Gives up a place in the queue of a name. */
  leave(message: LeaveQueue): Promise<Result<null>> {
    return this.#answer(message, async () => {
      this.#queues.leave(message);
      return ok(null);
    });
  }

  lookup(message: LookupRequest): Promise<Result<LookupAnswer>> {
    this.#counters.add("lookups", message.keys.length);
    return this.#read(message, async () => {
      const { position } = this.#log;
      // A name that gets here during the wait has rows that were read too early (R2, G5).
      const wasHere = message.keys.map((key) => this.#serves(key));
      const answers = await this.#reader.lookup(message.keys, message.traces);
      // A claim that is not there may be lost (R2, H6).
      const isReconciling = this.#history.state === "reconciling";
      const isHere = message.keys.map((key, index) => wasHere[index] === true && this.#serves(key));
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
    this.#counters.add("reports");
    return this.#read(envelope, async () => {
      const newest = this.#log.position;
      // A router's word proves no loss: it is no peer, and nothing of it is stored (H4).
      if (after !== null && after > newest) {
        return refused(
          "UNAVAILABLE",
          `the shard is at position ${newest}, and the report should begin after position ${after}`,
          { retryAfterMs: 1_000 },
        );
      }
      const report = reportAfter(this.#log, after ?? newest);
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
    this.#counters.add("changeReads");
    return this.#read(message, async () => {
      const newest = this.#log.position;
      // A consumer's word proves no loss, like a router's (Q3).
      if (after !== null && after > newest) {
        return refused(
          "UNAVAILABLE",
          `the shard is at position ${newest}, and the changes should begin after position ${after}`,
          { retryAfterMs: 1_000 },
        );
      }
      return this.#reads
        .run<Result<ChangesPage>>(message.cell ?? OPERATORS, () => {
          const start = after ?? newest;
          const read = changesPage(this.#log, start, message, this.#history.lastPositionAfter(start));
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
      this.#history.incarnationAt(after),
      this.#history.incarnationAt(through),
    ];
    return { ...page, incarnations };
  }

  listRecords(message: ListRecordsRequest): Promise<Result<ListRecordsAnswer>> {
    this.#counters.add("recordReads");
    return this.#readClaims(message, () => this.#reader.listRecords(message));
  }

  /** Returns some claims of a cell that is removed, held or not (X3). */
  listCellClaims(message: ListCellClaims): Promise<Result<CellClaims>> {
    this.#counters.add("recordReads");
    return this.#readClaims(message, () =>
      this.#claimReads.run(message.cell, () => {
        const claims = this.#store.claimsOf(message.cell, Math.min(message.limit, this.#limits.scanRows));
        const seen = this.#log.ledgerPoint(message.cell) ?? null;
        const transfers = this.#transfers.holding(message.cell);
        return { value: { claims, transfers, seen }, rows: claims.length };
      }),
    );
  }

  /** Counts claims of a cell by their types, held or not. */
  countCellClaims(message: CountCellClaims): Promise<Result<CellClaimCounts>> {
    this.#counters.add("recordReads");
    return this.#readClaims(message, () =>
      this.#claimReads.run(message.cell, () => {
        const value = this.#store.countClaims(message.cell, message.behind, this.#limits.scanRows);
        return { value, rows: value.counts.reduce((sum, { claims }) => sum + claims, 0) };
      }),
    );
  }

  /** Counts what this shard has of a scope, before a transfer of it is prepared (Y2). */
  planTransfer(message: PlanTransfer): Promise<Result<TransferPlan>> {
    this.#counters.add("recordReads");
    return this.#readClaims({ ...message, cell: message.from }, () =>
      this.#claimReads.run(message.from, () => {
        const value = this.#transfers.plan(message);
        return { value, rows: value.counts.reduce((sum, { claims }) => sum + claims, value.present) };
      }),
    );
  }

  /** Searches the claims of all cells for the names of a subject. */
  findNames(message: FindNames): Promise<Result<FoundNames>> {
    this.#counters.add("recordReads");
    return this.#readAll(message, () =>
      this.#reads.run(OPERATORS, () => {
        const rows = this.#limits.scanRows;
        return { value: this.#store.findNames(message, rows), rows };
      }),
    );
  }

  /** Returns digests of ranges (R4). */
  digestRecords(message: DigestRecordsRequest): Promise<Result<DigestRecordsAnswer>> {
    this.#counters.add("recordReads");
    return this.#readClaims(message, () => this.#digests.digestRecords(message));
  }

  /**
   * Called by the readiness check and by the cron. Confirms the placement, reads the disk, and sets the alarm
   * again if it was lost (M3), or if past claims are due to be dropped (K3).
   */
  ping(message: PingShard): Promise<Result<ShardWork>> {
    return this.#answer(message, async () => {
      this.#sweeper.arm();
      if (!this.#target.isWhole) this.#wakeSources();
      const { newShard } = message;
      const handedOver = newShard === undefined ? undefined : this.#source.handedOverTo(newShard);
      const work = { auditEntries: this.#audit.count, scrub: this.#scrub.work };
      return ok({ ...work, ...(handedOver === undefined ? {} : { handedOver }) });
    });
  }

  /** Checks the next rows of this shard, or the first ones (Z1). */
  scrub(message: ScrubStep): Promise<Result<ScrubStatus>> {
    return this.#readAll(message, () => this.#scrub.step(message));
  }

  /** Returns which holds of granted leases are not here, for the scrub of their ledger (Z3). */
  checkHolds(message: CheckHolds): Promise<Result<HoldCheck>> {
    return this.#answer(
      message,
      async () => {
        if (message.executions.some(({ keys }) => !this.#servesAll(keys)))
          return { ok: false, refusal: this.#notHere() };
        const found = await this.#reads.run(message.cell, () => ({
          value: checkHolds(this.#store, this.#ranges, this.#index, message),
          rows: message.executions.reduce((sum, { keys }) => sum + keys.length, 0),
        }));
        if (!found.ok) return found;
        await this.#ports.sql.flush();
        if (!found.value.ok) return found.value;
        return ok({
          ...found.value.value,
          isReconciling: this.#history.state === "reconciling",
          seen: this.#log.ledgerPoint(message.cell) ?? null,
        });
      },
      `the ledger of cell ${message.cell}`,
    );
  }

  /** Returns the owners of a name, now and before, the latest first (K2). */
  listPeriods(message: ListPeriods): Promise<Result<PeriodPage>> {
    this.#counters.add("lookups");
    return this.#read(message, async () => {
      if (!this.#serves(message.key)) return { ok: false, refusal: this.#notHere() };
      // A hold whose lease is decided is cleared first, so the claim is what the lookup shows (R2).
      if (message.before === null) {
        const [current] = await this.#reader.lookup([message.key], message.traces);
        if (current === undefined || current.found.kind === "unknown") return unknownOwner;
      }
      return this.#reads
        .run<Result<PeriodPage>>(OPERATORS, () => {
          // The claim may not be rewritten yet, although its transfer was cut (Y4).
          if (message.before === null && this.#ranges.over(this.#store.claim(message.key))?.cut_at_ms != null)
            return { value: unknownOwner, rows: 1 };
          const page = readPeriods(this.#store, this.#pastClaims, this.#limits.scanRows, message);
          // What was lost and is not verified yet may be missing (H6, K4).
          const isReconciling = this.#history.state === "reconciling";
          const completeSinceMs = isReconciling ? this.#ports.clock.now() : this.#pastClaims.completeSinceMs;
          return { value: ok({ ...page, completeSinceMs }), rows: page.rows };
        })
        .then((done) => (done.ok ? done.value : done));
    });
  }

  /** Erases the past claims of a name (K5). A dry run returns what would be erased. */
  erasePeriods(message: ErasePeriods): Promise<Result<ErasedPeriods>> {
    const { key, operator, dryRun } = message;
    const most = this.#limits.scanRows;
    const epochHere = (): number | null => this.#store.claim(key)?.epoch ?? null;
    const eraseFromLog = (): number => {
      const current = epochHere() ?? message.claimEpoch ?? undefined;
      return this.#log.eraseName(key, current, { dryRun });
    };
    return this.#answer(message, async () => {
      // Until its rows are deleted, a shard that had the name before may have past claims of it.
      if (!this.#isWhole) return { ok: false, refusal: this.#notHere() };
      if (dryRun) {
        const found = this.#pastClaims.count(key, most + 1);
        const changes = found > most ? 0 : eraseFromLog();
        return ok({
          erased: Math.min(found, most),
          changes,
          hasMore: found > most,
          claimEpoch: epochHere(),
        });
      }
      return this.#commits.submit(
        "erase_past_claims",
        (): Result<ErasedPeriods> => {
          const full = this.#audit.refusal;
          if (full !== undefined) return { ok: false, refusal: full };
          const result = this.#pastClaims.erase(key, most);
          // The log may have periods that are no longer kept as past claims.
          const changes = result.hasMore ? 0 : eraseFromLog();
          if (result.erased > 0 || changes > 0) {
            this.#audit.append(operator, {
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
      if (copied !== null) await this.#commits.submit("forget_audit", () => this.#audit.forget(copied));
      return ok(this.#audit.page(limit));
    });
  }

  alarm(): Promise<void> {
    this.#counters.add("sweeps");
    return this.#sweeper.run();
  }

  // The calls below are also answered by a shard that has gone back in time.

  /** Returns what this shard knows of its own history. */
  part(message: Envelope): Promise<Result<PartStatus>> {
    return this.#answerAlways(message, async () => ok(this.#history.status));
  }

  /** Returns what the scrub has found. */
  scrubStatus(message: Envelope): Promise<Result<ScrubStatus>> {
    return this.#answerAlways(message, async () => {
      await this.#ports.sql.flush();
      return ok(this.#scrub.status);
    });
  }

  /** Returns what this instance has counted. It reads a limited number of rows and writes none. */
  metrics(message: Envelope): Promise<Result<ShardMetrics>> {
    return this.#answerAlways(message, async () =>
      ok({
        startedAtMs: this.#startedAtMs,
        state: this.#history.state,
        sizeBytes: this.#ports.sql.sizeBytes(),
        waitingWrites: this.#commits.waiting,
        scrub: this.#scrub.metrics,
        waitingReads: this.#reads.waiting,
        holds: this.#store.countHolds(MOST_HOLDS),
        ...this.#queues.counts,
        ...this.#counters.counts(),
        exchangeDurations: this.#exchangeDurations.durations,
      }),
    );
  }

  /** Accepts that this shard has gone back in time (H6). A dry run returns what would be accepted. */
  reconcile(message: ReconcileShard): Promise<Result<ShardReconciliation>> {
    return this.#answerAlways(message, async () => {
      const reply = await this.#reconciler.reconcile(message);
      // Shards that got names from this one must hear of its loss (G7).
      if (this.#source.hasWork) void this.#handOver();
      return reply;
    });
  }

  /** Ends the reconciliation, once every cell has verified, and removed cells have no names (H6, X4). */
  finishReconciliation(message: FinishShard): Promise<Result<PartStatus>> {
    return this.#answerAlways(message, async () =>
      // Until a source has stopped to serve its names, others may get them there (G5).
      this.#target.isWhole ? this.#reconciler.finish(message) : { ok: false, refusal: this.#notHere() },
    );
  }

  /** Returns a page of a cell's holds, for a ledger that has lost leases (H7). */
  listHolds(message: ListHolds): Promise<Result<HoldPage>> {
    return this.#answerAlways(message, async () => {
      if (!this.#isWhole) return { ok: false, refusal: this.#notHere() };
      const page = holdPage(this.#store, this.#ranges, message);
      await this.#ports.sql.flush();
      return ok({ ...page, point: this.#point, seen: this.#log.ledgerPoint(message.cell) ?? null });
    });
  }

  /** Does some of the work of a growth: copies names, hands them over, or deletes those that have moved. */
  async growStep(message: GrowthStep): Promise<Result<GrowthProgress>> {
    const { growth } = message;
    if (growth?.phase === "aborted" && this.#target.hasOnlyCopies) return this.#dropCopies(message, growth);
    // A step after the cut may have either placement, and may change that of this shard.
    const isCut = growth?.phase === "cut";
    const { placement = message.placement } = isCut ? this.#placementGuard : message;
    const refusal =
      (await this.#placementGuard.admit({ ...message, placement })) ??
      this.#history.refuse(message.seen, "a caller") ??
      this.#refuseSeen(message);
    const reply = refusal === undefined ? await this.#source.step(message) : { ok: false as const, refusal };
    await this.#ports.sql.flush();
    return reply;
  }

  /**
   * Drops the copies that an aborted growth has sent here (G1). The alarm deletes what is left. If it was
   * lost, the next messages of the cron do (M3).
   */
  async #dropCopies(message: GrowthStep, growth: AbortedGrowth): Promise<Result<GrowthProgress>> {
    const refusal = await this.#placementGuard.begin(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const weight = WIPE_ROWS;
    const dropped = await this.#commits.submit("clean", () => this.#target.abort(growth), { weight });
    if (!dropped.ok) return dropped;
    this.#sweeper.arm();
    const { progress } = this.#source;
    return ok(this.#target.hasCopiesToDrop ? { ...progress, state: "cleaning" } : progress);
  }

  #refuseSeen({ sightings = [] }: GrowthStep): Refusal | undefined {
    for (const { cell, point } of sightings) {
      const refusal = this.#history.refuse(point, `the ledger of cell ${cell}`);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Returns how far this shard is with a growth. */
  growthProgress(message: Envelope): Promise<Result<GrowthProgress>> {
    return this.#read(message, async () => ok(this.#source.progress));
  }

  /** Stores names that another shard gives to this one (G5). This shard may have no placement yet. */
  async receive(message: Receive): Promise<Result<Received>> {
    const sender = `shard ${message.source}`;
    const { growth, seen, placement } = message;
    const unknown = await this.#placementGuard.begin(message);
    // Before the cut, this shard has nothing but copies, so it can get what it has lost again.
    const isReplaceable =
      this.#placementGuard.placement === undefined && placement === placementOf(growth.from);
    const hasSeen = seen === undefined || this.#history.includes(seen);
    if (unknown === undefined && isReplaceable && !hasSeen && !this.#history.isLost) {
      await this.#ports.sql.flush();
      return ok({ state: "unknown", point: this.#point, seen: null });
    }
    const refusal = unknown ?? this.#history.refuse(seen, sender);
    if (refusal !== undefined) {
      if (this.#history.isLost) await this.#ports.sql.flush();
      return { ok: false, refusal };
    }
    const reply = await this.#commits.submit("receive", () => this.#target.receive(message), {
      weight: 2 * message.names.length + 8,
    });
    // The moved holds need a sweep, and the first message may have found no alarm (M3).
    this.#sweeper.arm();
    return reply.ok ? ok({ ...reply.value, point: this.#point }) : reply;
  }

  /**
   * Changes to a placement that the directory has confirmed. A shard that has names to give away stops to
   * serve them in the same transaction, and then hands them over (G6).
   */
  async #changePlacement({ placement, growth }: Confirmed, adopt: () => void): Promise<void> {
    // There is no such shard.
    if (this.#index >= shardsOf(placement)) return;
    const before = this.#placementGuard.placement;
    const cut = growth?.phase === "cut" ? growth : undefined;
    if (before === undefined && (cut === undefined || this.#index >= cut.from)) {
      // A growth in which this shard got its names has ended, and it has only those of an aborted one.
      if (cut === undefined && this.#target.hasCopiesToDrop) this.#history.refuseBehind("the directory");
      this.#ports.sql.transaction(["confirm_placement"], () => {
        adopt();
        if (cut !== undefined) this.#target.expect(cut);
      });
      return;
    }
    if (before !== undefined && (cut === undefined || shardsOf(before) !== cut.from))
      // The growth has ended, which it does only after this shard has handed over: this shard went back.
      this.#history.refuseBehind("the directory");
    const fence = (): void => {
      if (this.#placementGuard.placement === placement) return;
      const missed = missedGrowth(before ?? placement, placement);
      adopt();
      this.#changes.reset();
      this.#source.fence(cut ?? missed);
    };
    // Also a shard that went back must not serve with an old placement after its loss is accepted (G3).
    await this.#commits.submit("fence", fence, { evenIfStopped: true });
    this.#queues.sendAway((key) => !this.#serves(key));
    void this.#handOver();
  }

  /** Nobody serves the names until they are handed over. If this fails, the alarm goes on. */
  async #handOver(): Promise<void> {
    this.#sweeper.arm();
    try {
      await this.#source.work(HAND_OVER_ROWS, { mostDeleted: 0 });
    } catch (error) {
      this.#ports.log("hand_over_failed", {
        shard: this.#index,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** Tells the shards that have not handed over what is in force, so that they do. */
  #wakeSources(): void {
    const { placement } = this.#placementGuard;
    if (placement === undefined || this.#waking !== undefined) return;
    const message = { version: MESSAGE_VERSION, placement, newShard: this.#index };
    const { inquiryTimeoutMs, fanOut: width } = this.#limits;
    this.#waking = fanOut(this.#target.missingSources, width, async (source) => {
      const answer = await ask(this.#ports.clock, inquiryTimeoutMs, () =>
        this.#peers.shard(source).ping(message),
      );
      if (answer.kind === "ok" && answer.value.handedOver !== undefined)
        this.#handedOverBy(source, answer.value.handedOver);
    }).finally(() => {
      this.#waking = undefined;
    });
  }

  /** A source has handed over, which it knows only if that was durable here. */
  #handedOverBy(source: number, handedOver: HandedOver): void {
    if (!this.#target.missingSources.includes(source)) return;
    if (this.#history.state !== "reconciling") this.#history.refuseBehind(`shard ${source}`);
    else
      void this.#commits.submit("receive", () => {
        // The source may have sent it again during the wait (M1).
        if (this.#target.missingSources.includes(source)) this.#target.giveUp(source, handedOver);
      });
  }

  #serves(key: BucketKey): boolean {
    return this.#target.serves(key) && this.#source.serves(key);
  }

  #servesAll(keys: readonly BucketKey[]): boolean {
    return this.#isWhole || keys.every((key) => this.#serves(key));
  }

  /** Whether the rows here are exactly the names that this shard serves (G8). */
  get #isWhole(): boolean {
    return this.#target.isWhole && this.#source.isWhole;
  }

  #notHere(): Refusal {
    this.#wakeSources();
    return refused(
      "UNAVAILABLE",
      `shard ${this.#index} is taking over or handing over names, because the deployment gets more shards; ` +
        "retry the call",
      { retryAfterMs: 1_000, isMoving: true },
    ).refusal;
  }

  async #answerAlways<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (this.#history.isLost) await this.#ports.sql.flush();
    return work();
  }

  /** Answers from the rows, once they are durable. */
  #read<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#answer(message, async () => {
      const reply = await work();
      await this.#ports.sql.flush();
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
      const open = this.#ranges.involving(message.cell).filter(mayBeCut);
      if (open.length > 0) {
        const verdicts = await this.#inquirer.inquire(open, message.traces);
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
    const refusal = (await this.#placementGuard.admit(message)) ?? this.#history.refuse(message.seen, sender);
    const done = refusal === undefined ? await work() : { ok: false as const, refusal };
    // During the wait, the names may have moved, and the loss may have been noticed (M1, G3, H4).
    const late = this.#placementGuard.refuseOutdated(message) ?? this.#history.refusal;
    const isLate = refusal === undefined && late !== undefined;
    const reply = isLate ? { ok: false as const, refusal: late } : done;
    // Whoever learns of the loss can rely on it, also after a crash (H4).
    if (this.#history.isLost) await this.#ports.sql.flush();
    return reply;
  }
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

/** A transfer is a part by itself: it touches many rows, and sees the holds of the parts before it. */
const decisionWeight = ({ keys, outcome, transfer }: Decision): number =>
  outcome === "PRECOMMITTED" ? PRECOMMIT_WEIGHT : transfer === undefined ? keys.length : MOVE_WEIGHT;
const prepareWeight = ({ ops, transfer }: Prepare): number =>
  transfer === undefined ? ops.length : CHUNK_ROWS;

const weightOf = ({ decisions, prepares }: Exchange): number =>
  decisions.reduce((sum, each) => sum + decisionWeight(each), 0) +
  prepares.reduce((sum, each) => sum + prepareWeight(each), 0) +
  1;

/**
 * Cuts a large message into parts, so that the messages of other cells get their turns in between. The leases
 * of a message are independent. The decisions stay before the prepares (N2).
 */
function partsOf(message: Exchange): Exchange[] {
  if (weightOf(message) <= CHUNK_ROWS) return [message];
  const decisions = chunksOf(message.decisions, CHUNK_ROWS, decisionWeight);
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
