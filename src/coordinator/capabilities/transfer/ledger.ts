import type { Sightings } from "../../kernel/ledger/sightings.ts";
import type { AuditTrail, AuditedAction, AuditState } from "../../kernel/audit-trail.ts";
import { DigestSum } from "../../../common/digest.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import type { Standing } from "../../kernel/standing.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Ports } from "../../kernel/ports.ts";
import type { BeginAnswer, DecideRequest } from "../../kernel/messages.ts";
import type { LedgerMetrics } from "../../kernel/metrics/messages.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type {
  DecideTransfer,
  ListTransfers,
  PreparedShard,
  PrepareTransfer,
  ReportTransfer,
  Transfer,
  TransferCall,
  TransferPage,
  TransferReport,
  TransferStep,
} from "./messages.ts";
import {
  decodeRange,
  type BySide,
  type DigestedClaims,
  type MovedClaims,
  type TransferParty,
  type TransferSide,
} from "./range.ts";
import { guarded, type HookLists } from "../../kernel/half.ts";
import type { LedgerBegin, LedgerHooks } from "../../kernel/ledger/hooks.ts";
import { decisionsOf, type Deliveries } from "../../kernel/ledger/deliveries.ts";
import { leaseIdReused, rolledBack } from "../../kernel/ledger/begins.ts";
import type { Decisions } from "../../kernel/ledger/decisions.ts";
import { NOT_APPLIED } from "../../kernel/ledger/shard-link.ts";
import type { ShardLinks } from "../../kernel/ledger/shard-links.ts";
import { msOf } from "../../kernel/ledger/position.ts";
import type { LedgerStore } from "../../kernel/ledger/store.ts";
import type {
  StoredReport,
  StoredStep,
  StoredTransfer,
  TransferRecord,
  TransferStore,
} from "./ledger-store.ts";
import type { Slot } from "../../kernel/slot.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    prepare_transfer: true;
    accept_transfer: true;
    report_transfer: true;
    cut_transfer: true;
    abort_transfer: true;
  }
}

/** Who may carry out a step (Y7). */
const ALLOWED: Readonly<Record<"prepare" | "accept" | "cut" | "abort", readonly TransferParty[]>> = {
  prepare: ["operator", "from"],
  accept: ["operator", "to"],
  cut: ["operator", "from"],
  abort: ["operator", "from", "to"],
};

const SIDES: readonly TransferSide[] = ["from", "to"];

interface Needs {
  readonly sightings: Slot<Sightings>;
  readonly cell: string;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly commits: GroupCommit;
  readonly standing: Slot<Standing>;
  readonly decisions: Decisions;
  readonly deliveries: Deliveries;
  readonly audit: Slot<AuditTrail>;
  readonly links: Pick<ShardLinks, "decide">;
  readonly ports: Pick<Ports, "clock">;
  readonly transferStore: TransferStore;
  readonly hooks: Pick<HookLists<LedgerHooks>, "guardCell">;
}

/** The transfers to a cell, whose leases its ledger stores (Y1). */
export class Transfers {
  readonly #part: Needs;
  /** The precommits that are under way, by transfer. */
  readonly #precommits = new Map<string, Promise<Refusal | undefined>>();

  constructor(part: Needs) {
    this.#part = part;
  }

