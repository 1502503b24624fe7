import { decodeExecutions } from "../../../../src/coordinator/kernel/ledger/executions.ts";
import { defaultLimits } from "../../../../src/common/limits.ts";
import { decodePayload } from "../../../../src/coordinator/kernel/ledger/payload.ts";
import { nameKey } from "../local.ts";
import type { Part } from "../part.ts";
import { Violation } from "../violation.ts";
import type { Evidence } from "./evidence.ts";
import type { TransferWatch } from "./transfer-watch.ts";
import {
  attemptOf,
  factKey,
  isApplied,
  isHeldAsCreate,
  isHoldOf,
  throughOf,
  type Facts,
  type LedgerRow,
} from "./rows.ts";

/** A lease that stayed granted for this long has outlived every timer. */
const LONG_MS = 120_000;

/** What the decision of a lease may take beyond its reason: two pages of the database. */
const ROOM_BYTES = 8_192;

/** Checks every change of what is durable in a ledger. */
export class LedgerWatch {
  readonly #evidence: Evidence;
  readonly #transfers: TransferWatch;
  readonly #versions = new Map<string, number>();
  readonly #positions = new Map<string, number>();
  readonly #onDecided: (fact: Facts) => void;

  constructor(evidence: Evidence, transfers: TransferWatch, onDecided: (fact: Facts) => void) {
    this.#evidence = evidence;
    this.#transfers = transfers;
    this.#onDecided = onDecided;
  }

