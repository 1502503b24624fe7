import type { WallClock } from "../runtime.ts";

/**
 * Decides which requests are traced. A request whose caller has sampled its trace is traced, too, but only
 * up to a rate: a caller must not be able to have everything exported.
 */
export class Sampler {
  readonly #share: number;
  readonly #callersPerS: number;
  readonly #now: () => number;
  #left: number;
  #countedAtMs: number;

  /**
   * @param share of the other requests, from 0 to 1
   * @param callersPerS the traces of callers that are respected in a second
   */
  constructor(share: number, callersPerS: number, { now }: Pick<WallClock, "now">) {
    this.#share = share;
    this.#callersPerS = callersPerS;
    this.#now = now;
    this.#left = callersPerS;
    this.#countedAtMs = now();
  }

  /**
   * @param isSampled whether the caller has sampled its trace; undefined if it has sent none
   * @param hasKey whether the caller has a valid key
   */
  isTraced(isSampled: boolean | undefined, hasKey: boolean): boolean {
    if (isSampled === false) return false;
    return (isSampled === true && hasKey && this.#take()) || Math.random() < this.#share;
  }

  #take(): boolean {
    const now = this.#now();
    const passedMs = Math.max(0, now - this.#countedAtMs);
    this.#countedAtMs = now;
    this.#left = Math.min(this.#callersPerS, this.#left + (passedMs / 1_000) * this.#callersPerS);
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
