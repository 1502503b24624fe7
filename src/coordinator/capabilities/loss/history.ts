import type { HistoryPoint, Operator } from "../../kernel/messages.ts";
import { MAX_BELIEVED, RANDOM_PART, type Instances } from "../../kernel/instances.ts";
import { positionAt } from "../../kernel/ledger/position.ts";
import { deleteMeta, readMeta, writeMeta } from "../../kernel/meta.ts";
import type { Ports } from "../../kernel/ports.ts";
import { refused, type Refusal } from "../../kernel/refusal.ts";
import type { Standing } from "../../kernel/standing.ts";
import type { DeclaredLoss, LostHistory, PartState, PartStatus } from "./messages.ts";

/**
 * How far a part goes beyond every point that its peers have seen when it accepts its loss: what it has lost
 * may be more than they have seen of it.
 */
const INCARNATION_MARGIN = 1_000;
export const POSITION_MARGIN = 1_000_000;

/** The number of incarnations that a part tells when it asks what it has lost. Older ones count as known. */
export const TOLD_INCARNATIONS = 1_000;

/**
 * How many instances a part can have lost. One that starts every second needs seven weeks for them, and a
 * backup that is restored is younger. A cell that names a later incarnation has made it up (L7).
 */
const MAX_LOST_INSTANCES = 2 ** 22;

/** How far a ledger's clock can be behind that with which it answered a point that it has lost since (L7). */
const MAX_CLOCK_BEHIND_MS = 86_400_000;

/** The header of the API in which a cell tells its ledger what it has seen of it (L7). */
export const HISTORY_HEADER = "leasehold-history";

/** The loss as it is stored. */
export interface StoredLoss extends LostHistory {
  /** True once the loss was accepted, until the reconciliation is finished (H6). */
  isReconciling: boolean;
}

/** What an operator's request to reconcile a part says of a loss that nobody has noticed. */
interface Declaration {
  declared?: DeclaredLoss;
  dryRun: boolean;
  operator: Operator;
}

/**
 * Whether one part has all of its history. A peer stores the newest point that it has seen. A part that does
 * not have this point has lost something: its storage was set back, and it must not answer from what is left
 * (H4).
 */
export class History implements Standing {
  readonly #ports: Pick<Ports, "sql" | "clock" | "log">;
  readonly #name: string;
  readonly #instances: Instances;
  #loss: StoredLoss | undefined;

  /** @param name the part, as messages to operators name it: `shard 3` */
  constructor(ports: Pick<Ports, "sql" | "clock" | "log">, name: string, instances: Instances) {
    this.#ports = ports;
    this.#name = name;
    this.#instances = instances;
    this.#loadLoss();
  }

  #loadLoss(): void {
    const stored = readMeta(this.#ports.sql, "history_lost");
    this.#loss = typeof stored === "string" ? (JSON.parse(stored) as StoredLoss) : undefined;
    this.#instances.readIncluded();
  }

