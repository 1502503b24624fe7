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
   * (`NO_VERIFICATION_SLOT`) while none is free.
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
