import { callHook } from "../../client/hooks.ts";
import type { Examined } from "./examine.ts";
import { countsAs, type Drift } from "./drift.ts";
import type { Outcome } from "./mender.ts";
import { UNASKED_CHANGES, type Settings } from "./options.ts";
import {
  actionCount,
  duplicateItem,
  itemOf,
  leftCount,
  noCounts,
  type VerificationCounts,
  type VerificationItem,
} from "./report.ts";

type Tables = Record<string, VerificationCounts>;

/** Of a range whose digests were compared. Rows and claims only where they are equal: the others are looked at. */
export type SiftedCounts = Pick<VerificationCounts, "rows" | "claims" | "ranges" | "equalRanges">;

/** Counts what is found and done, and keeps the first items. */
export class Tally {
  readonly items: VerificationItem[] = [];
  itemsLeftOut = 0;
  readonly #settings: Settings;
  /** Of all runs of this verification. */
  readonly #tables: Tables;
  /** Every run goes through the queue anew. */
  readonly #queue: Tables = {};
  /** As of the stored place. What was found behind it will be found again; what was mended since, not. */
  #marked: Tables;
  #mended: Tables = {};
  #spent: number;

  constructor({ tables, spent }: { tables: Tables; spent: number }, settings: Settings) {
    this.#tables = structuredClone(tables);
    this.#marked = tables;
    this.#spent = spent;
    this.#settings = settings;
  }

  /** By source type. */
  get tables(): Tables {
    return sumOf(this.#tables, this.#queue);
  }

  get total(): VerificationCounts {
    const total = noCounts();
    for (const counts of [...Object.values(this.#tables), ...Object.values(this.#queue)]) add(total, counts);
    return total;
  }

  /** With a place that all is behind that was counted. */
  get now(): { tables: Tables; spent: number } {
    return { tables: this.#tables, spent: this.#spent };
  }

  /** With the place that was marked. */
  get stored(): { tables: Tables; spent: number } {
    return { tables: sumOf(this.#marked, this.#mended), spent: this.#spent };
  }

  /** All that was counted is behind the place that is stored now. */
  mark(): void {
    this.#marked = structuredClone(this.#tables);
    this.#mended = {};
  }

  rowsOf(source: string): number {
    return of(this.#tables, source).rows;
  }

  /** `times`: -1 for ranges that will be compared again. */
  sifted(source: string, ranges: readonly SiftedCounts[], times: 1 | -1 = 1): void {
    const counts = of(this.#tables, source);
    for (const each of ranges)
      for (const name of ["rows", "claims", "ranges", "equalRanges"] as const)
        counts[name] += times * each[name];
  }

  /** What a page holds, drifts included. */
  found(source: string, { comparison, rows, records }: Examined): void {
    const counts = of(this.#tables, source);
    counts.rows += rows;
    counts.records += records;
    counts.claims += comparison.claims;
    counts.recent += comparison.recent;
    counts.leased += comparison.leased;
    counts.duplicates += comparison.duplicates.length;
    counts.unnameable += comparison.unnameable.length;
    for (const drift of comparison.drifts) {
      const kind = countsAs(drift);
      if (kind !== undefined) counts[kind] += 1;
    }
    for (const name of comparison.duplicates) this.#item(duplicateItem(name));
    for (const { claim, why } of comparison.unnameable)
      this.#item({
        kind: "unnameable",
        because: "not_a_name",
        source: claim.source,
        bucket: claim.bucket,
        action: "none",
        outcome: "left",
        left: "unnameable",
        detail: why,
      });
  }

  planned(drift: Drift): void {
    this.#item(itemOf(drift, { outcome: "planned" }));
  }

  ended(source: string, outcome: Outcome): void {
    count(of(this.#tables, source), outcome);
    if (outcome.done) {
      this.#spent += 1;
      const mended = of(this.#mended, source);
      count(mended, outcome);
      const kind = outcome.drift.action === "destroy" ? undefined : countsAs(outcome.drift);
      if (kind !== undefined) mended[kind] += 1;
    }
    this.#item(itemOf(outcome.drift, endOf(outcome)));
  }

  /** Of a row of the queue: it is known to be wrong, so nobody is asked. */
  endedOfQueue(source: string, outcome: Outcome): void {
    count(of(this.#queue, source), outcome);
    this.#item(itemOf(outcome.drift, endOf(outcome)));
  }

  /** Why somebody should be asked before so many more are changed; undefined: go on. */
  questionOf(more: number): string | undefined {
    if (more === 0) return undefined;
    const { claims, records } = this.total;
    const changes = this.#spent + more;
    const { maxChanges, maxShare } = this.#settings;
    if (changes > maxChanges)
      return `${changes} claims would be changed, and maxChanges allows ${maxChanges}`;
    const seen = Math.max(claims, records);
    // A row that was renamed is two changes: of all claims, more than there are may change.
    if (maxShare === 1) return undefined;
    if (changes <= Math.max(UNASKED_CHANGES, maxShare * seen)) return undefined;
    return `${changes} of ${seen} claims seen so far would be changed, and maxShare allows ${maxShare}`;
  }

  #item(item: VerificationItem): void {
    callHook(this.#settings.onItem, item);
    if (this.items.length < this.#settings.maxItems) this.items.push(item);
    else this.itemsLeftOut += 1;
  }
}

const of = (tables: Tables, source: string): VerificationCounts => (tables[source] ??= noCounts());

function add(total: VerificationCounts, more: VerificationCounts): void {
  for (const name of Object.keys(total) as (keyof VerificationCounts)[]) total[name] += more[name];
}

function sumOf(one: Tables, other: Tables): Tables {
  const sum = structuredClone(one);
  for (const [source, counts] of Object.entries(other)) add(of(sum, source), counts);
  return sum;
}

function count(counts: VerificationCounts, outcome: Outcome): void {
  const name = outcome.done ? actionCount(outcome.drift) : leftCount(outcome.left);
  if (name !== undefined) counts[name] += 1;
}

const endOf = (outcome: Outcome): Pick<VerificationItem, "outcome" | "left"> =>
  outcome.done ? { outcome: "done" } : { outcome: "left", left: outcome.left };
