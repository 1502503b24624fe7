import type { GroupCommit } from "../../kernel/group-commit.ts";
import { keyHash } from "../../kernel/key-hash.ts";
import type { HookLists } from "../../kernel/half.ts";
import type { ShardHooks } from "../../kernel/shard/hooks.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Prepare, PrepareAnswer, RefusedPrepare } from "../../kernel/messages.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { PlanTransfer, TransferPlan } from "./messages.ts";
import type { TransferOp } from "./range.ts";
import type { EndedAs } from "../../kernel/shard/end-holds.ts";
import { involves, MOST_RANGE_HOLDS, type RangeHoldRow, type RangeHolds } from "./range-holds.ts";
import type { ClaimReads } from "../../kernel/shard/read-queue.ts";
import { FIRST_OF_SCOPE, type ScopeStore } from "./scope-store.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import type { Ports } from "../../kernel/ports.ts";

/** The claims that one transaction rewrites, and the transactions of one alarm (Y5). */
const MOVED_ROWS = 250;
const PAGES_PER_ALARM = 20;

/** The rows that one transaction changes for a transfer that was cut: claims, and as many past claims. */
export const MOVE_WEIGHT = 2 * MOVED_ROWS;

/** A transaction of its own: its log row has the hashes of all names that the transfer moves. */
export const PRECOMMIT_WEIGHT = 4_000;

/** The leases that a refusal and a plan name, and the transfers that a removal names. */
const MOST_LEASES = 10;

/** How long a caller should wait while claims are rewritten, or while leases are in the way. */
const RETRY_AFTER_MS = 1_000;

interface Needs {
  readonly limits: Limits;
  readonly ranges: RangeHolds;
  readonly scopes: ScopeStore;
  readonly hooks: Pick<HookLists<ShardHooks>, "claimsMoving">;
  readonly log: ShardLog;
  readonly index: number;
  readonly ports: Pick<Ports, "clock">;
}

/** What transfers do on a shard (Y2, Y5). */
export class ShardTransfers {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  /** Holds a scope, unless something is in the way (Y2). Runs inside a transaction, and does not wait. */
  prepare(request: Prepare, op: TransferOp, nowMs: number): PrepareAnswer | RefusedPrepare {
    const { cell: to, lease, incarnation, counter } = request;
    const { from, scope } = op;
    const refusal = this.#blocked(from, to, scope);
    if (refusal !== undefined) return { granted: false, refusal };
    const counted = { from: this.#part.scopes.digest(from, scope), to: this.#part.scopes.digest(to, scope) };
    if (op.unchanged !== undefined && !this.#isUnchanged(op, counted.from.count))
      return { granted: false, refusal: this.#changedRefusal(from) };
    const epoch = this.#part.log.nextEpoch();
    const holder = { cell: to, lease, incarnation, counter, epoch };
    this.#part.ranges.insert({
      ...holder,
      scope,
      from_cell: from,
      held_at_ms: nowMs,
      counted: JSON.stringify(counted),
      is_precommitted: 0,
      cut_at_ms: null,
    });
    return { granted: true, epoch, missing: 0, counted };
  }

  #blocked(from: string, to: string, scope: string): Refusal | undefined {
    const range = this.#inWay(from, to, scope);
    if (range !== undefined)
      return blocked(
        // The source does not learn of transfers of other cells (Y7).
        involves(range, from)
          ? `shard ${this.#part.index}: the transfer ${range.cell}-${range.lease} holds the scope`
          : `shard ${this.#part.index}: a transfer of other cells holds the scope`,
      );
    const { openTransfers } = this.#part.limits;
    if (this.#part.ranges.countFrom(from) >= openTransfers)
      return tooMany(
        `cell ${from} has ${openTransfers} prepared transfers, which is the limit; cut or abort some of them`,
      );
    if (this.#part.ranges.size >= MOST_RANGE_HOLDS)
      return tooMany(
        `shard ${this.#part.index} has range holds of ${MOST_RANGE_HOLDS} transfers; end some of them, and ` +
          "retry",
      );
    const most = this.#part.limits.transferClaims;
    const claims = [from, to].reduce((sum, cell) => sum + this.#part.scopes.count(cell, scope, most + 1), 0);
    if (claims > most)
      return refused(
        "FAILED_PRECONDITION",
        `shard ${this.#part.index} has more than ${most} claims of the scope; a transfer can't move them ` +
          "at once",
        { reason: "TRANSFER_TOO_LARGE" },
      ).refusal;
    const leases = this.#part.scopes.leases(from, scope, MOST_LEASES);
    return leases.length === 0
      ? undefined
      : blocked(
          `shard ${this.#part.index}: leases of cell ${from} hold names of the scope: ${leases.join(", ")}`,
        );
  }

  /**
   * Returns a transfer that would change which claims another one moves: one of the same claims, or one that
   * gives claims to the source of the other (Y2).
   */
  #inWay(from: string, to: string, scope: string): RangeHoldRow | undefined {
    const own = this.#part.ranges.involving(from).find((range) => range.scope === scope);
    // While claims are being given to the destination, what it has can't be counted.
    const isGiven = (range: RangeHoldRow): boolean => range.scope === scope && range.is_precommitted === 1;
    return own ?? this.#part.ranges.on({ from: to, scope }) ?? this.#part.ranges.involving(to).find(isGiven);
  }

  #isUnchanged({ from, scope, unchanged }: TransferOp, count: number): boolean {
    if (unchanged === undefined || count !== unchanged.count) return false;
    return this.#part.scopes.countEpoch(from, scope, unchanged.epoch) === count;
  }

  #changedRefusal(from: string): Refusal {
    return refused(
      "FAILED_PRECONDITION",
      `shard ${this.#part.index}: cell ${from} has claimed, changed or released names of the scope since ` +
        "the transfer, so its claims are not those that were moved",
      { reason: "SCOPE_CHANGED" },
    ).refusal;
  }

