import type { GroupCommit } from "../../kernel/group-commit.ts";
import type {
  Decision,
  Envelope,
  HeldKey,
  LookupFound,
  Op,
  Prepare,
  PrepareAnswer,
  RefusedPrepare,
  Verdict,
} from "../../kernel/messages.ts";
import { refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import { decides, endedAs, type EndedAs } from "../../kernel/shard/end-holds.ts";
import type { ShardAlarm } from "../../kernel/shard/hooks.ts";
import type { Inquirer } from "../../kernel/shard/inquirer.ts";
import type { ClaimReads } from "../../kernel/shard/read-queue.ts";
import { recordOfClaim, type KeyRead, type Read } from "../../kernel/shard/record.ts";
import type { Residence } from "../../kernel/shard/residence.ts";
import {
  executionKey,
  type AskedHold,
  type Claimant,
  type ClaimRow,
  type HoldRow,
  type WideHold,
} from "../../kernel/shard/rows.ts";
import type { WideHolds } from "../../kernel/shard/wide-holds.ts";
import type { Slot } from "../../kernel/slot.ts";
import { involves, mayBeCut, rangeOf, type RangeHoldRow, type RangeHolds } from "./range-holds.ts";
import type { ScopeStore } from "./scope-store.ts";
import { MOVE_WEIGHT, PRECOMMIT_WEIGHT, type ShardTransfers } from "./shard.ts";

/** The holds in the way of a transfer that a shard asks about. */
const MOST_ASKED_HOLDS = 1_000;

interface Needs {
  readonly ranges: RangeHolds;
  readonly scopes: ScopeStore;
  readonly transfers: ShardTransfers;
  readonly commits: GroupCommit;
  readonly inquirer: Pick<Inquirer, "inquire">;
  readonly reads: ClaimReads;
  readonly residence: Slot<Pick<Residence, "isChanging">>;
}

/** What a shard does with the holds of transfers, each of which holds the claims of a scope. */
export class TransferHolds implements WideHolds {
  readonly #part: Needs;
  readonly alarm: ShardAlarm;
  readonly reads: ClaimReads;

  constructor(part: Needs) {
    this.#part = part;
    this.alarm = {
      dueMs: () => (part.ranges.hasCut ? -Infinity : Infinity),
      run: () => part.transfers.moveDue(part.commits),
    };
    this.reads = part.transfers.readsIn(part.reads);
  }

  get size(): number {
    return this.#part.ranges.size;
  }

  undecided(): readonly WideHold[] {
    return this.#part.ranges.all().filter(({ cut_at_ms: cutAtMs }) => cutAtMs === null);
  }

  isWide({ transfer }: Prepare | Decision): boolean {
    return transfer !== undefined;
  }

  prepare(request: Prepare, nowMs: number, incomplete: Refusal | undefined): PrepareAnswer | RefusedPrepare {
    const refusal = this.#part.residence.current.isChanging ? growing : incomplete;
    if (refusal !== undefined) return { granted: false, refusal };
    if (request.transfer === undefined) throw new Error("the lease is no transfer");
    return this.#part.transfers.prepare(request, request.transfer, nowMs);
  }

  blocking({ transfer }: Prepare): readonly HoldRow[] {
    return transfer === undefined
      ? []
      : this.#part.scopes.holds(transfer.from, transfer.scope, MOST_ASKED_HOLDS);
  }

  /** A precommit must be sent again if the shard has no range hold for it (Y6). */
  decide(decision: Decision, nowMs: number): boolean {
    const range = decision.transfer && this.#part.ranges.on(decision.transfer);
    const isHeld = range !== undefined && decides(decision, range);
    if (decision.outcome === "PRECOMMITTED") {
      if (isHeld) this.#part.transfers.precommit(range);
      return isHeld;
    }
    if (isHeld) this.#part.transfers.end(range, endedAs(decision), nowMs);
    return true;
  }

  end(asked: WideHold, as: EndedAs, nowMs: number): void {
    const range = this.#part.ranges.on(rangeOf(asked as RangeHoldRow));
    if (range !== undefined && executionKey(range) === executionKey(asked))
      this.#part.transfers.end(range, as, nowMs);
  }

  /** The end of a range hold begins to rewrite its claims (Y5). */
  weightOf(decision?: Decision): number {
    return decision?.outcome === "PRECOMMITTED" ? PRECOMMIT_WEIGHT : MOVE_WEIGHT;
  }

  /** A transfer that was cut holds its scope until all claims are rewritten (Y5). */
  isUnfinished(lease: string): boolean {
    return this.#part.transfers.isMoving(lease);
  }

  inWay(op: Op, cell: string, claim: Claimant | undefined, isClear: boolean): ReturnType<WideHolds["inWay"]> {
    const range = this.#over(cell, claim) ?? (isClear ? this.#with(op, cell) : undefined);
    return range && { cell: range.cell, named: { range: rangeOf(range) } };
  }

  /**
   * Returns the range hold on a claim, if its transfer is from or to the cell. The claim may belong to the
   * destination already, so no other finding would be certain (Y3).
   */
  #over(cell: string, claim: Claimant | undefined): RangeHoldRow | undefined {
    const range = this.#part.ranges.over(claim);
    return range !== undefined && involves(range, cell) ? range : undefined;
  }

  /** Returns the range hold whose transfer would move the claim that an op of its source makes (Y3). */
  #with({ scope }: Op, cell: string): RangeHoldRow | undefined {
    if (scope === undefined) return undefined;
    return this.#part.ranges.on({ from: cell, scope });
  }

  named({ range }: HeldKey): WideHold | null | undefined {
    return range && (this.#part.ranges.on(range) ?? null);
  }

  shown(claim: ClaimRow, verdicts: ReadonlyMap<string, Verdict>): KeyRead | undefined {
    const range = this.#part.ranges.over(claim);
    return range && { read: shownInRange(claim, range, verdicts), isHeld: range.is_precommitted === 1 };
  }

  /**
   * First asks about the transfers from and to the cell that may have been cut, so that an answer shows what
   * an acknowledged cut has moved (Y4).
   */
  async readClaims<T>(
    cell: string,
    { traces }: Envelope,
    read: () => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const open = this.#part.ranges.involving(cell).filter(mayBeCut);
    if (open.length > 0) {
      const verdicts = await this.#part.inquirer.inquire(open, traces);
      if ([...verdicts.values()].includes("unknown")) return unknownTransfer;
    }
    return read();
  }
}

