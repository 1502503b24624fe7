import { Audit, type AuditAction, type AuditPage, type PullAudit } from "../../capabilities/audit/audit.ts";
import { cellRemoved } from "../../capabilities/removal/cell-removed.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import type {
  ApproveRemoval,
  Authorize,
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
  OpenLease,
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
  Told,
  PlacedLease,
} from "../messages.ts";
import { History } from "../history.ts";
import { Tables } from "../tables.ts";
import { watch } from "../metrics/counts.ts";
import { Histogram } from "../metrics/histogram.ts";
import { LedgerCounters } from "../metrics/ledger-counters.ts";
import type { LedgerMetrics } from "../metrics/messages.ts";
import type { Ports } from "../ports.ts";
import type { ReportedStatus } from "../../capabilities/status/status.ts";
import { changedMeanwhile, ok, refused, type Refusal, type Result } from "../refusal.ts";
import type {
  DecideTransfer,
  ListTransfers,
  PrepareTransfer,
  ReportTransfer,
  Transfer,
  TransferCall,
  TransferPage,
} from "../../capabilities/transfer/messages.ts";
import type { TransferParty } from "../../capabilities/transfer/range.ts";
import type { Peers, LedgerCalls } from "../methods.ts";
import { PlacementGuard } from "../placement-guard.ts";
import { Scrub } from "../../capabilities/scrub/scrub.ts";
import { Begins, keyRefusal, leaseIdReused, rolledBack } from "./begins.ts";
import { Contradictions } from "../../capabilities/status/contradictions.ts";
import { Decisions } from "./decisions.ts";
import { Deliveries } from "./deliveries.ts";
import { answerQuestion } from "./inquiry.ts";
import { knowledgeOf } from "../../capabilities/loss/knowledge.ts";
import { isRebuilt, LedgerReconciler, replayRefusal } from "../../capabilities/loss/ledger.ts";
import { LeaseAudit } from "../../capabilities/audit/lease-audit.ts";
import { ShardLinks } from "./shard-links.ts";
import { LedgerScrub } from "../../capabilities/scrub/ledger.ts";
import { OldOutcomes } from "./old-outcomes.ts";
import { Positions, positionAt } from "./position.ts";
import { Pruner, type Pruned } from "./prune.ts";
import { Removal } from "../../capabilities/removal/ledger.ts";
import { ledgerSchema } from "./schema.ts";
import { ReadLimiter } from "../../capabilities/read-limit/ledger.ts";
import { SeenDirectory } from "../../capabilities/loss/seen-directory.ts";
import { Renewals } from "../../capabilities/renewals/ledger.ts";
import { StatusReports } from "../../capabilities/status/ledger.ts";
import { LedgerStore, type LeaseRow } from "./store.ts";
import { TransferStore } from "../../capabilities/transfer/ledger-store.ts";
import { Transfers } from "../../capabilities/transfer/ledger.ts";

/** How far a ledger's clock can be behind that with which it answered a point that it has lost since (L7). */
const MAX_CLOCK_BEHIND_MS = 86_400_000;

/** The pause before work that one alarm did not finish is continued. */
const TIDY_AGAIN_MS = 1_000;

/**
 * Stores one cell's leases and coordinates its begins, commits and rollbacks. Every answer waits until the
 * rows that it was read from are durable, because a crash could still undo them (B5, C2).
 */
export class Ledger implements LedgerCalls {
  readonly #part: LedgerPart;

  constructor(cell: string, platform: Ports, limits: Limits, peers: Pick<Peers, "shard" | "directory">) {
    this.#part = makePart(cell, platform, limits, peers);
  }

  begin(request: BeginRequest): Promise<Result<BeginAnswer>> {
    const begun = this.#part.beginDurations.time(() => this.#begin(request));
    return watch(begun, (reply) => this.#part.counters.begun(reply));
  }

  #begin(request: BeginRequest): Promise<Result<BeginAnswer>> {
    return this.#answerCall(request, () => this.#beginLease(request));
  }