  /**
   * Returns the begin of the lease that prepares a transfer (Y1), or why there is none.
   *
   * @param isRunning whether an earlier copy of the call is being carried out, which this one joins (B2)
   */
  beginOf(request: PrepareTransfer, isRunning: boolean): Result<LedgerBegin> {
    const { from, scope, transfer, party, reason = null, switchBackOf } = request;
    const notAllowed = this.#notAllowed("prepare", party);
    if (notAllowed !== undefined) return { ok: false, refusal: notAllowed };
    if (from === this.#part.cell)
      return refused("INVALID_ARGUMENT", `cell ${from} can't be the source and the destination`, {
        field: "from",
      });
    const isChecked = switchBackOf === undefined || isRunning;
    const over = isChecked ? undefined : this.#switchBackRefusal(request, switchBackOf);
    if (over !== undefined) return { ok: false, refusal: over };
    const { placement, traces, caller, requestId } = request;
    return ok({
      placement,
      ...(traces === undefined ? {} : { traces }),
      caller,
      requestId,
      lease: transfer,
      ops: [],
      payloadHash: JSON.stringify(["transfer", from, scope, switchBackOf?.id ?? null]),
      allowMissing: false,
      isPart: true,
      transfer: {
        from,
        scope,
        party,
        reason,
        switchBackOf: switchBackOf?.id ?? null,
        ...(switchBackOf === undefined ? {} : { unchanged: movedClaims(switchBackOf) }),
      },
    });
  }

  /** A switch-back undoes a transfer that was finished a short time ago (Y9). */
  #switchBackRefusal({ from, scope }: PrepareTransfer, before: Transfer): Refusal | undefined {
    if (before.to !== from || before.from !== this.#part.cell || before.scope !== scope)
      return refused(
        "INVALID_ARGUMENT",
        `transfer ${before.id} has moved scope ${before.scope} from cell ${before.from} to cell ` +
          `${before.to}, so this one doesn't undo it`,
        { field: "switch_back_of" },
      ).refusal;
    if (before.state !== "FINISHED" || before.decided === null)
      return refused("FAILED_PRECONDITION", `transfer ${before.id} is ${before.state}; it must be FINISHED`, {
        reason: "TRANSFER_NOT_READY",
      }).refusal;
    if (before.decided.ageMs <= this.#part.limits.switchBackS * 1_000) return undefined;
    return refused(
      "FAILED_PRECONDITION",
      `transfer ${before.id} was cut more than ${this.#part.limits.switchBackS} s ago; prepare a transfer ` +
        "in the other direction instead",
      { reason: "SWITCH_BACK_OVER" },
    ).refusal;
  }

  /**
   * Returns the answer to a prepare whose id is known (B2). The lease of a decided transfer may be forgotten,
   * so that a late copy of the prepare would be a new begin. A switch-back may have been prepared just before
   * its time was over.
   */
  preparedBefore({ transfer: id, from, scope, switchBackOf }: PrepareTransfer): Result<Transfer> | undefined {
    const known = this.#part.transferStore.find(id);
    if (known === undefined) return undefined;
    const isSame =
      known.from === from &&
      known.scope === scope &&
      known.record.switchBackOf === (switchBackOf?.id ?? null);
    if (!isSame) return { ok: false, refusal: leaseIdReused() };
    return known.state === "ABORTED" ? rolledBack() : this.#answer(id);
  }

  /** Returns the answer to a prepare. */
  prepared(begun: Result<BeginAnswer>, { transfer: id }: PrepareTransfer): Result<Transfer> {
    return begun.ok ? this.#answer(id) : begun;
  }

  /** The destination agrees to get the claims. */
  accept(call: TransferCall): Promise<Result<Transfer>> {
    return this.#change(call, this.#notAllowed("accept", call.party), "accept_transfer", (record, step) =>
      record.accepted === null ? { ...record, accepted: step } : record,
    );
  }

  /** Stores what a cell has in its rows (Y6). A later report replaces an earlier one. */
  report(call: ReportTransfer): Promise<Result<Transfer>> {
    const { side, count, hash, party } = call;
    const isAllowed = party === "operator" || party === side;
    const notAllowed = isAllowed ? undefined : permissionDenied(`only that cell may report for \`${side}\``);
    return this.#change(call, notAllowed, "report_transfer", (record, step) => ({
      ...record,
      reports: { ...record.reports, [side]: { ...step, count, hash } },
    }));
  }

  async #change(
    call: TransferCall,
    notAllowed: Refusal | undefined,
    action: AuditedAction,
    change: (record: TransferRecord, step: StoredStep) => TransferRecord,
  ): Promise<Result<Transfer>> {
    if (notAllowed !== undefined) return { ok: false, refusal: notAllowed };
    const changed = await this.#part.commits.submit("change_transfer", (): Result<null> => {
      const transfer = this.#part.transferStore.find(call.transfer);
      if (transfer === undefined) return unknownTransfer(call.transfer);
      if (transfer.state !== "PREPARED") return decidedTransfer(transfer);
      const record = change(transfer.record, this.#stepOf(call));
      if (record === transfer.record) return ok(null);
      const isAcceptance = action === "accept_transfer" && call.party !== "operator";
      const full = isAcceptance ? this.#part.audit.current.cellRefusal : this.#auditRefusal(call);
      if (full !== undefined) return { ok: false, refusal: full };
      this.#part.transferStore.write({ ...transfer, record });
      const { by, keyId } = transfer.record.prepared;
      const prepared = { prepared_by: by, prepared_key_id: keyId };
      const isAccepted = action === "accept_transfer";
      this.#append(call, action, transfer, { state: transfer.state, ...(isAccepted ? prepared : {}) });
      return ok(null);
    });
    return changed.ok ? this.#answer(call.transfer) : changed;
  }

  /** Cuts or aborts a transfer: the one durable decision (Y6). */
  async decide(call: DecideTransfer): Promise<Result<Transfer>> {
    const notAllowed = this.#notAllowed(call.outcome === "CUT" ? "cut" : "abort", call.party);
    if (notAllowed !== undefined) return { ok: false, refusal: notAllowed };
    const known = this.#part.transferStore.find(call.transfer);
    if (known === undefined) return unknownTransfer(call.transfer);
    // A decision may be repeated, also when its lease is forgotten.
    if (known.state === call.outcome) return this.#answer(call.transfer);
    if (known.state !== "PREPARED") return decidedTransfer(known);
    // Shards may know of a decision that this ledger has lost.
    const unready = (await this.#part.sightings.current.compareAll()) ?? (await this.#precommit(call));
    if (unready !== undefined) return this.#undecided(call, { ok: false, refusal: unready });
    const { placement, caller, requestId, reason, traces } = call;
    const request: DecideRequest = {
      placement,
      caller,
      requestId,
      lease: call.transfer,
      outcome: call.outcome === "CUT" ? "COMMITTED" : "ROLLED_BACK",
      ...(reason === undefined ? {} : { reason }),
      ...(traces === undefined ? {} : { traces }),
    };
    const decided = await this.#part.decisions.decide(request, {
      isOfKind: true,
      refusal: () => this.#decisionRefusal(call),
      write: () => this.#writeDecision(call),
    });
    return decided.ok ? this.#answer(call.transfer) : this.#undecided(call, decided);
  }

  /** Another call may have decided it meanwhile. */
  #undecided(call: DecideTransfer, failed: { ok: false; refusal: Refusal }): Result<Transfer> {
    const now = this.#part.transferStore.find(call.transfer);
    if (now === undefined || now.state === "PREPARED") return failed;
    return now.state === call.outcome ? this.#answer(call.transfer) : decidedTransfer(now);
  }

  /**
   * Tells every shard that the transfer may be cut, before it is (Y6). Until a shard has stored that, it
   * knows by itself that its claims have not moved. Returns why the transfer can't be cut now.
   */
  async #precommit(call: DecideTransfer): Promise<Refusal | undefined> {
    if (call.outcome !== "CUT") return undefined;
    const refusal = this.#decisionRefusal(call);
    if (refusal !== undefined) return refusal;
    // Calls at the same time share the messages.
    const running =
      this.#precommits.get(call.transfer) ??
      this.#sendPrecommits(call).finally(() => this.#precommits.delete(call.transfer));
    this.#precommits.set(call.transfer, running);
    return running;
  }

  async #sendPrecommits({ transfer: id, traces }: DecideTransfer): Promise<Refusal | undefined> {
    const row = this.#part.store.find(id);
    // They tell each shard that has the range hold that it may be cut (Y6).
    const sent =
      row === undefined || row.transfer === null
        ? []
        : decisionsOf(this.#part.cell, row, "PRECOMMITTED", 0, { transfer: decodeRange(row.transfer) });
    const signal = { isOver: false };
    const answers = await Promise.all(
      sent.map(({ shard, decision }) => this.#part.links.decide(shard, decision, 1, signal, traces)),
    );
    // Before the loss, shards may have carried out the cut that the ledger has lost (Y10).
    const isRebuilt = this.#part.transferStore.find(id)?.record.isRebuilt === true;
    const silent = answers.findIndex(
      (answer) =>
        answer.kind !== "ok" && !(isRebuilt && answer.kind === "unknown" && answer.cause === NOT_APPLIED),
    );
    if (silent === -1) return undefined;
    const detail =
      `shard ${sent[silent]?.shard} has not stored that the transfer may be cut; retry, and if it has lost ` +
      "the scope's hold, abort the transfer";
    return (
      this.#part.standing.current.stopped ?? refused("UNAVAILABLE", detail, { retryAfterMs: 1_000 }).refusal
    );
  }

  /** Runs before a precommit, and again in the transaction of the decision. */
  #decisionRefusal(call: DecideTransfer): Refusal | undefined {
    const full = this.#auditRefusal(call);
    if (full !== undefined) return full;
    const transfer = this.#part.transferStore.find(call.transfer);
    if (transfer === undefined) return unknownTransfer(call.transfer).refusal;
    if (transfer.record.isRebuilt && call.party !== "operator") {
      // It may have been cut, and names may have moved (Y10).
      return refused(
        "FAILED_PRECONDITION",
        "the ledger has lost what happened to the transfer after its prepare, so an operator decides it",
        { reason: "TRANSFER_NOT_READY" },
      ).refusal;
    }
    if (call.outcome === "ABORTED") return undefined;
    // A loss may have brought a transfer back to a cell whose removal has started (H7).
    const ending = guarded(this.#part.hooks.guardCell, ", so it gets no more names; abort the transfer");
    if (ending !== undefined) return ending;
    if (transfer.record.isRebuilt) return undefined;
    const missing = this.#missing(transfer);
    if (missing.length === 0) return undefined;
    return refused("FAILED_PRECONDITION", `the transfer can't be cut: ${missing.join("; ")}`, {
      reason: "TRANSFER_NOT_READY",
    }).refusal;
  }

  #writeDecision(call: DecideTransfer): void {
    const transfer = this.#part.transferStore.find(call.transfer);
    if (transfer === undefined) throw new Error("a transfer whose lease is granted has no record");
    const decided = { ...transfer.record, decided: this.#stepOf(call) };
    this.#part.transferStore.write({ ...transfer, state: call.outcome, record: decided });
    this.#append(call, call.outcome === "CUT" ? "cut_transfer" : "abort_transfer", transfer, {
      state: call.outcome,
    });
  }

  /** The entry of an operator's prepare has no room (O3). */
  guardGrant({ transfer, caller }: LedgerBegin): Refusal | undefined {
    if (transfer === undefined || caller.role !== "operator") return undefined;
    return this.#part.audit.current.refusal;
  }

  counts(nowMs: number): Pick<LedgerMetrics, "preparedTransfers" | "oldestTransferMs"> {
    const positions = this.#part.transferStore.openPositions();
    const agesMs = positions.map((position) => nowMs - msOf(position));
    return { preparedTransfers: positions.length, oldestTransferMs: Math.max(0, ...agesMs) };
  }

  find(call: TransferCall): Result<Transfer> {
    return this.#answer(call.transfer);
  }

  list({ before, from, limit }: ListTransfers): TransferPage {
    const found = this.#part.transferStore.list(before ?? Number.MAX_SAFE_INTEGER, from, limit + 1);
    const transfers = found.slice(0, limit).map((transfer) => this.#transferOf(transfer));
    return { transfers, next: found.length > limit ? (transfers.at(-1)?.position ?? null) : null };
  }

  #answer(id: string): Result<Transfer> {
    const transfer = this.#part.transferStore.find(id);
    return transfer === undefined ? unknownTransfer(id) : ok(this.#transferOf(transfer));
  }

  #transferOf(stored: StoredTransfer): Transfer {
    const { id, position, from, scope, record } = stored;
    const expected = expectedOf(record.shards);
    const lease = this.#part.store.find(id);
    const isApplied =
      stored.state !== "PREPARED" && (lease === undefined || this.#part.store.isApplied(lease));
    return {
      id,
      from,
      to: this.#part.cell,
      scope,
      state: isApplied && stored.state === "CUT" ? "FINISHED" : stored.state,
      position,
      prepared: this.#stepSince(record.prepared),
      accepted: record.accepted && this.#stepSince(record.accepted),
      decided: record.decided && this.#stepSince(record.decided),
      switchBackOf: record.switchBackOf,
      isRebuilt: record.isRebuilt,
      shards: record.shards,
      expected,
      reports: {
        from: this.#reportOf(record.reports.from, expected.from),
        to: this.#reportOf(record.reports.to, expected.to),
      },
      missing: stored.state === "PREPARED" ? this.#missing(stored) : [],
      unfinishedShards: isApplied ? 0 : this.#part.deliveries.unconfirmedShards(id),
    };
  }

  /** Everything for which a cut is refused (Y6). */
  #missing({ from, record }: StoredTransfer): string[] {
    const expected = expectedOf(record.shards);
    const { transferVerifiedS } = this.#part.limits;
    const missing = record.accepted === null ? [`cell ${this.#part.cell} has not accepted it`] : [];
    for (const side of SIDES) {
      const cell = side === "from" ? from : this.#part.cell;
      const report = record.reports[side];
      // The other cell reads this too, so it has no count (Y7).
      if (report === null) missing.push(`cell ${cell} has not reported its rows`);
      else if (!isEqual(report, expected[side]))
        missing.push(`the rows that cell ${cell} has reported differ from the claims`);
      else if (!this.#isFresh(report))
        missing.push(`cell ${cell} has not reported its rows within the last ${transferVerifiedS} s`);
    }
    return missing;
  }

  /** A report from the future has no age, because the clock went back (M4). */
  #isFresh({ atMs }: StoredReport): boolean {
    const ageMs = this.#part.ports.clock.now() - atMs;
    return ageMs >= 0 && ageMs <= this.#part.limits.transferVerifiedS * 1_000;
  }

  #reportOf(report: StoredReport | null, expected: DigestedClaims): TransferReport | null {
    if (report === null) return null;
    const { count, hash } = report;
    return { ...this.#stepSince(report), count, hash, isEqual: isEqual(report, expected) };
  }

  #stepSince({ atMs, by, keyId, reason }: StoredStep): TransferStep {
    return { atMs, ageMs: Math.max(0, this.#part.ports.clock.now() - atMs), by, keyId, reason };
  }

  #stepOf({ party, caller, reason }: TransferCall): StoredStep {
    return { atMs: this.#part.ports.clock.now(), by: party, keyId: caller.keyId, reason: reason ?? null };
  }

  #notAllowed(step: keyof typeof ALLOWED, party: TransferParty): Refusal | undefined {
    const names = { operator: "an operator", from: "the source", to: "the destination" };
    if (ALLOWED[step].includes(party)) return undefined;
    return permissionDenied(`only ${ALLOWED[step].map((each) => names[each]).join(" or ")} may ${step} it`);
  }

  #auditRefusal({ party }: TransferCall): Refusal | undefined {
    return party === "operator" ? this.#part.audit.current.refusal : undefined;
  }

  /**
   * The steps of cells have entries from the acceptance on, which names who prepared the transfer (O1). So a
   * source fills no audit of a cell that has agreed to nothing.
   */
  #append(call: TransferCall, action: AuditedAction, before: StoredTransfer, after: AuditState): void {
    const { caller, requestId, reason = null, transfer, party } = call;
    const isAgreed = action === "accept_transfer" || before.record.accepted !== null;
    if (party !== "operator" && (!isAgreed || action === "report_transfer")) return;
    this.#part.audit.current.append(
      { keyId: caller.keyId, requestId, reason },
      {
        action,
        cell: this.#part.cell,
        target: transfer,
        before: { state: before.state },
        after: { ...after, by: party },
      },
    );
  }
}

