import { ask } from "./ask.ts";
import type { Confirmed } from "./directory/messages.ts";
import type { Confirm, Envelope } from "./messages.ts";
import { readMeta, writeMeta } from "./meta.ts";
import type { Limits } from "../../common/limits.ts";
import type { Peers } from "./methods.ts";
import { placementOf, shardsOf, type Placement } from "./placement.ts";
import type { Answer, Ports } from "./ports.ts";
import { refused, type Refusal } from "./refusal.ts";

/** Stores a placement that the directory has confirmed. It must call `adopt` in the transaction. */
export type Change = (confirmed: Confirmed, adopt: () => void) => void | Promise<void>;

export interface GuardedObject {
  /** Runs once per instance, before it answers its first message. */
  firstUse: () => Promise<void>;
  /** The cell of a ledger, which the directory checks. Undefined for a shard. */
  cell?: string;
  /** What else changes with the placement. Undefined: nothing. */
  change?: Change;
}

/**
 * Checks that an object and every message to it have the same placement (P1). Before its first use, the
 * object confirms its placement with the directory and stores a copy. If it is told of one with more shards,
 * by a message or by a refusal, it asks the directory again, and changes when the directory says so (G3).
 */
export class PlacementGuard {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #peers: Pick<Peers, "directory">;
  readonly #object: GuardedObject;
  #used: Promise<void> | undefined;
  #confirmed: Placement | undefined;
  #hasChanged: boolean;
  /** The question about a newer placement that is under way. */
  #asking: Promise<Refusal | undefined> | undefined;

  constructor(ports: Ports, limits: Limits, peers: Pick<Peers, "directory">, object: GuardedObject) {
    this.#ports = ports;
    this.#limits = limits;
    this.#peers = peers;
    this.#object = object;
    const kept = readMeta(ports.sql, "placement");
    if (typeof kept === "string") this.#confirmed = kept;
    this.#hasChanged = readMeta(ports.sql, "has_grown") !== undefined;
  }

  get placement(): Placement | undefined {
    return this.#confirmed;
  }

  /** True if rows here may have numbers of shards that were computed with an earlier placement. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  /** Checks the message locally. Undefined if it fits, or if no placement is confirmed yet. */
  #check(message: Envelope): Refusal | undefined {
    if (this.#confirmed === undefined || this.#confirmed === message.placement) return undefined;
    return placementMismatch(this.#confirmed, message.placement);
  }

  /** Returns why the rest of a message is not carried out whose placement has changed meanwhile (M1, G3). */
  refuseOutdated(message: Envelope): Refusal | undefined {
    return this.#check(message);
  }

  /** Runs `firstUse` once per instance. If it fails, the next message tries again. */
  async #start(): Promise<void> {
    try {
      await this.#object.firstUse();
    } catch (error) {
      this.#used = undefined;
      throw error;
    }
  }

  /** Does what must be done before the first message, for a message that needs no confirmed placement. */
  async begin(): Promise<void> {
    await (this.#used ??= this.#start());
  }

  /**
   * Checks a message and returns the reason to refuse it, or undefined. A caller must wait for this before it
   * acts on the message. Only the first use of an object, and a newer placement, make it ask the directory.
   */
  async admit(message: Envelope): Promise<Refusal | undefined> {
    await this.begin();
    const refusal =
      this.#confirmed === undefined
        ? await this.#confirm(message.placement)
        : await this.#follow(message.placement);
    return refusal ?? this.#check(message);
  }

  /** Follows a newer placement that a peer has told by refusing a message. Returns whether it has changed. */
  async learn({ reason, placement }: Refusal): Promise<boolean> {
    const before = this.#confirmed;
    if (reason !== "PLACEMENT_MISMATCH" || placement === undefined || before === undefined) return false;
    await this.#follow(placement);
    return this.#confirmed !== before;
  }

  /** Confirms the first placement. */
  async #confirm(placement: Placement): Promise<Refusal | undefined> {
    const answer = await this.#ask(placement);
    if (answer.kind === "refused") return answer.refusal;
    if (answer.kind === "unknown")
      return refused(
        "UNAVAILABLE",
        "this object is used for the first time and cannot reach the directory; retry the call",
      ).refusal;
    if (answer.value.placement !== placement) return placementMismatch(answer.value.placement, placement);
    // Another message may have been admitted during the wait (M1).
    if (this.#confirmed === undefined) await this.#change(answer.value);
    // A shard that the placement does not have adopts none.
    return this.#confirmed === undefined ? placementMismatch(answer.value.placement, placement) : undefined;
  }

  /** Asks whether a newer placement is in force, unless this one is not newer. */
  #follow(placement: Placement): Promise<Refusal | undefined> | undefined {
    if (!isNewer(placement, this.#confirmed)) return undefined;
    return (this.#asking ??= this.#askAgain(placement).finally(() => {
      this.#asking = undefined;
    }));
  }

  async #askAgain(placement: Placement): Promise<Refusal | undefined> {
    const answer = await this.#ask(placement);
    // Without a placement in force, this object keeps its own: the message may be from before the first cell,
    // and this object shows that the directory has lost what it had (P2).
    if (answer.kind === "refused") return undefined;
    if (answer.kind === "unknown")
      return refused(
        "UNAVAILABLE",
        "this object is told of more shards and cannot reach the directory; retry the call",
        { retryAfterMs: 1_000 },
      ).refusal;
    if (isNewer(answer.value.placement, this.#confirmed)) await this.#change(answer.value);
    return undefined;
  }

  #ask(placement: Placement): Promise<Answer<Confirmed>> {
    const { cell } = this.#object;
    const confirm: Confirm = {
      placement,
      ...(cell === undefined ? {} : { cell }),
    };
    return ask(this.#ports.clock, this.#limits.inquiryTimeoutMs, () =>
      this.#peers.directory().confirm(confirm),
    );
  }

  async #change(confirmed: Confirmed): Promise<void> {
    const adopt = (): void => this.adopt(confirmed.placement);
    const { change = this.#write } = this.#object;
    await change(confirmed, adopt);
  }

  readonly #write: Change = (_, adopt) => {
    this.#ports.sql.transaction(["confirm_placement"], adopt);
  };

  /** Stores a placement, in the current transaction, unless a newer one is stored. */
  adopt(placement: Placement): void {
    const isFirst = this.#confirmed === undefined;
    if (!isFirst && !isNewer(placement, this.#confirmed)) return;
    writeMeta(this.#ports.sql, "placement", placement);
    this.#confirmed = placement;
    if (!isFirst) this.noteChange();
  }

  /** Notes, in the current transaction, that rows here have numbers of shards of an earlier placement. */
  noteChange(): void {
    if (this.#hasChanged) return;
    writeMeta(this.#ports.sql, "has_grown", 1);
    this.#hasChanged = true;
  }
}

/** Whether a placement has more shards than another one, and is the same otherwise. */
function isNewer(placement: Placement, than: Placement | undefined): boolean {
  if (than === undefined || placement === than) return false;
  return placement === placementOf(shardsOf(placement)) && shardsOf(placement) > shardsOf(than);
}

export function placementMismatch(here: Placement, there: Placement): Refusal {
  return refused(
    "UNAVAILABLE",
    `this deployment has placement ${here} and refuses ${there}; repeat the call`,
    { reason: "PLACEMENT_MISMATCH", placement: here },
  ).refusal;
}
