import { Audit, type AuditAction, type AuditPage, type PullAudit } from "../audit.ts";
import { cellRemoved } from "../cell-removed.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type {
  Authorize,
  CancelRemoval,
  BeginAnswer,
  BeginRequest,
  CellCall,
  CellState,
  CellStatus,
  DecideRequest,
  EndRead,
  Envelope,
  GiveUp,
  Inquiry,
  InquiryAnswer,
  Knowledge,
  KnowledgeRequest,
  Lease,
  LeasePage,
  LeaseRequest,
  LeaseStatus,
  LedgerReconciliation,
  ListLeasesRequest,
  Maintain,
  MaintainAnswer,
  PartStatus,
  Pull,
  PullAnswer,
  ReconcileLedger,
  RemovalProgress,
  RemovalStep,
  RenewRequest,
  ReportStatus,
  RevokeCellKey,
  ScrubStatus,
  ScrubStep,
  ShardPoints,
  SetState,
  StartRemoval,
  Told,
  PlacedLease,
} from "../messages.ts";
import { History } from "../history.ts";
import { migrate } from "../meta.ts";
import { watch } from "../metrics/counts.ts";
import { Histogram } from "../metrics/histogram.ts";
import { LedgerCounters } from "../metrics/ledger-counters.ts";
import type { LedgerMetrics } from "../metrics/messages.ts";
import type { Ports } from "../ports.ts";
import type { ReportedStatus } from "../status.ts";
import { changedMeanwhile, ok, refused, type Refusal, type Result } from "../refusal.ts";
import type {
  DecideTransfer,
  ListTransfers,
  PrepareTransfer,
  ReportTransfer,
  Transfer,
  TransferCall,
  TransferPage,
} from "../transfer/messages.ts";
import type { TransferParty } from "../transfer/range.ts";
import type { Peers, LedgerCalls } from "../methods.ts";
import { PlacementGuard } from "../placement-guard.ts";
import { Scrub } from "../scrub/scrub.ts";
import { Begins, keyRefusal, leaseIdReused, rolledBack } from "./begins.ts";
import { Contradictions } from "./contradictions.ts";
import { Decisions } from "./decisions.ts";
import { Deliveries } from "./deliveries.ts";
import { answerQuestion } from "./inquiry.ts";
import { knowledgeOf } from "./knowledge.ts";
import { isRebuilt, LedgerReconciler, replayRefusal } from "./reconcile.ts";
import { LeaseAudit } from "./lease-audit.ts";
import { ShardLinks } from "./shard-links.ts";
import { LedgerScrub } from "./ledger-scrub.ts";
import { Positions, positionAt } from "./position.ts";
import { Pruner, type Pruned } from "./prune.ts";
import { Removal } from "./removal.ts";
import { ledgerSchema } from "./schema.ts";
import { ReadLimiter } from "./read-limiter.ts";
import { SeenDirectory } from "./seen-directory.ts";
import { Renewals } from "./renewals.ts";
import { StatusReports } from "./status-reports.ts";
import { LedgerStore, type LeaseRow } from "./store.ts";
import { TransferStore } from "./transfer-store.ts";
import { Transfers } from "./transfers.ts";

/** How far a ledger's clock can be behind that with which it answered a point that it has lost since (L7). */
const MAX_CLOCK_BEHIND_MS = 86_400_000;

/** The pause before work that one alarm did not finish is continued. */
const TIDY_AGAIN_MS = 1_000;

/**
 * Stores one cell's leases and coordinates its begins, commits and rollbacks. Every answer waits until the
 * rows that it was read from are durable, because a crash could still undo them (B5, C2).
 */