  refresh(): void {
    for (const [cell, part] of this.#evidence.coordinator.ledgers)
      if (this.#versions.get(cell) !== part.disk.version) this.#readLedger(cell, part);
  }

  #readLedger(cell: string, part: Part<object>): void {
    this.#versions.set(cell, part.disk.version);
    // A start may have ended between two steps of the schema.
    const isWhole =
      part.disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'pending_lease'").length > 0;
    if (!isWhole) return;
    const rows = part.disk.readDurable<LedgerRow>(
      "SELECT lease, decided, state, fence, pending, position, created_position, created_at_ms, " +
        "decided_at_ms, incarnation, counter, epochs, payload, creates, destroys, replaces, missing, " +
        "decided_by, reason, transfer FROM lease",
    );
    this.#checkPositions(cell, rows);
    const through = throughOf(part);
    const present = new Set<string>();
    for (const row of rows) {
      present.add(factKey(cell, row.lease));
      this.#evidence.require(
        "I5",
        row.decided === 0 || row.payload === null,
        () => `lease ${row.lease} is decided, but its row still has its batch`,
      );
      this.#evidence.check(
        "I5",
        row.decided > 0 || (row.pending === 1) === row.created_position <= through,
        () => `lease ${row.lease} is granted, but a restart would not find it`,
      );
      const hasApplied = isApplied(row, through);
      if (hasApplied && row.fence === 0) this.#evidence.see("S2");
      this.#readLease(cell, row, hasApplied);
    }
    for (const [key, fact] of this.#evidence.facts)
      if (fact.cell === cell && !present.has(key)) this.#vanished(key, fact);
    const outstanding = rows.filter(({ decided }) => decided === 0).length;
    const { outstandingLeases, fences, ledgerBytes, reasonBytes, auditEntries } =
      this.#evidence.coordinator.limits;
    // Transfers have limits of their own (Y2).
    const leases = rows.filter(({ decided, transfer }) => decided === 0 && transfer === null).length;
    this.#evidence.check(
      "I16",
      leases <= outstandingLeases,
      () => `cell ${cell} has ${leases} leases outstanding, but the limit is ${outstandingLeases}`,
    );
    const fenced = rows.filter(({ decided }) => decided === 2).length;
    this.#evidence.check(
      "I16",
      fenced <= fences,
      () => `cell ${cell} has ${fenced} fences without begins, but the limit is ${fences}`,
    );
    const bytes =
      part.disk.durableBytes +
      outstanding * (ROOM_BYTES + reasonBytes) +
      Math.max(0, auditEntries - this.#evidence.auditEntriesOf(part)) * reasonBytes;
    this.#evidence.check(
      "I16",
      bytes <= ledgerBytes,
      () =>
        `the ledger of cell ${cell} needs ${bytes} bytes for its ${outstanding} leases and its audit, ` +
        `but the limit is ${ledgerBytes}`,
    );
  }

  /**
   * Each change of a lease of a cell gets a larger position than all changes before, whatever the ledger's
   * clock does.
   */
  #checkPositions(cell: string, rows: readonly LedgerRow[]): void {
    const last = this.#positions.get(cell) ?? 0;
    const changed = rows
      .filter((row) => this.#evidence.facts.get(factKey(cell, row.lease))?.position !== row.position)
      .map(({ position }) => position);
    const isGrowing =
      changed.every((position) => position > last) && new Set(changed).size === changed.length;
    this.#evidence.check(
      "I12",
      isGrowing,
      () => `a change of a lease of cell ${cell} has a position that is not the largest`,
    );
    this.#positions.set(cell, Math.max(last, ...changed));
  }

  #readLease(cell: string, row: LedgerRow, hasApplied: boolean): void {
    const key = factKey(cell, row.lease);
    const before = this.#evidence.facts.get(key);
    // The lease was pruned and then fenced between two reads.
    if (before?.execution !== undefined && row.fence === 1) this.#vanished(key, before);
    if (before === undefined || !this.#evidence.facts.has(key)) {
      const fact = { ...factOf(cell, row, hasApplied), seenAtMs: this.#evidence.coordinator.nowMs() };
      this.#evidence.facts.set(key, fact);
      this.#evidence.pruned.delete(key);
      if (row.fence === 0) this.#granted(fact, row.missing);
      else this.#evidence.see("C7");
      if (fact.state !== "GRANTED") this.#decided(fact);
      return;
    }
    before.row = row;
    if (before.state !== row.state) {
      this.#evidence.check(
        "I6",
        before.state === "GRANTED",
        () => `lease ${key} was ${before.state} and is ${row.state}`,
      );
      before.state = row.state;
      before.position = row.position;
      this.#evidence.check(
        "I6",
        row.position > before.createdPosition,
        () => `lease ${key} was decided at a position before its grant`,
      );
      this.#decided(before);
    }
    if (hasApplied && !before.isApplied) this.#applied(before);
    before.isApplied = hasApplied;
  }

  /** The grant is durable, so every bucket must be held now and until the lease is decided. */
  #granted(fact: Facts, missing: number): void {
    const { cell, lease, execution } = fact;
    this.#evidence.see("B5");
    if (execution === undefined)
      throw new Violation("I4", `lease ${lease} of cell ${cell} is granted without an attempt`);
    const attempt = attemptOf(cell, execution);
    this.#evidence.check(
      "I7",
      !this.#evidence.released.has(attempt),
      () => `attempt ${attempt} of lease ${lease} is granted after it was released`,
    );
    this.#transfers.granted(fact);
    if (this.#evidence.removing.has(cell)) this.#grantedToRemoval(fact);
    const keys = this.#evidence.keysOf.get(factKey(cell, lease)) ?? new Set();
    this.#evidence.require(
      "I17",
      this.#evidence.removing.has(cell) || [...keys].some((key) => !this.#evidence.revoked.has(key)),
      () => `lease ${lease} was granted to revoked keys only: ${[...keys].join(" ")}`,
    );
    const isBroughtForward = this.#evidence.broughtForward.has(factKey(cell, lease));
    if (isBroughtForward && this.#evidence.frozen.has(cell)) this.#evidence.see("H9");
    this.#evidence.require(
      "I17",
      isBroughtForward || !this.#evidence.frozen.has(cell),
      () => `lease ${lease} is granted to cell ${cell}, whose freeze was acknowledged`,
    );
    const isVerified = this.#evidence.verified.has(factKey(cell, lease));
    this.#evidence.require(
      "I17",
      isVerified || this.#evidence.removing.has(cell) || !this.#evidence.draining.has(cell),
      () => `lease ${lease} is granted to cell ${cell}, which is draining, and no verification began it`,
    );
    if (isVerified && this.#evidence.draining.has(cell)) this.#evidence.see("granted while draining");
    let absent = 0;
    for (const op of fact.ops) {
      const epoch = execution.epochs[op.shard];
      const hold = this.#evidence.holdOn(op);
      const isHeld = hold !== undefined && isHoldOf(hold, fact, op);
      if (!isHeld && op.kind === "destroy" && missing > 0) absent += 1;
      else
        this.#evidence.check(
          "I4",
          isHeld,
          () => `lease ${lease} of cell ${cell} is granted, but does not hold ${nameKey(op)}`,
        );
      if (isHeld && isHeldAsCreate(hold, op)) this.#evidence.see("B12");
      const claimed = this.#evidence.claimOn(op)?.epoch;
      const isAsRead = !isHeld || op.epoch === undefined || op.epoch === claimed;
      this.#evidence.require(
        "I3",
        isAsRead,
        () =>
          `lease ${lease} of cell ${cell} gave epoch ${op.epoch} of ` +
          `${nameKey(op)}, whose epoch is ${claimed}`,
      );
      const given = `${attempt}@${op.shard}#${epoch}`;
      this.#evidence.check(
        "I9",
        !this.#evidence.calledGone.has(given),
        () => `attempt ${attempt} of lease ${lease} is granted after it was called gone`,
      );
    }
    this.#evidence.check(
      "I4",
      absent <= missing,
      () => `lease ${lease} of cell ${cell} lacks ${absent} of its destroys, but counted ${missing}`,
    );
  }

  /** A removal only gives up claims, each as it was listed (B10). */
  #grantedToRemoval({ cell, lease, ops, row }: Facts): void {
    this.#evidence.check(
      "I36",
      row.transfer === null && ops.every(({ kind, epoch }) => kind === "destroy" && epoch !== undefined),
      () => `lease ${lease} of cell ${cell}, which is being removed, is more than destroys of listed claims`,
    );
    this.#evidence.see("a removal released names");
  }

  #decided(fact: Facts): void {
    this.#evidence.see("C1");
    fact.decidedAtMs = this.#evidence.coordinator.nowMs();
    if (this.#evidence.coordinator.nowMs() - fact.seenAtMs > LONG_MS) this.#evidence.see("C5");
    const { cell, lease, state } = fact;
    this.#evidence.check(
      "I6",
      this.#evidence.requested.has(`${factKey(cell, lease)}/${state}`) ||
        (this.#evidence.removing.has(cell) && state === "COMMITTED"),
      () => `lease ${lease} of cell ${cell} is ${state}, but no caller requested that`,
    );
    this.#transfers.decided(fact);
    this.#onDecided(fact);
  }

  /** The ledger counts the decision as applied on every shard. */
  #applied(fact: Facts): void {
    this.#transfers.applied(fact);
    for (const op of fact.ops) {
      const hold = this.#evidence.holdOn(op);
      const isHeld = hold !== undefined && isHoldOf(hold, fact, op);
      this.#evidence.check(
        "I5",
        !isHeld,
        () => `lease ${fact.lease} counts as applied, but still holds ${nameKey(op)}`,
      );
    }
  }

  #vanished(key: string, fact: Facts): void {
    this.#evidence.check(
      "I6",
      fact.state !== "GRANTED",
      () => `lease ${key} was granted, but its row is gone`,
    );
    this.#evidence.check("I5", fact.isApplied, () => `lease ${key} was forgotten before it was applied`);
    const { outcomeRetentionS, lateBeginS, ledgerBytes } = this.#evidence.coordinator.limits;
    const ledger = this.#evidence.coordinator.ledger(fact.cell);
    const ageS = (ledger.nowMs() - decidedAtMs(ledger, fact.row)) / 1_000;
    const isUncounted = fact.row.decided === 2;
    const mayBeShortOfSpace = ledgerBytes < defaultLimits.ledgerBytes;
    if (isUncounted) this.#evidence.see("a fence was forgotten");
    this.#evidence.check(
      "I6",
      ageS >= (isUncounted || mayBeShortOfSpace ? lateBeginS : outcomeRetentionS) - 1,
      () => `the outcome of lease ${key} was forgotten after ${ageS} s`,
    );
    this.#evidence.see("S1");
    this.#evidence.facts.delete(key);
    this.#evidence.pruned.add(key);
    this.#evidence.everPruned.add(key);
    if (fact.state === "COMMITTED") this.#evidence.forgotten.add(key);
  }
}

/** When a lease was decided, by the rules of the ledger: its stamp, or an earlier time of a mark. */
function decidedAtMs(ledger: Part<object>, { position, decided_at_ms }: LedgerRow): number {
  const [row] = ledger.disk.readDurable<{ value: string }>(
    "SELECT value FROM meta WHERE name = 'clock_marks'",
  );
  const marks = JSON.parse(row?.value ?? "[]") as { position: number; atMs: number }[];
  const times = marks.filter((mark) => position <= mark.position).map(({ atMs }) => atMs);
  return Math.min(decided_at_ms ?? Infinity, ...times);
}

function factOf(cell: string, row: LedgerRow, hasApplied: boolean): Omit<Facts, "seenAtMs"> {
  const { lease, state, incarnation, counter, position, created_position, fence } = row;
  const executions = decodeExecutions(row.epochs ?? "{}");
  const epochs = Object.fromEntries([...executions].map(([shard, { epoch }]) => [shard, epoch]));
  return {
    cell,
    lease,
    state,
    execution: fence === 1 ? undefined : { incarnation, counter, epochs },
    ops: row.payload === null ? [] : decodePayload(row.payload),
    row,
    isApplied: hasApplied,
    position,
    createdPosition: created_position,
  };
}