  get state(): PartState {
    if (this.#loss === undefined) return "complete";
    return this.#loss.isReconciling ? "reconciling" : "lost";
  }

  /** True once this part knows that it has gone back in time, until its loss is accepted. */
  get isLost(): boolean {
    return this.state === "lost";
  }

  /** What an operator is told about this part. */
  get status(): PartStatus {
    const status = { state: this.state, point: this.#instances.point ?? null };
    if (this.#loss === undefined) return { ...status, loss: null };
    const { isReconciling: _, ...loss } = this.#loss;
    return { ...status, loss };
  }

  /**
   * Checks what a peer has seen of this part, and returns why the part must refuse (H4). The first point that
   * is missing is stored, so that the part also refuses after a restart.
   *
   * @param noticedBy the peer, such as `cell 1`
   */
  admit(seen: HistoryPoint | null | undefined, noticedBy: string): Refusal | undefined {
    if (!this.isLost && seen !== null && seen !== undefined && !this.#has(seen)) {
      if (this.#instances.isSuperseded) return superseded(this.#name);
      this.#notice(seen, noticedBy);
    }
    return this.stopped;
  }

  /**
   * Returns why a point from a cell is refused that this part cannot have had, whatever it has lost (L7).
   *
   * @param present the position of the present, by the clock
   */
  refuseImpossible(seen: HistoryPoint | undefined, present: number): Refusal | undefined {
    if (seen === undefined) return undefined;
    const last = this.#instances.point ?? { incarnation: 0, position: 0 };
    const isPossible =
      seen.incarnation <= last.incarnation + MAX_LOST_INSTANCES * RANDOM_PART &&
      seen.position <= Math.max(last.position, present) + positionAt(MAX_CLOCK_BEHIND_MS);
    if (isPossible) return undefined;
    const detail = `\`${HISTORY_HEADER}\` names a point that ${this.#name} cannot have reached`;
    return refused("INVALID_ARGUMENT", `${detail}; send a value that this API answered, or leave it out`, {
      field: HISTORY_HEADER,
    }).refusal;
  }

  /** Call this when a copy of this part is newer than the part. Returns why it must refuse (H4). */
  behind(noticedBy: string): Refusal | undefined {
    if (!this.isLost) {
      if (this.#instances.isSuperseded) return superseded(this.#name);
      this.#notice(null, noticedBy);
    }
    return this.stopped;
  }

  /** An instance that was replaced has nothing of its successors, although their rows are on its disk. */
  #has(seen: HistoryPoint): boolean {
    return seen.incarnation <= this.#instances.newest && this.#instances.includes(seen);
  }

  /**
   * Stores a loss that an operator declares (H4), durably, unless the part has noticed one itself or this is
   * a dry run. Returns whether the declaration counts. It does not if a loss was accepted since the operator
   * read this part: each accepted loss makes a new incarnation, above all earlier ones.
   */
  async declare({ declared, dryRun, operator }: Declaration): Promise<boolean> {
    if (declared === undefined || declared.incarnation < this.#instances.includedBefore) return false;
    if (dryRun) return true;
    if (!this.isLost) this.#notice(null, "an operator", { reason: operator.reason ?? "" });
    await this.#ports.sql.flush();
    return true;
  }

  /** Why this part must refuse everything; undefined unless it is lost (H4). */
  get stopped(): Refusal | undefined {
    return this.isLost ? historyLost(this.#name) : undefined;
  }

  /** Why a shard that is being reconciled refuses a prepare that no verification has made (H6). */
  get incomplete(): Refusal | undefined {
    return this.state === "reconciling" ? reconciling(this.#name) : undefined;
  }

  /**
   * Accepts the loss (H6, H7), in the current transaction. The part gets a new incarnation, above all that
   * were seen, and the points of all earlier incarnations count as included from then on.
   *
   * @param seen the largest incarnation and the largest position that any peer has seen
   * @param firstPosition the first position of the new incarnation
   * @param isReconciling whether something is left to reconcile
   * @returns a function that must be called when the transaction is durable
   */
  accept(seen: HistoryPoint, firstPosition: number, isReconciling = false): () => void {
    const above = Math.min(seen.incarnation, MAX_BELIEVED) + INCARNATION_MARGIN * RANDOM_PART;
    this.#instances.raiseAbove(above, firstPosition);
    if (!isReconciling) return this.finish();
    writeMeta(this.#ports.sql, "history_lost", JSON.stringify({ ...this.#loss, isReconciling }));
    return () => this.#loadLoss();
  }

  /**
   * Makes this part reconciling, in the current transaction, because another one has lost what this one has
   * got from it (G5). A part that is lost or reconciling stays so.
   */
  inherit(from: string): void {
    if (this.#loss !== undefined) return;
    const { sql, clock } = this.#ports;
    this.#loss = {
      isReconciling: true,
      noticedBy: from,
      seen: null,
      point: this.#instances.point ?? null,
      noticedAtMs: clock.now(),
    };
    writeMeta(sql, "history_lost", JSON.stringify(this.#loss));
  }

  /** Ends the reconciliation, in the current transaction. Returns the same as `accept`. */
  finish(): () => void {
    deleteMeta(this.#ports.sql, "history_lost");
    // Read again, because the part may have noticed another loss while this became durable.
    return () => this.#loadLoss();
  }

  #notice(seen: HistoryPoint | null, noticedBy: string, more: { reason?: string } = {}): void {
    const { sql, clock, log } = this.#ports;
    const lost: StoredLoss = {
      isReconciling: false,
      noticedBy,
      seen,
      point: this.#instances.point ?? null,
      noticedAtMs: clock.now(),
    };
    sql.transaction(["record_lost_history"], () => writeMeta(sql, "history_lost", JSON.stringify(lost)));
    this.#loss = lost;
    log("history_lost", {
      part: this.#name,
      noticed_by: noticedBy,
      ...more,
      seen_incarnation: seen?.incarnation ?? 0,
      seen_position: seen?.position ?? 0,
      incarnation: lost.point?.incarnation ?? 0,
      position: lost.point?.position ?? 0,
    });
  }
}

/**
 * Returns the larger incarnation and the larger position of two points. The result may be no point of the
 * part's history, but it is above both.
 */
export function abovePoints(a: HistoryPoint, b: HistoryPoint | null | undefined): HistoryPoint {
  return {
    incarnation: Math.max(a.incarnation, b?.incarnation ?? 0),
    position: Math.max(a.position, b?.position ?? 0),
  };
}

const historyLost = (name: string): Refusal =>
  refused(
    "UNAVAILABLE",
    `${name} has lost a part of its history, so its answers could be wrong; an operator must reconcile it`,
    { reason: "HISTORY_LOST", retryAfterMs: 60_000 },
  ).refusal;

const superseded = (name: string): Refusal =>
  refused("UNAVAILABLE", `this instance of ${name} was replaced by a newer one; retry`, {
    retryAfterMs: 1_000,
  }).refusal;

const reconciling = (name: string): Refusal =>
  refused(
    "UNAVAILABLE",
    `${name} is being reconciled after a loss, and only verification may change names on it until an ` +
      "operator finishes that; retry later",
    { reason: "HISTORY_LOST", retryAfterMs: 60_000 },
  ).refusal;
