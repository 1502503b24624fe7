import type { Drift, Recency } from "./compare.ts";

export interface DriftGroup {
  drifts: Drift[];
  recency: Recency;
}

/** Drifts that wait for others, to be put right together: a lease costs much the same for one claim as for some hundreds. */
export class PendingDrifts {
  readonly #most: number;
  #drifts: Drift[] = [];
  #recency: Recency | undefined;

  /** So many at a time. */
  constructor(most: number) {
    this.#most = most;
  }

  get drifts(): readonly Drift[] {
    return this.#drifts;
  }

  /** Ages are told as of the earliest reading: what has been changed since then is young. */
  add(drifts: readonly Drift[], recency: Recency): void {
    this.#drifts.push(...drifts);
    if (drifts.length > 0 && (this.#recency === undefined || recency.asOfMs < this.#recency.asOfMs))
      this.#recency = recency;
  }

  /** With what is known of them by now. */
  replace(drifts: Drift[]): void {
    this.#drifts = drifts;
    if (drifts.length === 0) this.#recency = undefined;
  }

  /** `isLast`: nothing comes behind them that would be worth the wait. */
  *take(isLast: boolean): Generator<DriftGroup> {
    while (this.#recency !== undefined && this.#drifts.length >= (isLast ? 1 : this.#most)) {
      const drifts = this.#drifts.splice(0, this.#most);
      const group = { drifts, recency: this.#recency };
      if (this.#drifts.length === 0) this.#recency = undefined;
      yield group;
    }
  }
}
