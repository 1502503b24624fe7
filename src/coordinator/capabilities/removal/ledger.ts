import type { Sightings } from "../../kernel/ledger/sightings.ts";
import type { AuditTrail, AuditedAction, AuditState } from "../../kernel/audit-trail.ts";
import { ask } from "../../kernel/ask.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import type {
  LedgerCopies,
  Caller,
  DecideRequest,
  Maintain,
  Op,
  Operator,
  Outcome,
} from "../../kernel/messages.ts";
import type {
  ApproveRemoval,
  CellClaims,
  ListCellClaims,
  RemovalEnd,
  RemovalProgress,
  RemovalStep,
  StoredRemoval,
} from "./messages.ts";
import type { Peers } from "../../kernel/methods.ts";
import { shardsOf } from "../../kernel/placement.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { Begins } from "../../kernel/ledger/begins.ts";
import type { Decisions } from "../../kernel/ledger/decisions.ts";
import type { Deliveries } from "../../kernel/ledger/deliveries.ts";
import { encodePayload } from "../../kernel/ledger/payload.ts";
import type { Positions } from "../../kernel/ledger/position.ts";
import { callOfRemovedCell, cellRemoved } from "../../kernel/cell-removed.ts";
import { readMeta, writeMeta } from "../../kernel/meta.ts";
import type { Standing } from "../../kernel/standing.ts";
import type { HookLists } from "../../kernel/half.ts";
import type { LedgerBegin, LedgerHooks } from "../../kernel/ledger/hooks.ts";
import type { LedgerStore } from "../../kernel/ledger/store.ts";
import type { TransferStore } from "../transfer/ledger-store.ts";
import type { Slot } from "../../kernel/slot.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    start_removal: true;
  }
}

/** The hash of the batch of a removal's lease. No begin from outside has it: theirs are digests. */
const REMOVAL = "removal";

/** The leases of earlier steps that one step commits. A step leaves one at most, unless there was a loss. */
const MOST_LEFT_OVER = 100;

/** How often one step lists claims. The decisions of earlier steps may have released those that it listed. */
const MOST_LISTINGS = 3;

/** The transfers that a refusal names. */
const MOST_TRANSFERS = 10;

interface Needs {
  readonly sightings: Slot<Sightings>;
  readonly cell: string;
  readonly ports: Ports;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly commits: GroupCommit;
  readonly positions: Positions;
  readonly begins: Begins;
  readonly decisions: Decisions;
  readonly deliveries: Deliveries;
  readonly audit: Slot<AuditTrail>;
  readonly hooks: HookLists<LedgerHooks>;
  readonly peers: Pick<Peers, "shard">;
  readonly transferStore: TransferStore;
  readonly standing: Slot<Standing>;
}

/**
 * Removes a cell (X2 to X4). Each step releases a bounded number of the cell's claims with a lease of this
 * ledger, so every rule about leases holds for it. What is left to do is read from the shards and from the
 * rows of the leases, so a step can be repeated after any crash, by anyone.
 */
export class Removal {
  readonly #part: Needs;
  #running: Promise<Result<RemovalProgress>> | undefined;
  /** The shard that is asked first, because the last step found claims there. */
  #first = 0;

  constructor(part: Needs) {
    this.#part = part;
  }

