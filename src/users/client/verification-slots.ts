import { requireCell, type Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import type { VerificationSlot } from "./api-types.ts";

/**
 * Verification slots limit how many cells verify at the same time. They control load only: verification
 * without a slot is equally safe.
 */
export class VerificationSlots {
  readonly #caller: Caller;
  readonly #cell: string | undefined;

  constructor(caller: Caller, cell: string | undefined) {
    this.#caller = caller;
    this.#cell = cell;
  }

  /**
   * Takes a slot for the run with this UUID, or renews it. Throws `ResourceExhaustedError`
   * (`NO_VERIFICATION_SLOT`) while none is free. The cell then has a place in a queue, whose order is that of
   * the first calls. Call again after `retryAfterMs` of the error. A cell that is later than that by the
   * length of a slot (`LEASEHOLD_VERIFICATION_SLOT_MS`) loses its place.
   */
  async take(uuid: string, options: CallOptions = {}): Promise<VerificationSlot> {
    const params = { cell: requireCell(this.#cell), uuid };
    return valueOf(await this.#caller.call("takeVerificationSlot", { ...options, params })).slot;
  }

  /** Returns whether the run had a slot until now. */
  async release(uuid: string, options: CallOptions = {}): Promise<boolean> {
    const params = { cell: requireCell(this.#cell), uuid };
    return valueOf(await this.#caller.call("releaseVerificationSlot", { ...options, params })).released;
  }
}
