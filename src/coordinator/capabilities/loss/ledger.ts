import { ask } from "../../kernel/ask.ts";
import type { AuditTrail } from "../../kernel/audit-trail.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import { MAX_BELIEVED, type Instances } from "../../kernel/instances.ts";
import { abovePoints, POSITION_MARGIN, type History } from "./history.ts";
import type { Limits } from "../../../common/limits.ts";
import {
  heldAs,
  type BeginRequest,
  type CellState,
  type HistoryPoint,
  type Op,
} from "../../kernel/messages.ts";
import {
  type HeldOp,
  type HeldRange,
  type HoldPage,
  type LedgerReconciliation,
  type ListHolds,
  type RebuiltLeases,
  type ReconcileLedger,
} from "./messages.ts";
import type { HookLists } from "../../kernel/half.ts";
import type { LedgerHooks } from "../../kernel/ledger/hooks.ts";
import type { Peers } from "../../kernel/methods.ts";
import type { PlacementGuard } from "../../kernel/placement-guard.ts";
import { shardsOf } from "../../kernel/placement.ts";
import type { Answer, Ports } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { Begins } from "../../kernel/ledger/begins.ts";
import type { Deliveries } from "../../kernel/ledger/deliveries.ts";
import { decodeExecutions, encodeExecutions } from "../../kernel/ledger/executions.ts";
import { decodePayload, encodePayload } from "../../kernel/ledger/payload.ts";
import type { Positions } from "../../kernel/ledger/position.ts";
import { plainLease, type LedgerStore } from "../../kernel/ledger/store.ts";
import { encodeRange } from "../transfer/range.ts";
import type { LeaseRow } from "../../kernel/ledger/lease-table.ts";
import type { TransferStore } from "../transfer/ledger-store.ts";
import type { Slot } from "../../kernel/slot.ts";

/** The number of holds that a shard reads for one page. */
const HOLDS_PER_PAGE = 500;

/** Versions of the cell's state that a message from the time before the loss may name (A2). */
const STATE_VERSION_MARGIN = 1_000_000;

interface Findings {
  seen: HistoryPoint;
  rebuilt: RebuiltLeases[];
  leases: Set<string>;
  unreachable: number[];
}

interface Needs {
  readonly cell: string;
  readonly ports: Ports;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly history: History;
  readonly instances: Instances;
  readonly commits: GroupCommit;
  readonly positions: Positions;
  readonly begins: Begins;
  readonly deliveries: Deliveries;
  readonly audit: Slot<AuditTrail>;
  readonly peers: Pick<Peers, "shard">;
  readonly placementGuard: PlacementGuard;
  readonly transferStore: TransferStore;
  readonly hooks: HookLists<LedgerHooks>;
}

/**
 * Reconciles a ledger that has gone back in time (H7). It has forgotten leases, and an inquiry about one of
 * them would be answered `gone`. So every hold of the cell whose lease is forgotten becomes a granted lease
 * again. Holding too much is safe: the cell decides each lease from its own rows (L1).
 */
export class LedgerReconciler {
  readonly #part: Needs;
  #accepting: Promise<Result<LedgerReconciliation>> | undefined;

  constructor(part: Needs) {
    this.#part = part;
  }

