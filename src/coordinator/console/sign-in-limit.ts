const WINDOW_MS = 60_000;

/** Failed sign-ins from one address in one window. */
const MAX_FAILED = 10;
/** The addresses that are counted. Others are not limited in that window. */
const MAX_ADDRESSES = 1_000;

/**
 * Counts failed sign-ins of this isolate by address. A key can't be guessed, so this protects no key: it
 * limits the work and the log lines that a script can cause. No limit is for all addresses together, because
 * a script could then keep operators out.
 */
export class SignInLimit {
  #windowEndsAtMs = 0;
  readonly #failed = new Map<string, number>();

  /** Returns how long to wait, in seconds. Undefined: a sign-in may be tried. */
  waitS(address: string | null, nowMs: number): number | undefined {
    if (nowMs >= this.#windowEndsAtMs || this.#countOf(address) < MAX_FAILED) return undefined;
    return Math.ceil((this.#windowEndsAtMs - nowMs) / 1_000);
  }

  failed(address: string | null, nowMs: number): void {
    if (nowMs >= this.#windowEndsAtMs) {
      this.#windowEndsAtMs = nowMs + WINDOW_MS;
      this.#failed.clear();
    }
    if (address === null) return;
    if (this.#failed.has(address) || this.#failed.size < MAX_ADDRESSES)
      this.#failed.set(address, this.#countOf(address) + 1);
  }

  #countOf(address: string | null): number {
    return address === null ? 0 : (this.#failed.get(address) ?? 0);
  }
}