export class Ledger implements LedgerCalls {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #cell: string;
  readonly #store: LedgerStore;
  readonly #history: History;
  readonly #positions: Positions;
  readonly #placementGuard: PlacementGuard;
  readonly #commits: GroupCommit;
  readonly #begins: Begins;
  readonly #deliveries: Deliveries;
  readonly #decisions: Decisions;
  readonly #links: ShardLinks;
  readonly #directory: SeenDirectory;
  readonly #reads: ReadLimiter;
  readonly #pruner: Pruner;
  readonly #reconciler: LedgerReconciler;
  readonly #scrub: Scrub;
  readonly #renewals: Renewals;
  readonly #removal: Removal;
  readonly #transfers: Transfers;
  readonly #audit: Audit;
  readonly #contradictions: Contradictions;
  readonly #statusReports: StatusReports;
  readonly #counters = new LedgerCounters();
  readonly #beginDurations: Histogram;
  readonly #decisionDurations: Histogram;
  readonly #startedAtMs: number;
  #halted = false;

  constructor(cell: string, platform: Ports, limits: Limits, peers: Pick<Peers, "shard" | "directory">) {
    const ports: Ports = {
      ...platform,
      halt: (reason) => {
        this.#halted = true;
        platform.halt(reason);
      },
    };
    migrate(ports.sql, ledgerSchema);
    this.#ports = ports;
    this.#limits = limits;
    this.#cell = cell;
    this.#startedAtMs = ports.clock.now();
    this.#beginDurations = new Histogram(ports.clock);
    this.#decisionDurations = new Histogram(ports.clock);
    this.#store = new LedgerStore(ports.sql, cell);
    const transfers = new TransferStore(ports.sql);
    this.#placementGuard = new PlacementGuard(ports, limits, peers, {
      firstUse: () => this.#deliveries.start(),
      cell,
    });
    const positions = (this.#positions = new Positions(this.#store.lastPosition()));
    this.#history = new History(ports, `the ledger of cell ${cell}`, positions.last);
    const links = (this.#links = new ShardLinks(
      cell,
      this.#history,
      this.#store.shardPoints(),
      ports.clock,
      limits,
      this.#placementGuard,
      peers,
      () => this.#halted,
    ));
    this.#directory = new SeenDirectory(this.#store);
    this.#deliveries = new Deliveries(ports, limits, this.#store, links, this.#directory, cell);
    this.#reads = new ReadLimiter(ports.clock, limits);
    this.#commits = new GroupCommit(
      ports,
      this.#history,
      () => this.#history.raise(),
      () => this.#history.madeDurable(positions.last),
    );
    this.#contradictions = new Contradictions(ports);
    this.#statusReports = new StatusReports(ports, limits, this.#contradictions, this.#history);
    this.#audit = new Audit(ports, limits, `the ledger of cell ${cell}`);
    const leaseAudit = new LeaseAudit(this.#audit, cell);
    this.#begins = new Begins(
      ports,
      limits,
      this.#store,
      transfers,
      links,
      this.#commits,
      positions,
      this.#history,
      leaseAudit,
      this.#counters,
      cell,
    );
    this.#decisions = new Decisions(
      ports,
      limits,
      this.#store,
      this.#commits,
      positions,
      this.#begins,
      this.#deliveries,
      this.#counters,
      leaseAudit,
      this.#contradictions,
    );
    this.#transfers = new Transfers(
      cell,
      ports.clock,
      limits,
      this.#store,
      transfers,
      this.#commits,
      this.#history,
      this.#decisions,
      this.#deliveries,
      this.#audit,
      this.#links,
    );
    this.#renewals = new Renewals(ports, this.#store, this.#history);
    this.#removal = new Removal(
      cell,
      ports,
      limits,
      this.#store,
      transfers,
      this.#commits,
      positions,
      this.#begins,
      this.#decisions,
      this.#deliveries,
      links,
      this.#audit,
      this.#statusReports,
      peers,
    );
    this.#pruner = new Pruner(ports, limits, this.#store, this.#commits, this.#begins, this.#decisions);
    this.#reconciler = new LedgerReconciler(
      cell,
      ports,
      limits,
      this.#store,
      this.#history,
      this.#commits,
      positions,
      this.#begins,
      transfers,
      this.#deliveries,
      this.#audit,
      peers,
      this.#placementGuard,
    );
    const leases = new LedgerScrub(cell, ports.clock, limits, this.#store, this.#deliveries, links, peers);
    this.#scrub = new Scrub(ports, limits, this.#history, (cursor, step) => leases.check(cursor, step));
  }

  begin(request: BeginRequest): Promise<Result<BeginAnswer>> {
    const begun = this.#beginDurations.time(() => this.#begin(request));
    return watch(begun, (reply) => this.#counters.begun(reply));
  }

  #begin(request: BeginRequest): Promise<Result<BeginAnswer>> {
    return this.#answerCall(request, () => this.#beginLease(request));
  }

  async #beginLease(request: BeginRequest): Promise<Result<BeginAnswer>> {
    const row = this.#store.findWhole(request.lease);
    if (row !== undefined) {
      const another = row.fence === 1 ? undefined : otherBatch(row, request);
      if (another !== undefined) return { ok: false, refusal: another };
      if (row.state === "ROLLED_BACK") return this.#durable(rolledBack());
      return this.#durable(
        ok({ lease: this.#store.placedLeaseOf(row, this.#ports.clock.now()), created: false }),
      );
    }
    const unfit = this.#begins.isRunning(request.lease) ? undefined : this.#begins.grantRefusal(request);
    if (unfit !== undefined) return { ok: false, refusal: unfit };
    const begun = this.#begins.begin(request);
    if (!(begun instanceof Promise) && begun.reason === "LEDGER_FULL")
      this.#deliveries.wakeWithin(TIDY_AGAIN_MS);
    return begun instanceof Promise ? begun : { ok: false, refusal: begun };
  }

  /** Prepares a transfer to this cell: holds a scope of another cell on all shards (Y1). */
  prepareTransfer(request: PrepareTransfer): Promise<Result<Transfer>> {
    return this.#answerTransfer(request, async () => {
      const known = this.#transfers.preparedBefore(request);
      if (known !== undefined) return known;
      const begin = this.#transfers.beginOf(request, this.#begins.isRunning(request.transfer));
      if (!begin.ok) return begin;
      return this.#transfers.prepared(await this.#beginLease(begin.value), request);
    });
  }

  /** Says that the destination takes the claims of a transfer. */
  acceptTransfer(call: TransferCall): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, () => this.#transfers.accept(call));
  }

  /** Stores what one of the two cells has in its rows. */
  reportTransfer(call: ReportTransfer): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, () => this.#transfers.report(call));
  }

  /** Cuts or aborts a transfer. */
  decideTransfer(call: DecideTransfer): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, () => this.#transfers.decide(call));
  }

  getTransfer(call: TransferCall): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, async () => this.#transfers.find(call));
  }

  listTransfers(call: ListTransfers): Promise<Result<TransferPage>> {
    return this.#answerTransfer(call, async () => ok(this.#transfers.list(call)));
  }

  /**
   * Carries out a call about transfers. The keys of the source are checked by its own ledger, which the
   * Worker has asked before (Y7). The answer shows rows that another call may just have written, such as a
   * cut, so it waits until these are durable (C2).
   */
  #answerTransfer<T>(
    call: CellCall & { party: TransferParty },
    work: () => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const durably = async (): Promise<Result<T>> => this.#durable(await work());
    return this.#answer(call, durably, `cell ${this.#cell}`, () =>
      call.party === "to" ? this.#callRefusal(call) : undefined,
    );
  }

  /** Nobody waits for the answer to a begin any more (B11). */
  giveUp(message: GiveUp): Promise<Result<null>> {
    return this.#answer(message, async () => {
      this.#begins.giveUp(message.lease, message.call);
      return ok(null);
    });
  }

  decide(request: DecideRequest): Promise<Result<PlacedLease>> {
    const decided = this.#decisionDurations.time(() =>
      this.#answerCall(request, () => this.#decisions.decide(request)),
    );
    return watch(decided, (reply) => this.#counters.answeredDecision(reply));
  }

  /** Stores that the cell still works on a lease (C8). */
  renew(request: RenewRequest): Promise<Result<Lease>> {
    return this.#answerCall(request, () => this.#renewals.renew(request));
  }

  getLease(request: LeaseRequest): Promise<Result<Lease>> {
    return this.#answerCall(request, async () => {
      const row = this.#store.findWhole(request.lease);
      if (row === undefined || row.transfer !== null)
        return refused("NOT_FOUND", "this cell has no lease with this id");
      return this.#durable(ok(this.#store.leaseOf(row, this.#ports.clock.now())));
    });
  }

  /**
   * Lists granted leases, complete as of this call (R1). It reads only this ledger's rows, which are
   * authoritative.
   */
  listLeases(request: ListLeasesRequest): Promise<Result<LeasePage>> {
    return this.#answerCall(request, async () => {
      const read = this.#ports.randomness.uuid();
      const refusal = this.#reads.start(read, request.caller.keyId);
      if (refusal !== undefined) return { ok: false, refusal };
      try {
        return await this.#list(request);
      } finally {
        this.#reads.end(read);
      }
    });
  }

  #list(request: ListLeasesRequest): Promise<Result<LeasePage>> {
    const after = Math.max(request.afterPosition, positionAt(request.createdAfterMs) - 1);
    const rows = this.#store.granted(after, request.limit + 1);
    const page = rows.slice(0, request.limit);
    const now = this.#ports.clock.now();
    const nextPosition = rows.length > page.length ? (page.at(-1)?.position ?? 0) : 0;
    return this.#durable(ok({ leases: page.map((row) => this.#store.leaseOf(row, now)), nextPosition }));
  }

  /** Checks whether the caller's key is valid, and counts reads that the shards answer. */
  authorize(request: Authorize): Promise<Result<null>> {
    return this.#answerCall(request, async () => {
      const { read, caller } = request;
      const refusal = read === undefined ? undefined : this.#reads.start(read, caller.keyId);
      return refusal === undefined ? ok(null) : { ok: false, refusal };
    });
  }

  endRead(message: EndRead): Promise<Result<null>> {
    return this.#answer(message, async () => {
      this.#reads.end(message.read);
      return ok(null);
    });
  }

  /**
   * Answers a shard's inquiry, unless it shows that this ledger has lost the attempts of an instance (H4). It
   * reads rows and running begins in one turn, and answers once the rows are durable (B8).
   */
  inquire(message: Inquiry): Promise<Result<InquiryAnswer>> {
    return this.#answer(
      message,
      async () => {
        const incarnations = message.questions.map(({ incarnation }) => incarnation);
        const lost = this.#history.refuseAttempts(incarnations, `shard ${message.shard}`);
        if (lost !== undefined) return { ok: false, refusal: lost };
        const verdicts = message.questions.map((question) =>
          answerQuestion(this.#store, this.#begins, this.#history, message.shard, question),
        );
        await this.#ports.sql.flush();
        return ok({ verdicts, point: this.#history.point ?? null });
      },
      `shard ${message.shard}`,
    );
  }

  pull(message: Pull): Promise<Result<PullAnswer>> {
    return this.#answer(
      message,
      async () => {
        const now = this.#ports.clock.now();
        const { rows, more } = this.#store.changes(message.afterPosition, message.limit);
        return this.#durable(
          ok({
            point: this.#history.pointOfRows(this.#positions.last) ?? null,
            // A transfer is no lease of the cell for whoever reads the projection (Y1).
            changes: rows.flatMap((row) => (row.transfer === null ? [this.#store.changeOf(row, now)] : [])),
            throughPosition: rows.at(-1)?.position ?? message.afterPosition,
            more,
            directory: this.#directory.point ?? null,
          }),
        );
      },
      "the cron",
    );
  }

  /**
   * Called by the cron: resumes unfinished work whose alarm was lost (M3), and deletes outcomes that are old
   * enough.
   */
  maintain(message: Maintain): Promise<Result<MaintainAnswer>> {
    return this.#answer(message, async () => {
      // The directory was told only after the removal was durable here, so this ledger went back (X5, H4).
      if (message.isRemoved === true && this.#store.cellState() !== "REMOVED") {
        const refusal = this.#history.refuseBehind("the directory");
        if (refusal !== undefined) return { ok: false, refusal };
      }
      this.#links.tellAll();
      if (message.directory !== undefined) this.#directory.learn(message.directory);
      this.#pruner.pulled(message.pulledPosition);
      const { total } = await this.#tidy();
      return ok({
        pruned: total,
        state: this.#store.cellState(),
        reported: this.#statusReports.last,
        contradictions: this.#contradictions.seen,
        unapplied: this.#deliveries.unapplied,
        sparedLeases: this.#store.sparedLeases(this.#ports.clock.now(), this.#limits.staleS * 1_000),
        auditEntries: this.#audit.count,
        scrub: this.#scrub.work,
        directory: this.#directory.point ?? null,
        removed: this.#removal.end,
      });
    });
  }

  /** Returns the newest point of each shard that this ledger has seen, for the shards to check (G7). */
  seenShards(message: Envelope): Promise<Result<ShardPoints>> {
    return this.#answer(message, async () => ok(Object.fromEntries(this.#links.points)));
  }

  status(message: Envelope): Promise<Result<CellStatus>> {
    return this.#answer(message, async () => {
      return this.#durable(
        ok({
          cell: this.#cell,
          state: this.#store.cellState(),
          stateVersion: this.#store.number("cell_state_version"),
          stateSetAtMs: this.#store.number("cell_state_set_at_ms"),
          outstandingLeases: this.#begins.outstanding,
          unappliedDecisions: this.#deliveries.unapplied,
          storedBytes: this.#ports.sql.sizeBytes(),
          position: this.#store.lastPosition(),
          removal: this.#store.removal ?? null,
          reported: this.#statusReports.last,
        }),
      );
    });
  }

  /** Stores what the cell says of itself. */
  reportStatus(message: ReportStatus): Promise<Result<ReportedStatus>> {
    return this.#answerCall(message, () => this.#statusReports.store(message));
  }

  /** Returns what the cell said of itself last. */
  reportedStatus(message: CellCall): Promise<Result<ReportedStatus | null>> {
    return this.#answerCall(message, async () => this.#durable(ok(this.#statusReports.last)));
  }

  /**
   * Returns the current state of each lease, and when it was granted and renewed, so that the stale listing
   * can leave out decided, renewed and young leases. Null: the ledger does not know the lease, or has
   * forgotten it.
   */
  leaseStates(message: Envelope & { leases: string[] }): Promise<Result<(LeaseStatus | null)[]>> {
    const statusOf = (lease: string): LeaseStatus | null => {
      const row = this.#store.find(lease);
      if (row === undefined) return null;
      const { createdAtMs, renewedAtMs = null } = this.#store.leaseOf(row, 0);
      return { state: row.state, createdAtMs, renewedAtMs };
    };
    return this.#answer(message, async () => this.#durable(ok(message.leases.map(statusOf))));
  }

  setState(message: SetState): Promise<Result<null>> {
    return this.#answer(message, async () => {
      const reply = await this.#commits.submit("set_state", (): Result<null> => {
        const isCurrent = message.stateVersion === this.#store.number("cell_state_version");
        if (!isCurrent && message.state !== this.#store.cellState())
          return changedMeanwhile(`cell ${this.#cell}`);
        const full = this.#audit.refusal;
        if (full !== undefined) return { ok: false, refusal: full };
        const before = this.#store.cellState();
        if (before === "REMOVED") return cellRemoved(this.#cell);
        if (before === "REMOVING")
          return refused(
            "FAILED_PRECONDITION",
            `cell ${this.#cell} is being removed; cancel that first, or go on with it`,
            { reason: "CELL_REMOVING" },
          );
        // A change that keeps the state also makes a new version, so that messages sent before it are refused
        // afterwards (A2).
        this.#store.changeCellState(message.state, this.#positions, this.#ports.clock.now());
        if (message.state !== before) this.#auditState(message, before);
        return ok(null);
      });
      this.#begins.endUnfitWaits();
      return reply;
    });
  }

  startRemoval(message: StartRemoval): Promise<Result<null>> {
    return this.#answer(message, () => this.#removal.start(message));
  }

  cancelRemoval(message: CancelRemoval): Promise<Result<null>> {
    return this.#answer(message, () => this.#removal.cancel(message));
  }

  /** Releases some of the cell's claims. The last step marks the cell as removed. */
  removalStep(message: RemovalStep): Promise<Result<RemovalProgress>> {
    return this.#answer(message, () => this.#removal.step(message));
  }

  /**
   * Revokes a key of the cell. Every call of a cell is checked here, so the key is refused once the
   * revocation is durable (A1).
   */
  revoke(message: RevokeCellKey): Promise<Result<null>> {
    return this.#answer(message, async () => {
      const reply = await this.#commits.submit("revoke_cell_key", () => this.#revoke(message));
      this.#begins.endUnfitWaits();
      return reply;
    });
  }

  #revoke({ operator, keyId, expiresAtMs }: RevokeCellKey): Result<null> {
    const full = this.#audit.refusal;
    if (full !== undefined) return { ok: false, refusal: full };
    const wasRevoked = this.#store.isRevoked(keyId) || expiresAtMs <= this.#store.refusedThroughMs;
    this.#store.takePosition(this.#positions, this.#ports.clock.now());
    this.#store.revoke([{ keyId, expiresAtMs }], this.#limits.maxRevokedKeys);
    if (!wasRevoked)
      this.#audit.append(operator, {
        action: "revoke_key",
        cell: this.#cell,
        target: keyId,
        before: { is_revoked: false },
        after: { is_revoked: true },
      });
    return ok(null);
  }

  #auditState({ operator, state }: SetState, before: CellState): void {
    this.#audit.append(operator, {
      action: stateAction(before, state),
      cell: this.#cell,
      target: this.#cell,
      before: { state: before },
      after: { state },
    });
  }

  /** Returns the audit entries that were not copied yet, and drops those that were (O2). */
  pullAudit(message: PullAudit): Promise<Result<AuditPage>> {
    return this.#answer(message, async () => {
      const { copied, limit } = message;
      if (copied !== null) await this.#commits.submit("forget_audit", () => this.#audit.forget(copied));
      return this.#durable(ok(this.#audit.page(limit)));
    });
  }

  /** Checks the next leases of this ledger, or the first ones (Z1). */
  scrub(message: ScrubStep): Promise<Result<ScrubStatus>> {
    return this.#answer(message, async () => this.#durable(await this.#scrub.step(message)));
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    const { point } = this.#history;
    return { ...(point === undefined ? {} : { point }), shards: this.#links.takeNews() };
  }

  async alarm(): Promise<void> {
    await this.#tidy();
  }

  /** Delivers decisions that are due, and prunes (S1). The work is bounded; an alarm continues it. */
  async #tidy(): Promise<Pruned> {
    // A ledger that has gone back in time changes nothing (H4).
    if (this.#history.isLost) return { total: 0, more: false };
    await this.#deliveries.deliverDue(this.#commits);
    const pruned = await this.#pruner.prune();
    if (pruned.more) this.#deliveries.wakeWithin(TIDY_AGAIN_MS);
    return pruned;
  }

  // The calls below are also answered by a ledger that has gone back in time.

  /** Returns what this ledger knows of its own history. */
  part(message: Envelope): Promise<Result<PartStatus>> {
    return this.#answerAlways(message, async () => ok(this.#history.status));
  }

  /** Returns what this instance has counted. It reads the oldest 1,000 leases at most, and writes nothing. */
  metrics(message: Envelope): Promise<Result<LedgerMetrics>> {
    return this.#answerAlways(message, async () =>
      ok({
        startedAtMs: this.#startedAtMs,
        state: this.#history.state,
        sizeBytes: this.#ports.sql.sizeBytes(),
        waitingWrites: this.#commits.waiting,
        scrub: this.#scrub.metrics,
        cellState: this.#store.cellState(),
        ...this.#begins.counts(this.#ports.clock.now()),
        ...this.#transfers.counts(this.#ports.clock.now()),
        unappliedDecisions: this.#deliveries.unapplied,
        oldestUnappliedMs: this.#deliveries.oldestMs(this.#ports.clock.now()),
        reported: this.#statusReports.last,
        ...this.#counters.counts(),
        beginDurations: this.#beginDurations.durations,
        decisionDurations: this.#decisionDurations.durations,
        exchangeDurations: this.#links.durations.durations,
      }),
    );
  }

  /** Returns what the scrub has found. */
  scrubStatus(message: Envelope): Promise<Result<ScrubStatus>> {
    return this.#answerAlways(message, async () => this.#durable(ok(this.#scrub.status)));
  }

  /** Rebuilds the leases that this ledger has forgotten, and accepts its loss (H7). */
  reconcile(message: ReconcileLedger): Promise<Result<LedgerReconciliation>> {
    return this.#answerAlways(message, () => this.#reconciler.reconcile(message));
  }

  /** Returns what this ledger knows of a shard that has gone back in time (H6). */
  knowledge(message: KnowledgeRequest): Promise<Result<Knowledge>> {
    return this.#answerAlways(message, async () => {
      const seen = this.#links.points.get(message.shard);
      return this.#durable(ok(knowledgeOf(this.#store, seen, this.#limits.outstandingLeases, message)));
    });
  }

  async #answerAlways<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (this.#history.isLost) await this.#ports.sql.flush();
    return work();
  }

  /** Carries out the call of a cell or an operator. */
  #answerCall<T>(call: CellCall, work: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#answer(call, work, `cell ${this.#cell}`, () => this.#callRefusal(call));
  }

  /**
   * Returns why a call is refused before its point is compared, so that neither a revoked key nor an
   * impossible point can make the ledger refuse everything (H4, L7).
   */
  #callRefusal({ caller, seen }: CellCall): Refusal | undefined {
    const present = positionAt(this.#ports.clock.now());
    const margin = positionAt(MAX_CLOCK_BEHIND_MS);
    return keyRefusal(this.#store, caller) ?? this.#history.refuseImpossible(seen, present, margin);
  }

  /** Carries out a message, unless it does not fit or its sender has seen more than this ledger has (H4). */
  async #answer<T>(
    message: Envelope,
    work: () => Promise<Result<T>>,
    sender = "a caller",
    unfit: () => Refusal | undefined = () => undefined,
  ): Promise<Result<T>> {
    const refusal =
      (await this.#placementGuard.admit(message)) ?? unfit() ?? this.#history.refuse(message.seen, sender);
    if (refusal === undefined && message.shards !== undefined) this.#links.learn(message.shards);
    const reply = refusal === undefined ? await work() : { ok: false as const, refusal };
    // The loss may have been noticed during the wait (M1, H4).
    const { refusal: lost } = this.#history;
    if (lost === undefined) return reply;
    // Whoever learns of the loss can rely on it, also after a crash (H4).
    return this.#durable({ ok: false, refusal: refusal ?? lost });
  }

  async #durable<T>(reply: Result<T>): Promise<Result<T>> {
    await this.#ports.sql.flush();
    return reply;
  }
}

/** The name of a change of a cell's state in the audit. */
function stateAction(before: CellState, after: CellState): AuditAction {
  if (after === "FROZEN") return "freeze_cell";
  if (after === "DRAINING") return "drain_cell";
  return before === "DRAINING" ? "undrain_cell" : "unfreeze_cell";
}

/** Returns why a begin is refused whose lease id is known with another batch (B2). */
function otherBatch(row: LeaseRow, request: BeginRequest): Refusal | undefined {
  if (isRebuilt(row)) return row.state === "ROLLED_BACK" ? undefined : replayRefusal(row, request);
  return row.payload_hash === request.payloadHash ? undefined : leaseIdReused();
}
