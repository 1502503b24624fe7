/**
 * Judges the answers of a router while names change their owners. A change becomes true at some moment of the
 * call that makes it, and an answer is given at some moment between its request and its arrival. All times
 * are those of one clock, so the speed of the machine makes the judge no stricter.
 */

/** When something happened: at some moment between the two. */
export interface Interval {
  fromMs: number;
  toMs: number;
}

/** A name has an owner, or none, until the next period begins. */
export interface Period {
  /** The id of the cell. Undefined: the name is free. */
  cell: string | undefined;
  /** Undefined if it is not known. */
  epoch: number | undefined;
  began: Interval;
}

/** What the router said about a name. */
export interface Told {
  name: string;
  sentMs: number;
  receivedMs: number;
  /** Undefined: it said that nobody has the name. */
  cell: string | undefined;
  epoch: number | undefined;
  /** How old the answer is at most, according to the router. Undefined if it doesn't say. */
  ageMs: number | undefined;
  /** The router has marked it as from an outage, so no bound holds. */
  isStale: boolean;
}

/** How old answers may be. */
export interface Bounds {
  foundMs: number;
  noneMs: number;
}

/** The router's clock has whole milliseconds, and so have the ages that it tells. */
const ROUNDING_MS = 2;

/** Who owned the names, and when. */
export class Owners {
  readonly #periods = new Map<string, Period[]>();

  /** Notes that a name has another owner. Its epoch may be set later. */
  changed(name: string, period: Period): void {
    this.of(name).push(period);
  }

  of(name: string): Period[] {
    let periods = this.#periods.get(name);
    if (periods === undefined) {
      periods = [{ cell: undefined, epoch: undefined, began: { fromMs: -Infinity, toMs: -Infinity } }];
      this.#periods.set(name, periods);
    }
    return periods;
  }

  /**
   * Returns for how long an answer was certainly not true any more when its request was sent. 0 if it may
   * have been true between the request and the answer, Infinity if it was never true before the answer.
   */
  ageMs({ name, sentMs, receivedMs, cell, epoch }: Told): number {
    const periods = this.of(name);
    let endMs = Infinity;
    for (const period of periods.toReversed()) {
      const isSame = period.cell === cell && (period.epoch ?? epoch) === epoch;
      if (period.began.fromMs <= receivedMs && isSame) return Math.max(0, sentMs - endMs);
      endMs = period.began.toMs;
    }
    return Infinity;
  }
}

/** Returns a complaint about each answer that is older than the bound, or than the router says. */
export function complaintsAboutAge(told: readonly Told[], owners: Owners, bounds: Bounds): string[] {
  return told.flatMap((each) => {
    const boundMs = each.isStale ? Infinity : each.cell === undefined ? bounds.noneMs : bounds.foundMs;
    const allowedMs = Math.min(boundMs, each.ageMs ?? Infinity) + ROUNDING_MS;
    const ageMs = owners.ageMs(each);
    if (ageMs <= allowedMs) return [];
    const was = ageMs === Infinity ? "never true before" : `not true for ${Math.round(ageMs)} ms`;
    return [`${textOf(each)} was ${was}, and may be ${allowedMs} ms old`];
  });
}

/**
 * Returns a complaint about each answer that is from before an answer that was there when it was asked for
 * (Q6).
 */
export function complaintsAboutOrder(told: readonly Told[]): string[] {
  const names = Map.groupBy(told, ({ name }) => name);
  return [...names.values()].flatMap((ofName) => {
    const arrivals = ofName.toSorted((a, b) => a.receivedMs - b.receivedMs);
    const asked = ofName.toSorted((a, b) => a.sentMs - b.sentMs);
    const complaints: string[] = [];
    /** By arrival: the largest epoch shown, and the largest one that was over. */
    let [shown, over, arrived] = [-1, -1, 0];
    /** For each free answer, the epoch that was shown when it was asked for. */
    const before = new Map<Told, number>();
    for (const each of asked) {
      for (let next = arrivals[arrived]; next !== undefined && next.receivedMs < each.sentMs;) {
        shown = Math.max(shown, next.epoch ?? -1);
        if (next.cell === undefined) over = Math.max(over, before.get(next) ?? -1);
        arrived += 1;
        next = arrivals[arrived];
      }
      if (each.cell === undefined) before.set(each, shown);
      else if (each.epoch !== undefined && (each.epoch < shown || each.epoch <= over))
        complaints.push(`${textOf(each)} came after epoch ${Math.max(shown, over)}`);
    }
    return complaints;
  });
}

const textOf = ({ name, cell, epoch, sentMs }: Told): string =>
  `${name} at ${Math.round(sentMs)} ms: ${cell === undefined ? "free" : `cell ${cell}, epoch ${epoch}`}`;