/**
 * What a claim shows that a transfer moves (Y4). Once the transfer is precommitted, only the destination's
 * ledger knows whether it was cut, unless the shard has learned it. Then the claim shows as it will be when
 * it is rewritten.
 */
function shownInRange(
  claim: ClaimRow,
  range: RangeHoldRow,
  verdicts: ReadonlyMap<string, Verdict>,
): Read<AskedHold> {
  const { cell, epoch, cut_at_ms: cutAtMs, lease } = range;
  const record = recordOfClaim(claim);
  if (cutAtMs !== null) {
    const updatedAtMs = Math.max(cutAtMs, record.updatedAtMs);
    return { kind: "record", record: { ...record, cell, epoch, updatedAtMs } };
  }
  const without: LookupFound = { kind: "record", record };
  const held: LookupFound = { kind: "record", record: { ...record, lease, transferTo: cell } };
  if (!mayBeCut(range)) return held;
  switch (verdicts.get(executionKey(range))) {
    case "granted":
      return held;
    case "running":
      return without;
    case "unknown":
      return { kind: "unknown" };
    default:
      return { kind: "ask", hold: range, without };
  }
}

const unknownTransfer: Result<never> = refused(
  "UNAVAILABLE",
  "the ledger that knows whether a transfer of the cell's claims was cut cannot be reached; retry the call",
  { retryAfterMs: 1_000 },
);

const growing = refused(
  "UNAVAILABLE",
  "the deployment is getting more shards: prepare the transfer when that is finished",
  { retryAfterMs: 60_000 },
).refusal;
