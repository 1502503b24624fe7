import { requireCell, type Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import type { VerificationSlot } from "./api-types.ts";

/** Leave to verify a cell now, so that many cells do not all do it at once. It steers load: nothing that is safe with a slot is unsafe without. */
export class VerificationSlots {
  readonly #caller: Caller;
  readonly #cell: string | undefined;

  constructor(caller: Caller, cell: string | undefined) {
    this.#caller = caller;
    this.#cell = cell;
  }

  /** Takes a slot for the run that `uuid` names, or renews it. Throws `ResourceExhaustedError` (`NO_VERIFICATION_SLOT`) while there is none. */
  async take(uuid: string, options: CallOptions = {}): Promise<VerificationSlot> {
    const params = { cell: requireCell(this.#cell), uuid };
    return valueOf(await this.#caller.call("takeVerificationSlot", { ...options, params })).slot;
  }

  /** Whether the run had one until now. */
  async release(uuid: string, options: CallOptions = {}): Promise<boolean> {
    const params = { cell: requireCell(this.#cell), uuid };
    return valueOf(await this.#caller.call("releaseVerificationSlot", { ...options, params })).released;
  }
}
