import { ask } from "./ask.ts";
import type { Confirmed } from "./growth/messages.ts";
import { MESSAGE_VERSION, type Confirm, type Envelope, type Reply } from "./messages.ts";
import { readMeta, writeMeta } from "./meta.ts";
import type { Limits } from "./limits.ts";
import type { Placement } from "./placement.ts";
import type { Ports } from "./ports.ts";
import { refused, type Refusal } from "./refusal.ts";

/** The call that a ledger or shard makes to the directory before its first use. */
export interface DirectoryPeer {
  confirm(message: Confirm): Promise<Reply<Confirmed>>;
}

/**
 * Checks that an object and every message to it have the same placement (P1). Before its first use, the
 * object confirms its placement with the directory and stores a copy. From then on it refuses every message
 * with another placement.
 */
export class PlacementGuard {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #directory: DirectoryPeer;
  readonly #cell: string | undefined;
  readonly #firstUse: () => Promise<void>;
  #used: Promise<void> | undefined;
  #confirmed: Placement | undefined;

  /**
   * @param firstUse runs once per instance, before it answers its first message
   * @param cell the cell of a ledger, which the directory checks; undefined for a shard
   */
  constructor(
    ports: Ports,
    limits: Limits,
    directory: DirectoryPeer,
    firstUse: () => Promise<void>,
    cell?: string,
  ) {
    this.#ports = ports;
    this.#limits = limits;
    this.#directory = directory;
    this.#firstUse = firstUse;
    this.#cell = cell;
    const kept = readMeta(ports.sql, "placement");
    if (typeof kept === "string") this.#confirmed = kept;
  }

  get placement(): Placement | undefined {
    return this.#confirmed;
  }

  /**
   * Checks the message locally. Returns undefined if the message fits, or if no placement is confirmed yet.
   */
  #check(message: Envelope): Refusal | undefined {
    const unknown = refuseVersion(message);
    if (unknown !== undefined) return unknown;
    if (this.#confirmed === undefined || this.#confirmed === message.placement) return undefined;
    return placementMismatch(this.#confirmed, message.placement);
  }

  /** Runs `firstUse` once per instance. If it fails, the next message tries again. */
  async #start(): Promise<void> {
    try {
      await this.#firstUse();
    } catch (error) {
      this.#used = undefined;
      throw error;
    }
  }

  /**
   * Checks a message and returns the reason to refuse it, or undefined. A caller must wait for this before it
   * acts on the message. Only the first use of an object sends a message to the directory.
   */
  async admit(message: Envelope): Promise<Refusal | undefined> {
    await (this.#used ??= this.#start());
    const refusal = this.#check(message);
    if (refusal !== undefined || this.#confirmed !== undefined) return refusal;
    const { version, placement } = message;
    const confirm: Confirm = {
      version,
      placement,
      ...(this.#cell === undefined ? {} : { cell: this.#cell }),
    };
    const answer = await ask(this.#ports.clock, this.#limits.inquiryTimeoutMs, () =>
      this.#directory.confirm(confirm),
    );
    if (answer.kind === "refused") return answer.refusal;
    if (answer.kind === "unknown")
      return refused(
        "UNAVAILABLE",
        "this object is used for the first time and cannot reach the directory; retry the call",
      ).refusal;
    if (answer.value.placement !== placement) return placementMismatch(answer.value.placement, placement);
    // Another message may have been admitted during the wait (M1).
    if (this.#confirmed === undefined) {
      this.#ports.sql.transaction(["confirm_placement"], () =>
        writeMeta(this.#ports.sql, "placement", placement),
      );
      this.#confirmed = placement;
    }
    return this.#check(message);
  }
}

export function refuseVersion({ version }: Envelope): Refusal | undefined {
  if (version === MESSAGE_VERSION) return undefined;
  return refused(
    "UNAVAILABLE",
    `message version ${version} is unknown here; retry when the deployment is complete`,
    { reason: "MESSAGE_VERSION" },
  ).refusal;
}

export function placementMismatch(here: Placement, there: Placement): Refusal {
  return refused(
    "UNAVAILABLE",
    `this deployment has placement ${here} and refuses ${there}; repeat the call`,
    { reason: "PLACEMENT_MISMATCH", placement: here },
  ).refusal;
}