  /**
   * Rebuilds the forgotten leases from the holds of all shards, then accepts the loss. If the ledger is not
   * lost, nothing is changed, unless the operator declares a loss. A call that ends early can be repeated:
   * leases that were rebuilt are known.
   */
  async reconcile(request: ReconcileLedger): Promise<Result<LedgerReconciliation>> {
    const isDeclared = await this.#part.history.declare(request);
    if (!this.#part.history.isLost && !isDeclared)
      return this.#answer({ rebuilt: [], leases: new Set(), unreachable: [] });
    if (request.dryRun) return this.#answer(await this.#readShards(request));
    // A second call that arrives while the first runs joins it.
    this.#accepting ??= this.#rebuildAndAccept(request).finally(() => {
      this.#accepting = undefined;
    });
    return this.#accepting;
  }

  async #rebuildAndAccept(request: ReconcileLedger): Promise<Result<LedgerReconciliation>> {
    const findings = await this.#readShards(request);
    if (findings.unreachable.length > 0) {
      return refused(
        "UNAVAILABLE",
        `the shards ${findings.unreachable.join(", ")} did not list the holds of cell ${this.#part.cell}; ` +
          "the ledger still refuses everything, and this call can be repeated",
        { retryAfterMs: 10_000 },
      );
    }
    await this.#accept(findings, request);
    this.#part.ports.log("history_reconciled", {
      part: `the ledger of cell ${this.#part.cell}`,
      reason: request.operator.reason ?? "",
      incarnation: this.#part.instances.incarnation,
      position: this.#part.positions.last,
      leases: findings.leases.size,
    });
    return this.#answer(findings);
  }

  #answer({ rebuilt, leases, unreachable }: Omit<Findings, "seen">): Result<LedgerReconciliation> {
    const cellState: CellState = this.#part.store.cellState();
    return ok({ status: this.#part.history.status, cellState, rebuilt, leases: leases.size, unreachable });
  }

  /** Reads the holds of this cell, page by page, and rebuilds their leases unless this is a dry run. */
  async #readShards(request: ReconcileLedger): Promise<Findings> {
    const findings: Findings = {
      // The caller and D1 may have seen more than any shard.
      seen: [this.#part.history.status.loss?.seen, request.seen, request.copied].reduce(abovePoints, {
        incarnation: this.#part.instances.incarnation,
        position: this.#part.positions.last,
      }),
      rebuilt: [],
      leases: new Set(),
      unreachable: [],
    };
    for (let shard = 0; shard < shardsOf(request.placement); shard += 1) {
      const found = { shard, holds: 0, leases: new Set<string>() };
      let after: ListHolds["after"] = null;
      do {
        const page = await this.#askShard(shard, request, after);
        if (page.kind !== "ok") {
          findings.unreachable.push(shard);
          break;
        }
        const { holds, ranges, next, point, seen } = page.value;
        findings.seen = abovePoints(findings.seen, seen);
        for (const { incarnation } of [...holds, ...ranges])
          findings.seen = abovePoints(findings.seen, { incarnation, position: 0 });
        const from = { shard, incarnation: point?.incarnation ?? 0, seen: findings.seen.position };
        const work = (): Result<{ lease: string }[]> =>
          ok([
            ...this.#rebuild(shard, holds, from.incarnation, from.seen, request.dryRun),
            ...ranges.filter((range) => this.#rebuildTransfer(range, from, request)),
          ]);
        const weight = holds.length * 2;
        const rebuilt =
          request.dryRun || holds.length + ranges.length === 0
            ? work()
            : await this.#part.commits.submit("rebuild_leases", work, { weight, evenIfStopped: true });
        const forgotten = rebuilt.ok ? rebuilt.value : [];
        // Nothing is sent before the loss is accepted. Then the alarm repeats it.
        if (!request.dryRun) for (const { lease } of ranges) await this.#part.deliveries.deliver(lease);
        found.holds += forgotten.length;
        for (const { lease } of forgotten) {
          found.leases.add(lease);
          findings.leases.add(lease);
        }
        after = next;
      } while (after !== null);
      if (found.holds > 0) findings.rebuilt.push({ shard, holds: found.holds, leases: found.leases.size });
    }
    return findings;
  }

  #askShard(
    shard: number,
    { placement }: ReconcileLedger,
    after: ListHolds["after"],
  ): Promise<Answer<HoldPage>> {
    const message: ListHolds = {
      placement,
      cell: this.#part.cell,
      after,
      limit: HOLDS_PER_PAGE,
    };
    const { exchangeTimeoutMs, inquiryTimeoutMs } = this.#part.limits;
    return ask(this.#part.ports.clock, exchangeTimeoutMs + inquiryTimeoutMs, () =>
      this.#part.peers.shard(shard).listHolds(message),
    );
  }

  /** Returns the holds whose leases were forgotten, and writes their leases unless this is a dry run. */
  #rebuild(
    shard: number,
    holds: readonly HeldOp[],
    shardIncarnation: number,
    seenPosition: number,
    isDryRun: boolean,
  ): HeldOp[] {
    const rebuilt: HeldOp[] = [];
    for (const [lease, held] of Map.groupBy(holds, (hold) => hold.lease)) {
      const attempt = newestAttempt(held);
      const row = this.#part.store.findWhole(lease);
      if (row !== undefined && !this.#isForgotten(row, attempt)) continue;
      // A begin of this instance is not forgotten.
      if (this.#part.begins.isRunning(lease, attempt)) continue;
      const ops = held.filter((each) => isSameAttempt(each, attempt));
      rebuilt.push(...ops);
      if (isDryRun) continue;
      const known = row !== undefined && isSameAttempt(row, attempt) ? row : undefined;
      this.#write(known, row !== undefined, lease, shard, ops, shardIncarnation, seenPosition);
    }
    return rebuilt;
  }

  /**
   * Returns whether the attempt may be the grant of a lease that this ledger has forgotten. What the ledger
   * still has is true: a row of another attempt was granted or fenced instead. But a row that was itself
   * rebuilt from holds may get more of them, or make way for a later attempt.
   */
  #isForgotten(row: LeaseRow, attempt: AttemptOf): boolean {
    if (!isRebuilt(row) || row.decided === 1) return false;
    return row.incarnation !== attempt.incarnation
      ? row.incarnation < attempt.incarnation
      : row.counter <= attempt.counter;
  }

  /**
   * Grants the lease of a transfer again whose range hold a shard has (Y10). A shard that knows of the cut
   * proves it. A decision that the ledger still has is final, also when its lease is forgotten. Returns
   * whether the ledger had forgotten it.
   */
  #rebuildTransfer(
    range: HeldRange,
    { shard, incarnation, seen }: { shard: number; incarnation: number; seen: number },
    { dryRun, operator }: ReconcileLedger,
  ): boolean {
    const { lease, heldEpoch, isCut, from, scope, counted } = range;
    const row = this.#part.store.findWhole(lease);
    const stored = this.#part.transferStore.find(lease);
    // An inquiry ends the range hold.
    if (row?.state === "ROLLED_BACK" || stored?.state === "ABORTED") return false;
    const isCutHere = row?.state === "COMMITTED" || stored?.state === "CUT";
    // Every shard has confirmed the cut, so the claims may have changed since. This execution was never
    // granted, or its shard has gone back. An inquiry answers `gone` (S2).
    if (isCutHere && (row === undefined || this.#part.store.isApplied(row))) return false;
    const isKnown = row !== undefined && !isSameAttempt(row, range) && !this.#isForgotten(row, range);
    const isComplete = row?.epochs != null && decodeExecutions(row.epochs).has(shard) && isCutHere >= isCut;
    if (isKnown || isComplete || this.#part.begins.isRunning(lease, range)) return false;
    if (dryRun) return true;
    const known = row !== undefined && isSameAttempt(row, range) ? row : undefined;
    const executions = new Map(known?.epochs ? decodeExecutions(known.epochs) : []);
    executions.set(shard, { epoch: heldEpoch, incarnation });
    this.#part.positions.raiseTo(seen);
    const now = this.#part.ports.clock.now();
    this.#part.store.times.note(now, this.#part.positions.last);
    const createdPosition = known?.created_position ?? this.#part.positions.next(now);
    const wasCut = isCut || isCutHere;
    const position = wasCut ? this.#part.positions.next(now) : createdPosition;
    this.#part.begins.fence(lease);
    if (row !== undefined) this.#part.store.delete(lease);
    if (row === undefined || row.decided !== 0) {
      if (!wasCut) this.#part.begins.rebuilt();
    } else if (wasCut) this.#part.begins.decided();
    const rebuilt: LeaseRow = {
      ...(known ?? emptyTransfer(now)),
      lease,
      decided: wasCut ? 1 : 0,
      position,
      created_position: createdPosition,
      decided_at_ms: wasCut ? now : null,
      state: wasCut ? "COMMITTED" : "GRANTED",
      incarnation: range.incarnation,
      counter: range.counter,
      epochs: encodeExecutions(executions),
      shards: 0,
      payload: wasCut ? null : encodePayload([]),
      transfer: encodeRange(range),
    };
    this.#part.store.insert(rebuilt);
    // The source asks for the cut, so its decision is sent at once (N1).
    if (wasCut) this.#part.deliveries.track(rebuilt, true);
    const step = { atMs: now, by: "operator" as const, keyId: operator.keyId, reason: operator.reason };
    const shards = stored?.record.shards.filter((each) => each.shard !== shard) ?? [];
    this.#part.transferStore.write({
      id: lease,
      position: stored?.position ?? createdPosition,
      state: wasCut ? "CUT" : "PREPARED",
      from,
      scope,
      record: {
        prepared: step,
        accepted: null,
        switchBackOf: null,
        reports: { from: null, to: null },
        ...stored?.record,
        decided: wasCut ? (stored?.record.decided ?? step) : null,
        isRebuilt: stored?.state !== "CUT" || stored.record.isRebuilt,
        shards: [...shards, { shard, epoch: heldEpoch, ...counted }],
      },
    });
    return true;
  }

  #write(
    known: LeaseRow | undefined,
    hasRow: boolean,
    lease: string,
    shard: number,
    held: readonly HeldOp[],
    shardIncarnation: number,
    seenPosition: number,
  ): void {
    const [first] = held;
    if (first === undefined) return;
    const before = known?.payload ? decodePayload(known.payload) : [];
    const ops = [...before, ...held.map((each, index) => opOf(each, shard, before.length + index))];
    // Holds that have moved keep the shard that granted them (G6).
    if (held.some(({ grantedBy }) => grantedBy !== undefined)) this.#part.placementGuard.noteChange();
    const unique = [...new Map(ops.map((op) => [`${op.type}:${op.canonical}`, op])).values()];
    const executions = new Map(known?.epochs ? decodeExecutions(known.epochs) : []);
    for (const { grantedBy, heldEpoch } of held) {
      const own = { epoch: heldEpoch, incarnation: shardIncarnation };
      if (grantedBy === undefined) executions.set(shard, own);
      // The shard that has the hold now does not know the incarnation of the one that granted it.
      else executions.set(grantedBy, executions.get(grantedBy) ?? { ...own, incarnation: 0 });
    }
    this.#part.positions.raiseTo(seenPosition);
    const now = this.#part.ports.clock.now();
    this.#part.store.times.note(now, this.#part.positions.last);
    const position = known?.created_position ?? this.#part.positions.next(now);
    const count = (kind: Op["kind"]): number => unique.filter((op) => op.kind === kind).length;
    // A begin with this id that still runs has another attempt, which must not be granted as well.
    this.#part.begins.fence(lease);
    if (hasRow) this.#part.store.delete(lease);
    else this.#part.begins.rebuilt();
    this.#part.store.insert({
      lease,
      decided: 0,
      position,
      created_position: position,
      // The ledger has forgotten when the lease was granted, so its age counts from now.
      created_at_ms: known?.created_at_ms ?? now,
      decided_at_ms: null,
      state: "GRANTED",
      fence: 0,
      incarnation: first.incarnation,
      counter: first.counter,
      epochs: encodeExecutions(executions),
      // There were at least those that have granted it.
      shards: Math.max(...executions.keys()) + 1,
      payload: encodePayload(unique),
      payload_hash: REBUILT,
      creates: count("create"),
      destroys: count("destroy"),
      replaces: count("replace"),
      missing: 0,
      decided_by: null,
      decided_by_key: null,
      reason: null,
      ...plainLease,
    });
  }

  async #accept({ seen, leases }: Findings, request: ReconcileLedger): Promise<void> {
    const { operator } = request;
    const accept = (): Result<() => void> => {
      const firstPosition = this.#part.positions.last + 1;
      this.#part.positions.raiseTo(Math.min(seen.position, MAX_BELIEVED) + POSITION_MARGIN);
      this.#part.store.setLastPosition(this.#part.positions.next(this.#part.ports.clock.now()));
      this.#part.store.raiseStateVersion(STATE_VERSION_MARGIN);
      for (const resumed of this.#part.hooks.resumed) resumed(request);
      // It needs no room (O3), because a ledger that is lost hands out no entries.
      this.#part.audit.current.append(operator, {
        action: "reconcile_part",
        cell: this.#part.cell,
        target: `ledger-${this.#part.cell}`,
        before: { state: this.#part.history.state },
        after: { state: "complete", rebuilt_leases: leases.size },
      });
      return ok(this.#part.history.accept(seen, firstPosition));
    };
    const accepted = await this.#part.commits.submit("accept_loss", accept, { evenIfStopped: true });
    if (accepted.ok) accepted.value();
  }
}

