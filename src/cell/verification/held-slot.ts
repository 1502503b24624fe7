import type { VerificationPorts } from "./ports.ts";

/** A place among the few cells that verify at a time. It spares the coordinator load, and nothing else rests on it (rule A3). */
export class HeldSlot {
  readonly #slots: VerificationPorts["slots"];
  readonly #uuid: string;
  #takenMs = 0;
  #durationMs = 0;

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

  /** As far as this run can tell by itself. */
  get isHeld(): boolean {
    return performance.now() - this.#takenMs < this.#durationMs;
  }

  /** `reacquired`: it had run out, and may have been another run's meanwhile. */
  async renew(): Promise<"held" | "reacquired" | "lost"> {
    if (performance.now() - this.#takenMs < this.#durationMs / 4) return "held";
    const endMs = this.#takenMs + this.#durationMs;
    const { isTaken } = await this.take();
    if (!isTaken) return "lost";
    return performance.now() < endMs ? "held" : "reacquired";
  }

  /** Otherwise it runs out by itself. */
  async release(): Promise<void> {
    try {
      await this.#slots.release(this.#uuid);
    } catch {
      // Said in vain: nobody can do anything about it.
    }
  }
}
