/** Labels come from closed lists, so there are fewer. More would be counted together, as `other`. */
const MAX_LABELS = 50;

/** Counts events by a label, in memory only: a new instance starts at 0. */
export class Counts {
  readonly #counts: Map<string, number>;

  /** @param shown labels that are listed before their first event, so that the first one is an increase */
  constructor(shown: readonly string[] = []) {
    this.#counts = new Map(shown.map((label) => [label, 0]));
  }

  add(label: string): void {
    const counted = this.#counts.has(label) || this.#counts.size < MAX_LABELS - 1 ? label : "other";
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1);
  }

  get entries(): [label: string, count: number][] {
    return [...this.#counts];
  }
}

/**
 * Calls `ended` with the answer of a call, before its caller gets it. The caller keeps its own promise, so
 * this changes neither the answer nor the order of events.
 */
export function watch<T>(answer: Promise<T>, ended: (value: T) => void): Promise<T> {
  void answer.then(ended, () => {});
  return answer;
}
