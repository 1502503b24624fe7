import type { SourceRow } from "../../../../src/users/cell/changes.ts";
import type { Conflict } from "../../../../src/users/client/api-types.ts";
import type {
  VerificationSlotRequest,
  VerificationSlot,
} from "../../../../src/coordinator/capabilities/slots/directory.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import { listOf, type Op, type Source } from "../../../../src/coordinator/kernel/messages.ts";
import type { ClaimRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { shipped, sourceType, subjectType } from "../../../support/types.ts";
import { nameKey, type LocalRow } from "../local.ts";
import type { Drifts } from "./drifts.ts";
import type { Evidence } from "./evidence.ts";
import { factKey, type Facts } from "./rows.ts";

/** The changes of one verification, over all its runs. */
interface Spending {
  changed: number;
  /** The count that was saved. */
  counted: number;
  /** Two runs overlap, because the first one lost its slot and has not noticed. Each saves its own count. */
  isShared: boolean;
}

/** A run that changes claims. */
export interface SpendingRun {
  readonly process: { readonly dead: boolean };
  readonly spending: Spending;
}

/** The changes that a verification is about to make with one lease. */
interface Repair {
  cell: string;
  lease: string;
  ops: readonly Op[];
  recentMs: number;
  /** When the verification began. */
  sinceMs: number;
  /** When it last read from the coordinator, by the coordinator's clock. */
  asOfMs: number;
  /**
   * Undefined for rows of the verification queue, which do not count as changes because they are known to be
   * wrong.
   */
  spending: Spending | undefined;
}

/**
 * Checks the changes of verifications against rows and claims as they are at that moment, however old the
 * verification's reads are.
 */
export class VerificationWatch {
  readonly #evidence: Evidence;
  readonly #drifts: Drifts;
  readonly #repairs = new Map<string, Repair>();
  /** The slot of each cell. */
  readonly #slots = new Map<string, VerificationSlot>();
  /** The slots on disk when a cell was last answered. The answer to a run that has one may be lost. */
  #storedSlots: ReadonlyMap<string, string> = new Map();
  /** The cells that wait for a slot: their places in the queue, and when they have to ask again. */
  readonly #waiting = new Map<string, { place: number; askByMs: number }>();
  /** Those of the waiting cells that have got a slot since. The answer that says so may be lost. */
  readonly #served = new Set<string>();
  #directoryMs = 0;
  readonly #spendings = new Map<string, Spending>();
  readonly #runs = new Map<string, Set<SpendingRun>>();

  constructor(evidence: Evidence, drifts: Drifts) {
    this.#evidence = evidence;
    this.#drifts = drifts;
  }

  /** A run begins. `isAnother`: it is a new verification, and no approval is pending. */
  startRun(cell: string, process: SpendingRun["process"], isAnother: boolean): SpendingRun {
    const others = [...(this.#runs.get(cell) ?? [])].filter((each) => !each.process.dead);
    const before = this.#spendings.get(cell);
    const spending = isAnother || before === undefined ? { changed: 0, counted: 0, isShared: false } : before;
    const run = { process, spending };
    if (others.length > 0) for (const each of [...others, run]) each.spending.isShared = true;
    this.#spendings.set(cell, spending);
    this.#runs.set(cell, new Set([...others, run]));
    return run;
  }

  endRun(cell: string, run: SpendingRun): void {
    this.#runs.get(cell)?.delete(run);
  }

  /** The run saved its count of changes. */
  saveCount({ spending }: SpendingRun, spent: number): void {
    spending.counted = spent;
  }

  /**
   * The lease begins, with its rows locked. `ageOf` returns a row's age by the cell's clock, or undefined if
   * the row is gone or its age does not matter.
   */
  beginRepair(repair: Repair, ageOf: (row: SourceRow) => number | undefined): void {
    const { cell, lease, ops, recentMs, asOfMs } = repair;
    this.#repairs.set(factKey(cell, lease), repair);
    for (const op of ops) {
      const claim = this.#claimOf(op);
      for (const row of [op.source, claim === undefined ? undefined : sourceOf(claim)]) {
        const ageMs = row === undefined ? undefined : ageOf(rowOf(row));
        this.#evidence.check("I20", ageMs === undefined || ageMs >= recentMs, () => {
          return (
            `cell ${cell} changes the claim on ${nameKey(op)} of a row that ` +
            `changed ${ageMs} ms ago: ${row?.type} ${row?.id}`
          );
        });
      }
      const updatedMs = claim?.updated_at_ms ?? -Infinity;
      this.#evidence.check("I20", asOfMs - updatedMs >= recentMs, () => {
        return `cell ${cell} changes the claim on ${nameKey(op)}, which changed ${asOfMs - updatedMs} ms ago`;
      });
    }
  }

  refused(cell: string, lease: string, conflicts: readonly Conflict[]): void {
    const ops = this.#repairs.get(factKey(cell, lease))?.ops ?? [];
    for (const { kind, list, index } of conflicts) {
      const op = ops.find((each) => listOf(each.kind) === list && each.index === index);
      const now = op === undefined ? undefined : this.#evidence.claimOn(op);
      // Only if the source matches, the epoch must be what differs.
      const isOnlyEpoch =
        op?.kind === "replace" || (now !== undefined && sourceOf(now).id === op?.source?.id);
      if (kind === "mismatch" && isOnlyEpoch && now?.epoch !== op?.epoch) this.#evidence.see("B10");
    }
  }

  /** A lease of a verification was decided. */
  decided({ cell, lease, state, ops }: Facts): void {
    const repair = this.#repairs.get(factKey(cell, lease));
    if (repair === undefined || state !== "COMMITTED") return;
    this.#countChanges(repair.spending, cell, ops.length);
    for (const op of ops) {
      if (this.#drifts.isSince(cell, op, repair.sinceMs)) continue;
      const row = this.#evidence.rowsOf(cell).get(nameKey(op));
      const isRight = op.kind === "destroy" ? row === undefined : row !== undefined && saysTheSame(op, row);
      this.#evidence.check("I19", isRight, () => {
        return (
          `a verification of cell ${cell} made a ${op.kind} of ${nameKey(op)} for ` +
          `${op.source?.id}, but its row is ${JSON.stringify(row)}`
        );
      });
    }
  }

  /** Checks V5. */
  #countChanges(spending: Spending | undefined, cell: string, changes: number): void {
    if (spending === undefined) return;
    spending.changed += changes;
    const { changed, counted, isShared } = spending;
    this.#evidence.check(
      "I23",
      isShared || changed <= counted,
      () => `a verification of cell ${cell} made ${changed} changes but counted ${counted}`,
    );
  }

  /** Notes which of the waiting cells have got a slot. To be called after each event. */
  observe(): void {
    if (this.#waiting.size === 0) return;
    const { disk } = this.#evidence.coordinator.directory;
    for (const { cell } of disk.readDurable<{ cell: string }>("SELECT cell FROM verification_slot"))
      if (this.#waiting.has(cell)) this.#served.add(cell);
  }

  answered(method: string, message: unknown, reply: Result<unknown>): void {
    if (method === "takeSlot")
      this.#tookSlot(message as VerificationSlotRequest, reply as Result<VerificationSlot>);
    // `true`: the run had the slot. Otherwise another run of the cell may have it.
    if (method === "releaseSlot" && reply.ok && reply.value === true)
      this.#slots.delete((message as VerificationSlotRequest).cell);
  }

  /** Checks A3. */
  #tookSlot({ cell, uuid }: VerificationSlotRequest, reply: Result<VerificationSlot>): void {
    const nowMs = this.#evidence.coordinator.directory.nowMs();
    // A clock that is set back ends places.
    if (nowMs < this.#directoryMs) this.#waiting.clear();
    this.#directoryMs = nowMs;
    const { disk } = this.#evidence.coordinator.directory;
    const stored = disk.readDurable<{ cell: string; uuid: string }>("SELECT * FROM verification_slot");
    const hadSlot = this.#storedSlots.get(cell) === uuid;
    this.#storedSlots = new Map(stored.map((slot) => [slot.cell, slot.uuid]));
    if (!reply.ok) {
      if (reply.refusal.reason !== "NO_VERIFICATION_SLOT") return;
      this.#evidence.see("slot refused");
      // Another run of a cell that has a slot gets no place.
      const place = this.#placeOf(cell);
      if (place !== undefined) {
        this.#served.delete(cell);
        this.#waiting.set(cell, place);
      }
      return;
    }
    const { verificationSlots } = this.#evidence.coordinator.limits;
    const taken = stored.length;
    this.#evidence.check(
      "I16",
      taken <= verificationSlots,
      () => `${taken} cells have a verification slot, but the limit is ${verificationSlots}`,
    );
    const before = this.#slots.get(cell);
    const own = this.#waiting.get(cell)?.place ?? Infinity;
    this.#waiting.delete(cell);
    const isAhead = ({ place, askByMs }: { place: number; askByMs: number }): boolean =>
      place < own && askByMs >= nowMs;
    const ahead = [...this.#waiting].filter(([each, its]) => isAhead(its) && !this.#served.has(each)).length;
    this.#evidence.check(
      "I16",
      before?.uuid === uuid || hadSlot || ahead <= verificationSlots - taken,
      () => `cell ${cell} got a verification slot before ${ahead} cells that asked earlier`,
    );
    if (ahead > 0) this.#evidence.see("slot kept for the first in the queue");
    if (before !== undefined) this.#evidence.see(before.uuid === uuid ? "slot renewed" : "slot expired");
    this.#evidence.see("A3");
    this.#slots.set(cell, reply.value);
  }

  /** Until when a cell was told to ask, as of the turn of the answer, which may arrive much later. */
  #placeOf(cell: string): { place: number; askByMs: number } | undefined {
    const { directory, limits } = this.#evidence.coordinator;
    const sql = "SELECT place, ask_by_ms AS askByMs FROM verification_place WHERE cell = ?";
    const [row] = directory.disk.readDurable<{ place: number; askByMs: number }>(sql, cell);
    return row && { ...row, askByMs: row.askByMs - limits.verificationSlotMs };
  }

  /** The claim that an op is about. If it has another epoch by now, the op is refused. */
  #claimOf(op: Op): ClaimRow | undefined {
    const claim = this.#evidence.claimOn(op);
    return op.kind !== "create" && claim?.epoch === op.epoch ? claim : undefined;
  }
}

const sourceOf = ({ source_type: type, source_id: id }: ClaimRow): Source => ({ type, id });

const rowOf = ({ type, id }: Source): SourceRow => ({
  type: shipped.numbered("source", type)?.name ?? String(type),
  id,
});

const saysTheSame = ({ value, subject, source }: Op, row: LocalRow): boolean =>
  value === row.value &&
  subject?.id === row.subject.id &&
  subject.type === subjectType(row.subject.type) &&
  source?.id === row.source.id &&
  source.type === sourceType(row.source.type);