/** The source has the claims that are moved, and the destination will have them beside its own. */
function expectedOf(shards: readonly PreparedShard[]): BySide<DigestedClaims> {
  const [from, to] = [new DigestSum(), new DigestSum()];
  for (const shard of shards) {
    from.addHash(shard.from.hash, shard.from.count);
    for (const { hash, count } of [shard.from, shard.to]) to.addHash(hash, count);
  }
  return { from: digestOf(from), to: digestOf(to) };
}

const digestOf = ({ count, hash }: DigestSum): DigestedClaims => ({ count, hash });

/** What each shard must have for a switch-back. */
const movedClaims = ({ shards }: Transfer): Record<number, MovedClaims> =>
  Object.fromEntries(shards.map(({ shard, epoch, from: { count } }) => [shard, { epoch, count }]));

const isEqual = (one: DigestedClaims, other: DigestedClaims): boolean =>
  one.count === other.count && one.hash === other.hash;

const permissionDenied = (detail: string): Refusal => refused("PERMISSION_DENIED", detail).refusal;

const unknownTransfer = (id: string): { ok: false; refusal: Refusal } =>
  refused("NOT_FOUND", `this cell is not the destination of a transfer ${id}, or it was forgotten`);

const decidedTransfer = ({ state }: StoredTransfer): { ok: false; refusal: Refusal } =>
  refused("FAILED_PRECONDITION", state === "CUT" ? "the transfer was cut" : "the transfer was aborted", {
    reason: state === "CUT" ? "TRANSFER_CUT" : "TRANSFER_ABORTED",
  });
