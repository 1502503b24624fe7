import {
  heldAs,
  listOf,
  type BucketKey,
  type HeldKey,
  type Op,
  type Prepare,
  type PrepareAnswer,
} from "../messages.ts";
import type { Conflict, ConflictKind } from "../refusal.ts";
import { sourceOrder } from "../../../common/source-order.ts";
import type { Slot } from "../slot.ts";
import type { Queues } from "./queues.ts";
import { bucketText, type Claimant, type ExecutionId, type Holding, type HoldRow } from "./rows.ts";
import type { Occupants, ShardStore } from "./store.ts";
import type { Ports } from "../ports.ts";
import type { ShardLog } from "./shard-log.ts";
import type { WideHolds } from "./wide-holds.ts";

/**
 * How long a caller should wait before it retries a leased bucket. A begin and its commit together usually
 * take well under a second.
 */
const LEASED_RETRY_AFTER_MS = 1_000;

type Finding = { kind: "clear" } | { kind: "missing" } | { kind: ConflictKind; owner?: "self" | "other" };

interface Needs {
  readonly store: ShardStore;
  readonly queues: Slot<Pick<Queues, "firstBefore">>;
  readonly wide: Slot<Pick<WideHolds, "inWay">>;
  readonly ports: Pick<Ports, "randomness">;
  readonly log: Pick<ShardLog, "nextEpoch">;
}

/**
 * Carries out the prepares of one message, in their order. Runs inside a transaction, and does not wait. What
 * the buckets have is read once, and the new holds are written at the end.
 */
export class Preparation {
  readonly #part: Needs;
  readonly #nowMs: number;
  /** With the holds that were made by earlier prepares of the message. */
  readonly #occupants: Map<string, Occupants>;
  readonly #made: HoldRow[] = [];

  constructor(part: Needs, nowMs: number, prepares: readonly Prepare[]) {
    this.#part = part;
    this.#nowMs = nowMs;
    this.#occupants = part.store.occupants(prepares.flatMap(({ ops }) => ops));
  }

  /**
   * Grants all ops of one lease on this shard, or none (B4). A refusal lists every op that is in the way.
   */
  carryOut(request: Prepare): PrepareAnswer {
    const conflicts: Conflict[] = [];
    const held: HeldKey[] = [];
    const clear: Op[] = [];
    for (const op of request.ops) {
      const { claim, hold } = this.#occupantsOf(op);
      const examined = examine(op, request, claim, hold);
      const isClear = examined.kind === "clear" || examined.kind === "leased";
      const wide = this.#part.wide.current.inWay(op, request.cell, claim, isClear);
      const finding =
        wide === undefined
          ? this.#unlessAwaited(op, request, examined)
          : {
              kind: "leased" as const,
              owner: wide.cell === request.cell ? ("self" as const) : ("other" as const),
            };
      if (finding.kind === "clear") clear.push(op);
      else if (finding.kind !== "missing") conflicts.push(conflictOf(op, finding));
      if (finding.kind === "leased")
        held.push({
          type: op.type,
          canonical: op.canonical,
          ...(hold === undefined ? wide?.named : undefined),
        });
    }
    if (conflicts.length > 0) return { granted: false, conflicts, held };
    const missing = request.ops.length - clear.length;
    if (clear.length === 0) return { granted: true, epoch: 0, missing };
    const epoch = this.#part.log.nextEpoch();
    for (const op of clear) this.#hold(op, { ...request, epoch });
    return { granted: true, epoch, missing };
  }