  async #beginLease(request: BeginRequest): Promise<Result<BeginAnswer>> {
    const row = this.#part.store.findWhole(request.lease);
    if (row !== undefined) {
      const another = row.fence === 1 ? undefined : otherBatch(row, request);
      if (another !== undefined) return { ok: false, refusal: another };
      if (row.state === "ROLLED_BACK") return this.#durable(rolledBack());
      return this.#durable(
        ok({ lease: this.#part.store.placedLeaseOf(row, this.#part.ports.clock.now()), created: false }),
      );
    }
    const { begins } = this.#part;
    const unfit = begins.isRunning(request.lease) ? undefined : begins.grantRefusal(request);
    if (unfit !== undefined) return { ok: false, refusal: unfit };
    const begun = begins.begin(request);
    if (!(begun instanceof Promise) && begun.reason === "LEDGER_FULL")
      this.#part.deliveries.wakeWithin(TIDY_AGAIN_MS);
    return begun instanceof Promise ? begun : { ok: false, refusal: begun };
  }

  /** Prepares a transfer to this cell: holds a scope of another cell on all shards (Y1). */
  prepareTransfer(request: PrepareTransfer): Promise<Result<Transfer>> {
    return this.#answerTransfer(request, async () => {
      const known = this.#part.transfers.preparedBefore(request);
      if (known !== undefined) return known;
      const begin = this.#part.transfers.beginOf(request, this.#part.begins.isRunning(request.transfer));
      if (!begin.ok) return begin;
      return this.#part.transfers.prepared(await this.#beginLease(begin.value), request);
    });
  }

  /** Says that the destination takes the claims of a transfer. */
  acceptTransfer(call: TransferCall): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, () => this.#part.transfers.accept(call));
  }

  /** Stores what one of the two cells has in its rows. */
  reportTransfer(call: ReportTransfer): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, () => this.#part.transfers.report(call));
  }

  /** Cuts or aborts a transfer. */
  decideTransfer(call: DecideTransfer): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, () => this.#part.transfers.decide(call));
  }

  getTransfer(call: TransferCall): Promise<Result<Transfer>> {
    return this.#answerTransfer(call, async () => this.#part.transfers.find(call));
  }

  listTransfers(call: ListTransfers): Promise<Result<TransferPage>> {
    return this.#answerTransfer(call, async () => ok(this.#part.transfers.list(call)));
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
    return this.#answer(call, durably, `cell ${this.#part.cell}`, () =>
      call.party === "to" ? this.#callRefusal(call) : undefined,
    );
  }

  /** Nobody waits for the answer to a begin any more (B11). */
  giveUp(message: GiveUp): Promise<Result<null>> {
    return this.#answer(message, async () => {
      this.#part.begins.giveUp(message.lease, message.call);
      return ok(null);
    });
  }

  decide(request: DecideRequest): Promise<Result<PlacedLease>> {
    const decided = this.#part.decisionDurations.time(() =>
      this.#answerCall(request, () => this.#part.decisions.decide(request)),
    );
    return watch(decided, (reply) => this.#part.counters.answeredDecision(reply));
  }

  /** Stores that the cell still works on a lease (C8). */
  renew(request: RenewRequest): Promise<Result<Lease>> {
    return this.#answerCall(request, () => this.#part.renewals.renew(request));
  }

  getLease(request: LeaseRequest): Promise<Result<Lease>> {
    return this.#answerCall(request, async () => {
      const row = this.#part.store.findWhole(request.lease);
      if (row === undefined || row.transfer !== null)
        return refused("NOT_FOUND", "this cell has no lease with this id");
      return this.#durable(ok(this.#part.store.leaseOf(row, this.#part.ports.clock.now())));
    });
  }

  /**
   * Lists granted leases, complete as of this call (R1). It reads only this ledger's rows, which are
   * authoritative.
   */
  listLeases(request: ListLeasesRequest): Promise<Result<LeasePage>> {
    return this.#answerCall(request, async () => {
      const read = this.#part.ports.randomness.uuid();
      const refusal = this.#part.reads.start(read, request.caller.keyId);
      if (refusal !== undefined) return { ok: false, refusal };
      try {
        return await this.#list(request);
      } finally {
        this.#part.reads.end(read);
      }
    });
  }

  #list(request: ListLeasesRequest): Promise<Result<LeasePage>> {
    const after = Math.max(request.afterPosition, positionAt(request.createdAfterMs) - 1);
    const rows = this.#part.store.granted(after, request.limit + 1);
    const page = rows.slice(0, request.limit);
    const now = this.#part.ports.clock.now();
    const nextPosition = rows.length > page.length ? (page.at(-1)?.position ?? 0) : 0;
    return this.#durable(ok({ leases: page.map((row) => this.#part.store.leaseOf(row, now)), nextPosition }));
  }

  /** Checks whether the caller's key is valid, and counts reads that the shards answer. */
  authorize(request: Authorize): Promise<Result<null>> {
    return this.#answerCall(request, async () => {
      const { read, caller } = request;
      const refusal = read === undefined ? undefined : this.#part.reads.start(read, caller.keyId);
      return refusal === undefined ? ok(null) : { ok: false, refusal };
    });
  }

  endRead(message: EndRead): Promise<Result<null>> {
    return this.#answer(message, async () => {
      this.#part.reads.end(message.read);
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
        const lost = this.#part.history.refuseAttempts(incarnations, `shard ${message.shard}`);
        if (lost !== undefined) return { ok: false, refusal: lost };
        const verdicts = message.questions.map((question) =>
          answerQuestion(this.#part.store, this.#part.begins, this.#part.history, message.shard, question),
        );
        for (const [index, { lease }] of message.questions.entries())
          if (verdicts[index] === "granted") this.#part.deliveries.noteAsked(lease);
        await this.#part.ports.sql.flush();
        return ok({ verdicts, point: this.#part.history.point ?? null });
      },
      `shard ${message.shard}`,
    );
  }

  pull(message: Pull): Promise<Result<PullAnswer>> {
    return this.#answer(
      message,
      async () => {
        const now = this.#part.ports.clock.now();
        const { after, limit } = message;
        const rows = this.#part.store.granted(after, limit + 1, message.through ?? undefined);
        const page = rows.slice(0, limit);
        const through = rows.length > limit ? (page.at(-1)?.position ?? after) : message.through;
        const open = new Set(page.map(({ position }) => position));
        const known = new Map(message.has);
        const lacking = page.filter(({ position, lease }) => known.get(position) !== lease);
        return this.#durable(
          ok({
            point: this.#part.history.pointOfRows(this.#part.positions.last) ?? null,
            granted: lacking.map((row): OpenLease => {
              const { lease, createdAtMs, counts } = this.#part.store.leaseOf(row, now);
              return { lease, createdPosition: row.position, createdAtMs, counts };
            }),
            decided: [...known.keys()].filter(
              (position) => (through === null || position <= through) && !open.has(position),
            ),
            through,
            directory: this.#part.directory.point ?? null,
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
      if (message.isRemoved === true && this.#part.store.cellState() !== "REMOVED") {
        const refusal = this.#part.history.refuseBehind("the directory");
        if (refusal !== undefined) return { ok: false, refusal };
      }
      this.#part.links.tellAll();
      if (message.directory !== undefined) this.#part.directory.learn(message.directory);
      const { total } = await this.#tidy();
      return ok({
        pruned: total,
        state: this.#part.store.cellState(),
        reported: this.#part.statusReports.last,
        contradictions: this.#part.contradictions.seen,
        unapplied: this.#part.deliveries.unapplied,
        staleLeases: this.#part.begins.counts(this.#part.ports.clock.now()).staleLeases,
        auditEntries: this.#part.audit.count,
        scrub: this.#part.scrub.work,
        directory: this.#part.directory.point ?? null,
        removed: this.#part.removal.end,
      });
    });
  }

  /** Returns the newest point of each shard that this ledger has seen, for the shards to check (G7). */
  seenShards(message: Envelope): Promise<Result<ShardPoints>> {
    return this.#answer(message, async () => ok(Object.fromEntries(this.#part.links.points)));
  }

  status(message: Envelope): Promise<Result<CellStatus>> {
    return this.#answer(message, async () => {
      return this.#durable(
        ok({
          cell: this.#part.cell,
          state: this.#part.store.cellState(),
          stateVersion: this.#part.store.number("cell_state_version"),
          stateSetAtMs: this.#part.store.number("cell_state_set_at_ms"),
          outstandingLeases: this.#part.begins.outstanding,
          unappliedDecisions: this.#part.deliveries.unapplied,
          storedBytes: this.#part.ports.sql.sizeBytes(),
          position: this.#part.positions.last,
          removal: this.#part.removal.stored,
          reported: this.#part.statusReports.last,
        }),
      );
    });
  }

  /** Stores what the cell says of itself. */
  reportStatus(message: ReportStatus): Promise<Result<ReportedStatus>> {
    return this.#answerCall(message, () => this.#part.statusReports.store(message));
  }

  /** Returns what the cell said of itself last. */
  reportedStatus(message: CellCall): Promise<Result<ReportedStatus | null>> {
    return this.#answerCall(message, async () => this.#durable(ok(this.#part.statusReports.last)));
  }

  /**
   * Returns the current state of each lease, and when it was granted and renewed, so that the stale listing
   * can leave out decided, renewed and young leases. Null: the ledger does not know the lease, or has
   * forgotten it.
   */
  leaseStates(message: Envelope & { leases: string[] }): Promise<Result<(LeaseStatus | null)[]>> {
    const statusOf = (lease: string): LeaseStatus | null => {
      const row = this.#part.store.find(lease);
      if (row === undefined) return null;
      const { createdAtMs, renewedAtMs = null } = this.#part.store.leaseOf(row, 0);
      return { state: row.state, createdAtMs, renewedAtMs };
    };
    return this.#answer(message, async () => this.#durable(ok(message.leases.map(statusOf))));
  }

  setState(message: SetState): Promise<Result<null>> {
    return this.#answer(message, async () => {
      const reply = await this.#part.commits.submit("set_state", (): Result<null> => {
        const isCurrent = message.stateVersion === this.#part.store.number("cell_state_version");
        if (!isCurrent && message.state !== this.#part.store.cellState())
          return changedMeanwhile(`cell ${this.#part.cell}`);
        const full = this.#part.audit.refusal;
        if (full !== undefined) return { ok: false, refusal: full };
        const before = this.#part.store.cellState();
        if (before === "REMOVED") return cellRemoved(this.#part.cell);
        if (before === "REMOVING")
          return refused(
            "FAILED_PRECONDITION",
            `cell ${this.#part.cell} is being removed; go on with the steps`,
            { reason: "CELL_REMOVING" },
          );
        // A change that keeps the state also makes a new version, so that messages sent before it are refused
        // afterwards (A2).
        this.#part.store.changeCellState(message.state, this.#part.positions, this.#part.ports.clock.now());
        if (message.state !== before) this.#auditState(message, before);
        return ok(null);
      });
      this.#part.begins.endUnfitWaits();
      return reply;
    });
  }

  approveRemoval(message: ApproveRemoval): Promise<Result<null>> {
    return this.#answer(message, () => this.#part.removal.approve(message));
  }

  /** Releases some of the cell's claims. The last step marks the cell as removed. */
  removalStep(message: RemovalStep): Promise<Result<RemovalProgress>> {
    return this.#answer(message, () => this.#part.removal.step(message));
  }

  /**
   * Revokes a key of the cell. Every call of a cell is checked here, so the key is refused once the
   * revocation is durable (A1).
   */
  revoke(message: RevokeCellKey): Promise<Result<null>> {
    return this.#answer(message, async () => {
      const reply = await this.#part.commits.submit("revoke_cell_key", () => this.#revoke(message));
      this.#part.begins.endUnfitWaits();
      return reply;
    });
  }

  #revoke({ operator, keyId, expiresAtMs }: RevokeCellKey): Result<null> {
    const full = this.#part.audit.refusal;
    if (full !== undefined) return { ok: false, refusal: full };
    const wasRevoked = this.#part.store.isRevoked(keyId) || expiresAtMs <= this.#part.store.refusedThroughMs;
    this.#part.store.takePosition(this.#part.positions, this.#part.ports.clock.now());
    this.#part.store.revoke([{ keyId, expiresAtMs }], this.#part.limits.maxRevokedKeys);
    if (!wasRevoked)
      this.#part.audit.append(operator, {
        action: "revoke_key",
        cell: this.#part.cell,
        target: keyId,
        before: { is_revoked: false },
        after: { is_revoked: true },
      });
    return ok(null);
  }

  #auditState({ operator, state }: SetState, before: CellState): void {
    this.#part.audit.append(operator, {
      action: stateAction(before, state),
      cell: this.#part.cell,
      target: this.#part.cell,
      before: { state: before },
      after: { state },
    });
  }

  /** Returns the audit entries that were not copied yet, and drops those that were (O2). */
  pullAudit(message: PullAudit): Promise<Result<AuditPage>> {
    return this.#answer(message, async () => {
      const { copied, limit } = message;
      if (copied !== null)
        await this.#part.commits.submit("forget_audit", () => this.#part.audit.forget(copied));
      return this.#durable(ok(this.#part.audit.page(limit)));
    });
  }

  /** Checks the next leases of this ledger, or the first ones (Z1). */
  scrub(message: ScrubStep): Promise<Result<ScrubStatus>> {
    return this.#answer(message, async () => this.#durable(await this.#part.scrub.step(message)));
  }

  get tables(): Tables {
    return this.#part.tables;
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    const { point } = this.#part.history;
    return { ...(point === undefined ? {} : { point }), shards: this.#part.links.takeNews() };
  }

  async alarm(): Promise<void> {
    await this.#tidy();
  }

  /** Delivers decisions that are due, and prunes (S1). The work is bounded; an alarm continues it. */
  async #tidy(): Promise<Pruned> {
    // A ledger that has gone back in time changes nothing (H4).
    if (this.#part.history.isLost) return { total: 0, more: false };
    await this.#part.deliveries.deliverDue(this.#part.commits);
    const pruned = await this.#part.pruner.prune();
    if (pruned.more) this.#part.deliveries.wakeWithin(TIDY_AGAIN_MS);
    return pruned;
  }

  // The calls below are also answered by a ledger that has gone back in time.

  /** Returns what this ledger knows of its own history. */
  part(message: Envelope): Promise<Result<PartStatus>> {
    return this.#answerAlways(message, async () => ok(this.#part.history.status));
  }

  /** Returns what this instance has counted. It reads the oldest 1,000 leases at most, and writes nothing. */
  metrics(message: Envelope): Promise<Result<LedgerMetrics>> {
    return this.#answerAlways(message, async () =>
      ok({
        startedAtMs: this.#part.startedAtMs,
        state: this.#part.history.state,
        sizeBytes: this.#part.ports.sql.sizeBytes(),
        waitingWrites: this.#part.commits.waiting,
        scrub: this.#part.scrub.metrics,
        cellState: this.#part.store.cellState(),
        ...this.#part.begins.counts(this.#part.ports.clock.now()),
        ...this.#part.transfers.counts(this.#part.ports.clock.now()),
        unappliedDecisions: this.#part.deliveries.unapplied,
        oldestUnappliedMs: this.#part.deliveries.oldestMs(this.#part.ports.clock.now()),
        reported: this.#part.statusReports.last,
        ...this.#part.counters.counts(),
        beginDurations: this.#part.beginDurations.durations,
        decisionDurations: this.#part.decisionDurations.durations,
        exchangeDurations: this.#part.links.durations.durations,
      }),
    );
  }

  /** Returns what the scrub has found. */
  scrubStatus(message: Envelope): Promise<Result<ScrubStatus>> {
    return this.#answerAlways(message, async () => this.#durable(ok(this.#part.scrub.status)));
  }

  /** Rebuilds the leases that this ledger has forgotten, and accepts its loss (H7). */
  reconcile(message: ReconcileLedger): Promise<Result<LedgerReconciliation>> {
    return this.#answerAlways(message, () => this.#part.reconciler.reconcile(message));
  }

  /** Returns what this ledger knows of a shard that has gone back in time (H6). */
  knowledge(message: KnowledgeRequest): Promise<Result<Knowledge>> {
    return this.#answerAlways(message, async () => {
      const seen = this.#part.links.points.get(message.shard);
      return this.#durable(
        ok(knowledgeOf(this.#part.store, seen, this.#part.limits.outstandingLeases, message)),
      );
    });
  }

  async #answerAlways<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const refusal = await this.#part.placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (this.#part.history.isLost) await this.#part.ports.sql.flush();
    return work();
  }

  /** Carries out the call of a cell or an operator. */
  #answerCall<T>(call: CellCall, work: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#answer(call, work, `cell ${this.#part.cell}`, () => this.#callRefusal(call));
  }

  /**
   * Returns why a call is refused before its point is compared, so that neither a revoked key nor an
   * impossible point can make the ledger refuse everything (H4, L7).
   */
  #callRefusal({ caller, seen }: CellCall): Refusal | undefined {
    const present = positionAt(this.#part.ports.clock.now());
    const margin = positionAt(MAX_CLOCK_BEHIND_MS);
    return keyRefusal(this.#part.store, caller) ?? this.#part.history.refuseImpossible(seen, present, margin);
  }

  /** Carries out a message, unless it does not fit or its sender has seen more than this ledger has (H4). */
  async #answer<T>(
    message: Envelope,
    work: () => Promise<Result<T>>,
    sender = "a caller",
    unfit: () => Refusal | undefined = () => undefined,
  ): Promise<Result<T>> {
    const refusal =
      (await this.#part.placementGuard.admit(message)) ??
      unfit() ??
      this.#part.history.refuse(message.seen, sender);
    if (refusal === undefined && message.shards !== undefined) this.#part.links.learn(message.shards);
    const reply = refusal === undefined ? await work() : { ok: false as const, refusal };
    // The loss may have been noticed during the wait (M1, H4).
    const { refusal: lost } = this.#part.history;
    if (lost === undefined) return reply;
    // Whoever learns of the loss can rely on it, also after a crash (H4).
    return this.#durable({ ok: false, refusal: refusal ?? lost });
  }

  async #durable<T>(reply: Result<T>): Promise<Result<T>> {
    await this.#part.ports.sql.flush();
    return reply;
  }
}

