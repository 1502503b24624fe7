const WINDOW_MS = 60_000;

/** Failed sign-ins in one window, from one address, and from all of them. */
const MAX_PER_ADDRESS = 10;
const MAX_OF_ALL = 100;

/**
 * Counts failed sign-ins of this isolate. A key can't be guessed, so this protects no key: it limits the work
 * and the log lines that a script can cause. The limit of all addresses bounds the memory, and holds where
 * the address is unknown or can be chosen.
 */
export class SignInLimit {
  #windowEndsAtMs = 0;
  #all = 0;
  readonly #byAddress = new Map<string, number>();

  /** Returns how long to wait, in seconds. Undefined: a sign-in may be tried. */
  waitS(address: string | null, nowMs: number): number | undefined {
    if (nowMs >= this.#windowEndsAtMs) return undefined;
    const failed = address === null ? 0 : (this.#byAddress.get(address) ?? 0);
    if (this.#all < MAX_OF_ALL && failed < MAX_PER_ADDRESS) return undefined;
    return Math.ceil((this.#windowEndsAtMs - nowMs) / 1_000);
  }

  failed(address: string | null, nowMs: number): void {
    if (nowMs >= this.#windowEndsAtMs) {
      this.#windowEndsAtMs = nowMs + WINDOW_MS;
      this.#all = 0;
      this.#byAddress.clear();
    }
    this.#all += 1;
    if (address !== null) this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
  }
}
