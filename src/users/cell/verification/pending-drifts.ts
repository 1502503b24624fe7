import type { Drift, Recency } from "./compare.ts";

export interface DriftGroup {
  drifts: Drift[];
  recency: Recency;
}

/** Drifts to be repaired together: a lease costs much the same for one claim as for a few hundred. */
export class PendingDrifts {
  readonly #maxPerGroup: number;
  #drifts: Drift[] = [];
  #recency: Recency | undefined;

  constructor(maxPerGroup: number) {
    this.#maxPerGroup = maxPerGroup;
  }

  get drifts(): readonly Drift[] {
    return this.#drifts;
  }

  /** The ages of all pending drifts are measured from their earliest reading. */
  add(drifts: readonly Drift[], recency: Recency): void {
    this.#drifts.push(...drifts);
    if (drifts.length > 0 && (this.#recency === undefined || recency.asOfMs < this.#recency.asOfMs))
      this.#recency = recency;
  }

  replace(drifts: Drift[]): void {
    this.#drifts = drifts;
    if (drifts.length === 0) this.#recency = undefined;
  }

  /** Takes full groups, and with `isLast` also the rest. */
  *take(isLast: boolean): Generator<DriftGroup> {
    while (this.#recency !== undefined && this.#drifts.length >= (isLast ? 1 : this.#maxPerGroup)) {
      const drifts = this.#drifts.splice(0, this.#maxPerGroup);
      const group = { drifts, recency: this.#recency };
      if (this.#drifts.length === 0) this.#recency = undefined;
      yield group;
    }
  }
}