  /** Approves a removal, if no claim of the cell can have changed since its export was compared (X2). */
  approve({ position, records }: ApproveRemoval): Promise<Result<null>> {
    return this.#part.commits.submit("approve_removal", () => {
      const state = this.#part.store.cellState();
      if (state !== "DRAINING")
        return refused("FAILED_PRECONDITION", `cell ${this.#part.cell} is ${state}; drain it first`, {
          reason: "CELL_NOT_DRAINING",
        });
      const blocked = this.#transferRefusal("cut or abort");
      if (blocked !== undefined) return { ok: false, refusal: blocked };
      const open = this.#part.begins.outstanding;
      const unapplied = this.#part.deliveries.unapplied;
      if (open > 0 || unapplied > 0)
        return refused(
          "FAILED_PRECONDITION",
          `cell ${this.#part.cell} has ${open} open leases and ${unapplied} decisions that a shard has not ` +
            "applied yet; decide the leases, wait for the shards, export again, and repeat this call",
          { reason: "CELL_HAS_LEASES" },
        );
      if (position !== this.#part.positions.last) return this.#hasChanged();
      this.#write({ records, released: 0, position, end: null });
      return ok(null);
    });
  }

  /** Carries out the next step. A call that arrives while a step runs joins it. */
  step(message: RemovalStep): Promise<Result<RemovalProgress>> {
    this.#running ??= this.#step(message).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #step(message: RemovalStep): Promise<Result<RemovalProgress>> {
    const started = await this.#start(message);
    if (!started.ok) return started;
    const left = await this.#commitLeftOver(message);
    if (!left.ok) return left;
    for (let listings = 0; listings < MOST_LISTINGS; listings += 1) {
      // What is applied after a shard has listed its claims may add to them.
      const wasSettled = this.#isSettled;
      const found = await this.#nextClaims(message);
      if (!found.ok) return found;
      if (found.value.length === 0) return this.#finish(message, wasSettled);
      const released = await this.#release(found.value, message);
      // A shard lists the claims of an earlier step until it applies that decision, perhaps during this
      // begin. A step that answers that it has released nothing says that no shard has a claim (X4).
      if (!released.ok || released.value.released > 0) return released;
    }
    return refused(
      "UNAVAILABLE",
      `other calls released the claims of cell ${this.#part.cell} that shards had listed; repeat this call`,
      { retryAfterMs: 1_000 },
    );
  }

  /** The first step starts the removal, if nothing has changed since it was approved (X3). */
  #start({ stateVersion, operator }: RemovalStep): Promise<Result<null>> {
    return this.#part.commits.submit("start_removal", () => {
      const { store, cell, audit, positions, ports } = this.#part;
      const state = store.cellState();
      const removal = this.#removal;
      // A shard that went back in time may have claims of a removed cell again, so its steps can be repeated.
      if (state === "REMOVING" || state === "REMOVED") {
        const blocked = this.#transferRefusal("abort");
        return blocked === undefined ? ok(null) : { ok: false, refusal: blocked };
      }
      if (state !== "DRAINING" || removal === undefined)
        return refused("FAILED_PRECONDITION", `cell ${cell} is ${state}, and no removal of it is approved`, {
          reason: "CELL_NOT_REMOVING",
        });
      // Every claim is as it was compared, because none changes without a position.
      if (removal.position !== positions.last) return this.#hasChanged();
      // The step may be a late copy from before the state was set, and the removal was approved again.
      if (stateVersion !== store.number("cell_state_version")) return this.#hasChanged();
      const full = audit.current.refusal;
      if (full !== undefined) return { ok: false, refusal: full };
      store.changeCellState("REMOVING", positions, ports.clock.now());
      this.#append(operator, "start_removal", state, { state: "REMOVING", records: removal.records });
      return ok(null);
    });
  }

  #hasChanged(): { ok: false; refusal: Refusal } {
    return refused(
      "FAILED_PRECONDITION",
      `cell ${this.#part.cell} has changed since its claims were compared; export and compare them again`,
      { reason: "CONCURRENT_CHANGE" },
    );
  }

  /** Only its own calls decide a transfer to the cell (Y1), so the refusal names it. */
  #transferRefusal(remedy: string): Refusal | undefined {
    const ids = this.#part.transferStore.openIds(MOST_TRANSFERS);
    if (ids.length === 0) return undefined;
    return refused(
      "FAILED_PRECONDITION",
      `cell ${this.#part.cell} is the destination of prepared transfers: ${ids.join(", ")}; ${remedy} ` +
        "them, and repeat this call",
      { reason: "CELL_HAS_LEASES" },
    ).refusal;
  }

  /**
   * A step that ended early may have left a granted lease. A loss may also have granted an attempt of the
   * cell that never was a lease (H7). It is rolled back if it would give the cell a name.
   */
  async #commitLeftOver(message: RemovalStep): Promise<Result<null>> {
    for (const { lease, creates, replaces } of this.#part.store.granted(0, MOST_LEFT_OVER)) {
      const outcome = creates + replaces > 0 ? "ROLLED_BACK" : "COMMITTED";
      const decided = await this.#decide(lease, outcome, message);
      if (!decided.ok) return decided;
    }
    return ok(null);
  }

  async #decide(
    lease: string,
    outcome: Outcome,
    { placement, operator }: RemovalStep,
  ): Promise<Result<null>> {
    const request: DecideRequest = {
      placement,
      caller: callerOf(operator),
      requestId: operator.requestId,
      lease,
      outcome,
      isRemoval: true,
      ...(operator.reason === null ? {} : { reason: operator.reason }),
    };
    const decided = await this.#part.decisions.decide(request, {
      write: ({ destroys, missing }) => {
        if (outcome === "COMMITTED") this.#addReleased(destroys - missing);
      },
    });
    return decided.ok ? ok(null) : decided;
  }

  /** Returns destroys of claims of one shard. None: no shard has a claim of the cell. */
  async #nextClaims({ placement, limit }: RemovalStep): Promise<Result<Op[]>> {
    const shards = shardsOf(placement);
    for (let offset = 0; offset < shards; offset += 1) {
      const shard = (this.#first + offset) % shards;
      const answer = await this.#askShard(shard, placement, limit);
      if (!answer.ok) return answer;
      const { claims, transfers } = answer.value;
      if (claims.length === 0) continue;
      this.#first = shard;
      // Their ledgers are those of other cells, so nothing else names them.
      if (transfers.length > 0)
        return refused(
          "FAILED_PRECONDITION",
          `transfers hold claims of cell ${this.#part.cell}: ${transfers.join(", ")}; cut or abort them, ` +
            "and repeat this call",
          { reason: "CELL_HAS_LEASES" },
        );
      return ok(
        claims.map(({ type, canonical, epoch }, index) => ({
          kind: "destroy",
          index,
          type,
          canonical,
          value: canonical,
          epoch,
          shard,
        })),
      );
    }
    return ok([]);
  }

  async #askShard(shard: number, placement: string, limit: number): Promise<Result<CellClaims>> {
    const { batchOps, scanRows, exchangeTimeoutMs } = this.#part.limits;
    const message: ListCellClaims = {
      placement,
      ...this.#part.sightings.current.of(shard),
      cell: this.#part.cell,
      limit: Math.max(1, Math.min(limit, batchOps, scanRows)),
    };
    const answer = await ask(this.#part.ports.clock, exchangeTimeoutMs, () =>
      this.#part.peers.shard(shard).listCellClaims(message),
    );
    if (answer.kind === "refused") return { ok: false, refusal: answer.refusal };
    if (answer.kind === "unknown")
      return refused(
        "UNAVAILABLE",
        `shard ${shard} did not list the claims of cell ${this.#part.cell}; repeat this call`,
        { retryAfterMs: 1_000 },
      );
    return ok(answer.value);
  }

  /** Destroys the claims as they were listed (B10). What has a hold of another lease stays. */
  async #release(listed: readonly Op[], message: RemovalStep): Promise<Result<RemovalProgress>> {
    const { placement, operator } = message;
    const ops = this.#fitting(listed);
    const lease = this.#part.ports.randomness.uuid();
    const begin: LedgerBegin = {
      placement,
      caller: callerOf(operator),
      requestId: operator.requestId,
      lease,
      ops,
      payloadHash: REMOVAL,
      // An earlier step may have destroyed some of them since they were listed.
      allowMissing: true,
      isRemoval: true,
      isPart: true,
      // A shard that is reconciling grants it: it only releases claims that the shard has (H6).
      isVerification: true,
    };
    const begun = await this.#part.begins.begin(begin);
    if (!("ok" in begun)) return { ok: false, refusal: begun };
    if (!begun.ok) return begun;
    const committed = await this.#decide(lease, "COMMITTED", message);
    if (!committed.ok) return committed;
    return ok(this.#progress(ops.length - begun.value.lease.counts.missing));
  }

  /** The ops whose lease fits into a row. */
  #fitting(ops: readonly Op[]): Op[] {
    let fitting = [...ops];
    while (
      fitting.length > 1 &&
      new TextEncoder().encode(encodePayload(fitting)).length > this.#part.limits.leaseBytes
    )
      fitting = fitting.slice(0, Math.ceil(fitting.length / 2));
    return fitting;
  }

  /** Marks the cell as removed, once no shard has a claim of it and nothing can put one there (X4). */
  #finish({ operator }: RemovalStep, wasSettled: boolean): Promise<Result<RemovalProgress>> {
    return this.#part.commits.submit("finish_removal", () => {
      const full = this.#part.audit.current.refusal;
      if (full !== undefined) return { ok: false, refusal: full };
      if (!wasSettled || !this.#isSettled)
        return refused(
          "UNAVAILABLE",
          `cell ${this.#part.cell} had open leases, or decisions that shards had not applied; repeat ` +
            "this call",
          { retryAfterMs: 1_000 },
        );
      if (this.#part.store.cellState() === "REMOVED") return ok(this.#progress(0));
      const removal = this.#removal;
      this.#part.store.changeCellState("REMOVED", this.#part.positions, this.#part.ports.clock.now());
      // The directory is told of it, perhaps later and by others (X5).
      const end = { atMs: this.#part.store.number("cell_state_set_at_ms"), operator };
      if (removal !== undefined) this.#write({ ...removal, end });
      for (const ended of this.#part.hooks.cellEnded) ended();
      this.#append(operator, "remove_cell", "REMOVING", {
        state: "REMOVED",
        records: removal?.records ?? null,
      });
      return ok(this.#progress(0));
    });
  }

  /** What is stored of the removal. Null: no step has started one. */
  get stored(): StoredRemoval | null {
    const { store } = this.#part;
    const state = store.cellState();
    return state === "REMOVING" || state === "REMOVED" ? (this.#removal ?? null) : null;
  }

  /** When the removal has ended, and who has ended it. Null: it has not ended. */
  get end(): RemovalEnd | null {
    return this.#part.store.cellState() === "REMOVED" ? (this.#removal?.end ?? null) : null;
  }

  /** Only the leases of the removal are granted (X3). */
  guardGrant(request: LedgerBegin): Refusal | undefined {
    if (request.isRemoval === true) return undefined;
    const state = this.#part.store.cellState();
    if (state === "REMOVING")
      return refused("FAILED_PRECONDITION", "the cell is being removed and cannot begin leases", {
        reason: "CELL_REMOVING",
      }).refusal;
    return state === "REMOVED" ? callOfRemovedCell : undefined;
  }

  guardCaller({ role }: Caller): Refusal | undefined {
    return role === "cell" && this.#part.store.cellState() === "REMOVED" ? callOfRemovedCell : undefined;
  }

  guardCell(remedy: string): Refusal | undefined {
    const { cell, store } = this.#part;
    const state = store.cellState();
    if (state === "REMOVED") return cellRemoved(cell).refusal;
    if (state !== "REMOVING") return undefined;
    return refused("FAILED_PRECONDITION", `cell ${cell} is being removed${remedy}`, {
      reason: "CELL_REMOVING",
    }).refusal;
  }

  /** The directory was told only after the removal was durable here, so this ledger went back (X5, H4). */
  guardMaintenance({ isRemoved }: Maintain): Refusal | undefined {
    return isRemoved === true && this.#part.store.cellState() !== "REMOVED"
      ? this.#part.standing.current.behind("the directory")
      : undefined;
  }

  /** Must be called in the transaction that accepts a loss. */
  resume({ removedAtMs, operator }: LedgerCopies): void {
    this.#undoStart();
    if (removedAtMs !== null) this.#remove({ atMs: removedAtMs, operator });
  }

  /**
   * A claim that the cell got before the removal started may be among what was lost. Unless names were
   * released, the claims are compared again (X2). The approval is void, because it names an older position.
   */
  #undoStart(): void {
    if (this.#part.store.cellState() !== "REMOVING" || this.#removal?.released !== 0) return;
    this.#part.store.setCellState("DRAINING", this.#part.ports.clock.now());
  }

  /** The directory knows that the cell was removed, so it stays removed (X5). Steps end what is open. */
  #remove(end: RemovalEnd): void {
    if (this.#part.store.cellState() === "REMOVED") return;
    const removal = this.#removal ?? { records: 0, released: 0, position: 0 };
    this.#part.store.setCellState("REMOVED", end.atMs);
    this.#write({ ...removal, end });
  }

  /** The removal of the cell. Undefined before one is approved. */
  get #removal(): StoredRemoval | undefined {
    const removal = readMeta(this.#part.ports.sql, "removal");
    return removal === undefined ? undefined : (JSON.parse(String(removal)) as StoredRemoval);
  }

  #write(removal: StoredRemoval): void {
    writeMeta(this.#part.ports.sql, "removal", JSON.stringify(removal));
  }

  /** Must be called in the transaction that commits a lease of the removal (X3). */
  #addReleased(claims: number): void {
    const removal = this.#removal;
    if (removal !== undefined) this.#write({ ...removal, released: removal.released + claims });
  }

  /** Whether no lease is open, and shards have applied all decisions. */
  get #isSettled(): boolean {
    return this.#part.begins.outstanding === 0 && this.#part.deliveries.unapplied === 0;
  }

  #progress(released: number): RemovalProgress {
    const { records, released: all } = this.#removal ?? { records: 0, released: 0 };
    const state = this.#part.store.cellState();
    // A shard that went back in time may have claims again that were released before.
    const left = state === "REMOVED" ? 0 : Math.max(0, records - all);
    return { state, released, left, end: this.end };
  }

  #append(operator: Operator, action: AuditedAction, before: string, after: AuditState): void {
    const cell = this.#part.cell;
    this.#part.audit.current.append(operator, {
      action,
      cell,
      target: cell,
      before: { state: before },
      after,
    });
  }
}

const callerOf = ({ keyId }: Operator): Caller => ({
  role: "operator",
  keyId,
  expiresAtMs: Number.MAX_SAFE_INTEGER,
});