/** The columns of a transfer's lease that is rebuilt from range holds. */
const emptyTransfer = (nowMs: number): Omit<LeaseRow, "lease" | "position" | "created_position"> => ({
  decided: 0,
  created_at_ms: nowMs,
  decided_at_ms: null,
  state: "GRANTED",
  fence: 0,
  incarnation: 0,
  counter: 0,
  epochs: null,
  shards: 0,
  payload: null,
  payload_hash: REBUILT,
  creates: 0,
  destroys: 0,
  replaces: 0,
  missing: 0,
  decided_by: null,
  decided_by_key: null,
  reason: null,
  ...plainLease,
});

/** The hash of a lease that was rebuilt from its holds: the batch of its begin is not known. */
const REBUILT = "rebuilt";

/** True for a lease that was rebuilt from its holds (H7). */
const isRebuilt = (row: LeaseRow): boolean => row.payload_hash === REBUILT;

/** Whether a begin is for the batch of a rebuilt lease (B2). */
export function compareBatch(row: LeaseRow, request: BeginRequest): Result<null> | undefined {
  if (!isRebuilt(row)) return undefined;
  const refusal = row.state === "ROLLED_BACK" ? undefined : replayRefusal(row, request);
  return refusal === undefined ? ok(null) : { ok: false, refusal };
}

