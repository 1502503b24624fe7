import { ask } from "./ask.ts";
import { MESSAGE_VERSION, type Confirm, type Envelope, type Reply } from "./messages.ts";
import { readMeta, writeMeta } from "./meta.ts";
import type { Limits } from "./limits.ts";
import type { Placement } from "./placement.ts";
import type { Ports } from "./ports.ts";
import { refused, type Refusal } from "./refusal.ts";

/** What a ledger or a shard asks the directory before its first use. */
export interface DirectoryPeer {
  confirm(message: Confirm): Promise<Reply<null>>;
}

/**
 * An object's standing with its deployment (rule P1): before its first use it confirms its placement with the directory and keeps a copy;
 * from then on every message under another placement is refused, here and everywhere.
 */
export class PlacementGuard {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #directory: DirectoryPeer;
  readonly #cell: string | undefined;
  readonly #firstUse: () => Promise<void>;
  #used: Promise<void> | undefined;
  #confirmed: Placement | undefined;

  /** `firstUse`: what an instance does before it answers its first message. */
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

  /** Without asking anybody: `undefined` when all is well, or when nothing is confirmed yet. */
  #check(message: Envelope): Refusal | undefined {
    if (message.version !== MESSAGE_VERSION) {
      return refused(
        "UNAVAILABLE",
        `message version ${message.version} is not known here; try again when the deployment has settled`,
        {
          reason: "MESSAGE_VERSION",
        },
      ).refusal;
    }
    if (this.#confirmed === undefined || this.#confirmed === message.placement) return undefined;
    return placementMismatch(this.#confirmed, message.placement);
  }

  /** Once per instance; one that failed is tried again by the next message. */
  async #start(): Promise<void> {
    try {
      await this.#firstUse();
    } catch (error) {
      this.#used = undefined;
      throw error;
    }
  }

  /** Must have resolved to `undefined` before the message is acted upon. Costs a message on the first use of the object only. */
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
        "the directory cannot be reached, and this part is used for the first time",
      ).refusal;
    // Another message may have been admitted meanwhile (rule M1).
    if (this.#confirmed === undefined) {
      this.#ports.sql.transaction(["confirm_placement"], () =>
        writeMeta(this.#ports.sql, "placement", placement),
      );
      this.#confirmed = placement;
    }
    return this.#check(message);
  }
}

export function placementMismatch(here: Placement, there: Placement): Refusal {
  return refused(
    "UNAVAILABLE",
    `this deployment was made as ${here} and cannot serve as ${there}; restore its number of shards`,
    {
      reason: "PLACEMENT_MISMATCH",
    },
  ).refusal;
}