type LedgerPart = ReturnType<typeof makePart>;

/** Makes the parts in their order. One that needs a later one does not compile, except in a closure. */
function makePart(cell: string, platform: Ports, limits: Limits, peers: Pick<Peers, "shard" | "directory">) {
  let isHalted = false;
  const ports: Ports = {
    ...platform,
    halt: (reason) => {
      isHalted = true;
      platform.halt(reason);
    },
  };
  const tables = new Tables(ports, ledgerSchema);
  const startedAtMs = ports.clock.now();
  const beginDurations = new Histogram(ports.clock);
  const decisionDurations = new Histogram(ports.clock);
  const counters = new LedgerCounters();
  const store = new LedgerStore(ports.sql, cell);
  const transferStore = new TransferStore(ports.sql);
  const placementGuard = new PlacementGuard(ports, limits, peers, {
    firstUse: () => deliveries.start(),
    cell,
  });
  const positions = new Positions(store.lastPosition());
  const history = new History(ports, `the ledger of cell ${cell}`, positions.last);
  const stored = { cell, ports, limits, peers, store, transferStore, placementGuard, positions, history };
  const links = new ShardLinks({ ...stored, isHalted: () => isHalted });
  const directory = new SeenDirectory(store);
  const deliveries: Deliveries = new Deliveries({ ...stored, links, directory });
  const reads = new ReadLimiter(ports.clock, limits);
  const commits = new GroupCommit(
    ports,
    history,
    () => history.raise(),
    () => history.madeDurable(positions.last),
  );
  const contradictions = new Contradictions(ports);
  const statusReports = new StatusReports(ports, limits, contradictions, history);
  const audit = new Audit(ports, limits, `the ledger of cell ${cell}`);
  const leaseAudit = new LeaseAudit(audit, cell);
  const sending = { ...stored, links, directory, deliveries, commits, contradictions, statusReports, audit };
  const oldOutcomes = new OldOutcomes(stored);
  const begins = new Begins({ ...sending, leaseAudit, counters, oldOutcomes });
  const decisions = new Decisions({ ...sending, leaseAudit, counters, begins });
  const part = { ...sending, counters, begins, decisions, oldOutcomes };
  const leases = new LedgerScrub(part);
  return {
    ...part,
    tables,
    startedAtMs,
    beginDurations,
    decisionDurations,
    reads,
    transfers: new Transfers(part),
    renewals: new Renewals(ports, store, positions, history),
    removal: new Removal(part),
    pruner: new Pruner(part),
    reconciler: new LedgerReconciler(part),
    scrub: new Scrub(ports, limits, history, (cursor, step) => leases.check(cursor, step)),
  };
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