/**
 * Returns why the replay of a begin of a rebuilt lease is refused (B2). Undefined if every op of the batch is
 * held, because then the lease is granted to this batch. Otherwise the lease may never have been granted.
 */
function replayRefusal(row: LeaseRow, { ops, allowMissing }: BeginRequest): Refusal | undefined {
  const held = new Map(
    (row.payload === null ? [] : decodePayload(row.payload)).map((op) => [`${op.type}:${op.canonical}`, op]),
  );
  const isHeld = ops.every((op) => {
    const known = held.get(`${op.type}:${op.canonical}`);
    return known !== undefined && isSameOp(op, known, allowMissing);
  });
  if (isHeld && ops.length === held.size) return undefined;
  return refused(
    "FAILED_PRECONDITION",
    "the ledger has lost this lease and knows only those of its names that are held, which are not this " +
      "batch; begin again with a new lease id",
    { reason: "LEASE_ID_REUSED" },
  ).refusal;
}

/** A destroy is held without its value, subject and source, and a replace without a claim as a create. */
function isSameOp(op: Op, held: Op, allowMissing: boolean): boolean {
  const mayBeWithoutClaim = allowMissing && op.epoch === undefined;
  if (op.kind !== held.kind && !(mayBeWithoutClaim && held.kind === heldAs(op.kind, false))) return false;
  if (op.kind === "destroy") return true;
  return (
    op.value === held.value &&
    op.subject?.type === held.subject?.type &&
    op.subject?.id === held.subject?.id &&
    op.source?.type === held.source?.type &&
    op.source?.id === held.source?.id &&
    op.scope === held.scope
  );
}

type AttemptOf = Pick<HeldOp, "incarnation" | "counter">;

const isSameAttempt = (a: AttemptOf, b: AttemptOf): boolean =>
  a.incarnation === b.incarnation && a.counter === b.counter;

/** Only the newest attempt can have been granted: each attempt starts after the one before it ended. */
const newestAttempt = (held: readonly HeldOp[]): HeldOp =>
  held.reduce((a, b) =>
    b.incarnation > a.incarnation || (b.incarnation === a.incarnation && b.counter > a.counter) ? b : a,
  );

const opOf = (
  { kind, type, canonical, value, subject, source, scope, grantedBy }: HeldOp,
  shard: number,
  index: number,
): Op => ({
  kind,
  type,
  canonical,
  value,
  index,
  shard: grantedBy ?? shard,
  ...(subject === undefined ? {} : { subject }),
  ...(source === undefined ? {} : { source }),
  ...(scope === undefined ? {} : { scope }),
});