  /** Counts what a shard has of a scope, as far as one message gets (M7). */
  plan({ from, to, scope, behind }: PlanTransfer): TransferPlan {
    const range = this.#inWay(from, to, scope);
    const { transferClaims, scanRows } = this.#part.limits;
    const present = behind === null ? this.#part.scopes.count(to, scope, transferClaims + 1) : 0;
    // Of a scope that is too large for a transfer, the leases are not looked for: that has no bound (M7).
    const isSmall = present + this.#part.scopes.count(from, scope, transferClaims + 1) <= transferClaims;
    return {
      ...this.#part.scopes.plan({ from, scope }, behind, scanRows),
      present,
      leases: behind === null && isSmall ? this.#part.scopes.leases(from, scope, MOST_LEASES) : [],
      transfer: range === undefined ? null : { to: range.cell, id: range.lease },
    };
  }

  /** From now on, the transfer may be cut (Y6). Runs inside a transaction. */
  precommit(range: RangeHoldRow): RangeHoldRow {
    if (range.is_precommitted === 1) return range;
    // Routers drop what they know of these names, as if each of them had a hold (Q1).
    for (const key of this.#part.scopes.keys(range.from_cell, range.scope))
      this.#part.log.noteHeld(keyHash(key));
    return this.#part.ranges.precommit(range);
  }

  /** Ends a range hold, or begins to carry out its transfer. Runs inside a transaction. */
  end(range: RangeHoldRow, as: EndedAs, nowMs: number): void {
    // A cut is final, whatever a ledger that has lost it says (Y10).
    if (as !== "committed" && range.cut_at_ms === null) return this.#part.ranges.delete(range);
    // A shard that went back, and has not noticed it yet, may have lost the precommit.
    this.#move(range.cut_at_ms === null ? this.#part.ranges.cut(this.precommit(range), nowMs) : range, nowMs);
  }

  /** Gives the next claims to the destination. When none is left, the range hold ends (Y5). */
  #move(range: RangeHoldRow, nowMs: number): void {
    const { from_cell: from, scope } = range;
    if (this.#part.scopes.count(from, scope, 1) > 0) {
      const { lease, cut_at_ms: atMs } = range;
      const moving = { where: FIRST_OF_SCOPE, values: [from, scope, MOVED_ROWS], lease, atMs };
      for (const hook of this.#part.hooks.claimsMoving) hook(moving, nowMs);
      const moved = this.#part.scopes.move(range, MOVED_ROWS);
      for (const claim of moved) this.#part.log.notes.current.noteMoved(range, from, claim);
      if (moved.length === MOVED_ROWS) return;
    }
    this.#part.ranges.delete(range);
  }

  /** Rewrites claims of transfers that were cut, as many as one alarm may. */
  async moveDue(commits: GroupCommit): Promise<void> {
    for (let left = PAGES_PER_ALARM; left > 0 && this.#part.ranges.hasCut; left -= 1)
      await commits.submit(
        "move_claims",
        () => {
          const range = this.#part.ranges.all().find(({ cut_at_ms: cutAtMs }) => cutAtMs !== null);
          if (range !== undefined) this.#move(range, this.#part.ports.clock.now());
        },
        { weight: MOVE_WEIGHT },
      );
  }

  /** Returns the ids of some transfers that hold claims of a cell, their source. */
  holding(cell: string): string[] {
    return this.#part.ranges
      .involving(cell)
      .filter(({ from_cell: from, scope }) => from === cell && this.#part.scopes.count(cell, scope, 1) > 0)
      .slice(0, MOST_LEASES)
      .map(({ cell: to, lease }) => `${to}-${lease}`);
  }

  /** Returns whether the claims of a transfer are being rewritten. */
  isMoving(id: string): boolean {
    return this.#part.ranges.all().some(({ lease, cut_at_ms: cutAtMs }) => lease === id && cutAtMs !== null);
  }

  /** Refuses reads of a cell's claims while some of them are rewritten, as of the turn of each read (Y4). */
  readsIn(reads: ClaimReads): ClaimReads {
    return {
      run: async <T>(cell: string, read: () => { value: T; rows: number }): Promise<Result<T>> => {
        const done = await reads.run<Result<T>>(cell, () => {
          const refusal = this.#movingRefusal(cell);
          if (refusal !== undefined) return { value: { ok: false, refusal }, rows: 0 };
          const { value, rows } = read();
          return { value: ok(value), rows };
        });
        return done.ok ? done.value : done;
      },
    };
  }

  /** Returns why the claims of a cell cannot be read: some of them are being rewritten (Y4). */
  #movingRefusal(cell: string): Refusal | undefined {
    return this.#part.ranges.involving(cell).some(({ cut_at_ms: cutAtMs }) => cutAtMs !== null)
      ? movingRefusal
      : undefined;
  }
}

const movingRefusal = refused(
  "UNAVAILABLE",
  "claims of the cell are being moved by a transfer that was cut; retry the call",
  { retryAfterMs: RETRY_AFTER_MS },
).refusal;

const tooMany = (detail: string): Refusal =>
  refused("RESOURCE_EXHAUSTED", detail, { reason: "TOO_MANY_TRANSFERS", retryAfterMs: 60_000 }).refusal;

const blocked = (detail: string): Refusal =>
  refused("ABORTED", `${detail}; retry when they have ended`, {
    reason: "TRANSFER_BLOCKED",
    retryAfterMs: RETRY_AFTER_MS,
  }).refusal;
