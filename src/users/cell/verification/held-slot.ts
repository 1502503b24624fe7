import type { VerificationPorts } from "./ports.ts";

/**
 * The verification slot of a run. Slots limit how many cells verify at a time, to protect the coordinator
 * from load. Correctness does not depend on them (A3).
 */
export class HeldSlot {
  readonly #slots: VerificationPorts["slots"];
  readonly #uuid: string;
  #takenMs = 0;
  #durationMs = 0;
  /** When to ask again after the slot was lost, because the cell has a place in the queue. */
  retryAfterMs: number | undefined;

  constructor(slots: VerificationPorts["slots"], uuid: string) {
    this.#slots = slots;
    this.#uuid = uuid;
  }

  async take(): ReturnType<VerificationPorts["slots"]["take"]> {
    const requestedMs = performance.now();
    const taken = await this.#slots.take(this.#uuid);
    if (taken.isTaken) [this.#takenMs, this.#durationMs] = [requestedMs, taken.expiresInMs];
    return taken;
  }

  /** By this process's clock, without asking the coordinator. */
  get isHeld(): boolean {
    return performance.now() - this.#takenMs < this.#durationMs;
  }

  /** `reacquired`: the slot had expired, and another run may have held it in between. */
  async renew(): Promise<"held" | "reacquired" | "lost"> {
    if (performance.now() - this.#takenMs < this.#durationMs / 4) return "held";
    const endMs = this.#takenMs + this.#durationMs;
    const taken = await this.take();
    if (!taken.isTaken) {
      this.retryAfterMs = taken.retryAfterMs;
      return "lost";
    }
    return performance.now() < endMs ? "held" : "reacquired";
  }

  /** If this fails, the slot expires by itself. */
  async release(): Promise<void> {
    try {
      await this.#slots.release(this.#uuid);
    } catch {
      // There is nothing to do about it.
    }
  }
}