  /** A free name is kept for the begin that has waited longest for it (B11). */
  #unlessAwaited(op: Op, request: Prepare, finding: Finding): Finding {
    const first = finding.kind === "clear" ? this.#part.queues.current.firstBefore(op, request) : undefined;
    if (first === undefined) return finding;
    return { kind: "leased", owner: first.cell === request.cell ? "self" : "other" };
  }

  #hold(op: Op, holder: ExecutionId): void {
    const { claim } = this.#occupantsOf(op);
    const held = { ...op, kind: heldAs(op.kind, claim !== undefined) };
    const hold = newHold(held, holder, this.#part.ports.randomness.uuid(), this.#nowMs);
    this.#made.push(hold);
    this.#occupants.set(bucketText(op.type, op.canonical), { claim, hold });
  }

  #occupantsOf({ type, canonical }: BucketKey): Occupants {
    const occupants = this.#occupants.get(bucketText(type, canonical));
    // A name that SQLite returns in another form would look free.
    if (occupants === undefined)
      throw new Error("the database has returned no row for a name that was asked");
    return occupants;
  }

  /** The number of new holds so far. */
  get made(): number {
    return this.#made.length;
  }

  /** Must be called once all prepares are carried out. Returns the new holds. */
  write(): readonly HoldRow[] {
    this.#part.store.insertHolds(this.#made);
    return this.#made;
  }
}

/** Makes the hold of an op. A destroy needs nothing but the name. */
export function newHold(op: Op, holder: ExecutionId, uuid: string, nowMs: number): HoldRow {
  const { kind, subject, source, scope = null } = op;
  const keep = kind !== "destroy" && subject !== undefined && source !== undefined;
  return {
    bucket_type: op.type,
    canonical: op.canonical,
    kind,
    cell: holder.cell,
    lease: holder.lease,
    incarnation: holder.incarnation,
    counter: holder.counter,
    epoch: holder.epoch,
    held_at_ms: nowMs,
    uuid: keep ? uuid : null,
    value: keep ? op.value : null,
    subject_type: keep ? subject.type : null,
    subject_id: keep ? subject.id : null,
    source_type: keep ? source.type : null,
    source_id: keep ? source.id : null,
    source_order: keep ? sourceOrder(source.id) : null,
    scope: keep ? scope : null,
    granted_by: null,
  };
}

/**
 * Returns the first kind of conflict that matches, in the order of docs/reference/http-api.md. A hold of
 * another attempt of the same lease is a conflict like any other (B4).
 */
function examine(
  op: Op,
  { cell, allowMissing }: Prepare,
  claim: Claimant | undefined,
  hold: Holding | undefined,
): Finding {
  const leased = (by: Holding): Finding => ({ kind: "leased", owner: by.cell === cell ? "self" : "other" });
  if (op.kind === "create") {
    if (hold !== undefined) return leased(hold);
    return claim === undefined
      ? { kind: "clear" }
      : { kind: "taken", owner: claim.cell === cell ? "self" : "other" };
  }
  // A destroy may be committed, and then the claim has no owner. Only its ledger knows (B8).
  if (claim !== undefined && claim.cell !== cell && hold?.kind !== "destroy")
    return { kind: "not_owner", owner: "other" };
  if (hold !== undefined) return leased(hold);
  if (claim === undefined) return allowMissing ? withoutClaim(op) : { kind: "absent" };
  return matches(op, claim) ? { kind: "clear" } : { kind: "mismatch", owner: "self" };
}

/** What a begin that allows missing claims finds if a name has none (B12). */
function withoutClaim({ kind, epoch }: Op): Finding {
  if (kind === "destroy") return { kind: "missing" };
  return epoch === undefined ? { kind: "clear" } : { kind: "absent" };
}

function matches({ kind, subject, source, epoch }: Op, claim: Claimant): boolean {
  // A change that names an epoch applies only to the claim with that epoch (B10).
  if (epoch !== undefined && epoch !== claim.epoch) return false;
  // A replace changes subject and source, so it is not compared with them.
  if (kind === "replace") return true;
  if (subject !== undefined && (subject.type !== claim.subject_type || subject.id !== claim.subject_id))
    return false;
  return source === undefined || (source.type === claim.source_type && source.id === claim.source_id);
}

function conflictOf(op: Op, finding: { kind: ConflictKind; owner?: "self" | "other" }): Conflict {
  return {
    list: listOf(op.kind),
    index: op.index,
    kind: finding.kind,
    ...(finding.owner === undefined ? {} : { owner: finding.owner }),
    ...(finding.kind === "leased" ? { retryAfterMs: LEASED_RETRY_AFTER_MS } : {}),
  };
}
