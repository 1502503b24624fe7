import { callHook } from "../../client/hooks.ts";
import type { Examined } from "./examine.ts";
import { countsAs, type Drift } from "./compare.ts";
import type { DriftOutcome } from "./repair.ts";
import { CHANGES_WITHOUT_APPROVAL, type Settings } from "./options.ts";
import {
  actionCount,
  duplicateItem,
  isDecision,
  itemOf,
  skipCount,
  noCounts,
  type VerificationCounts,
  type VerificationItem,
  type VerificationReport,
} from "./report.ts";

type Tables = Record<string, VerificationCounts>;

/** The first items of a kind. */
interface Kept {
  items: VerificationItem[];
  max: number;
  omitted: number;
}

/** Counts of a range whose digests were compared. Rows and claims are 0 unless the digests were equal. */
export type RangeCounts = Pick<VerificationCounts, "rows" | "claims" | "ranges" | "equalRanges">;

/** Counts what a verification finds and changes, and keeps the first items of each kind for the report. */
export class Counts {
  /** Items that a person must decide about. A limit of their own keeps them in a report with many others. */
  readonly #decisions: Kept;
  readonly #others: Kept;
  readonly #settings: Settings;
  /** Counts of all runs of this verification. */
  readonly #tables: Tables;
  /** Not saved with the cursor, because each run goes through the queue again. */
  readonly #queue: Tables = {};
  /** The counts at the saved cursor. Drifts found ahead of it will be found again by the next run. */
  #atCheckpoint: Tables;
  /** Repairs since the saved cursor. The next run will not find these drifts again. */
  #repaired: Tables = {};
  #changes: number;

  constructor({ tables, changes }: { tables: Tables; changes: number }, settings: Settings) {
    this.#tables = structuredClone(tables);
    this.#atCheckpoint = tables;
    this.#changes = changes;
    this.#settings = settings;
    this.#decisions = { items: [], max: settings.maxDecisions, omitted: 0 };
    this.#others = { items: [], max: settings.maxItems, omitted: 0 };
  }

  get reported(): Pick<VerificationReport, "items" | "decisionsOmitted" | "itemsOmitted"> {
    return {
      items: [...this.#decisions.items, ...this.#others.items],
      decisionsOmitted: this.#decisions.omitted,
      itemsOmitted: this.#others.omitted,
    };
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

  /** To be saved with a cursor that has passed everything that was counted. */
  get current(): { tables: Tables; changes: number } {
    return { tables: this.#tables, changes: this.#changes };
  }

  /** To be saved with the position of the last checkpoint. */
  get atCheckpoint(): { tables: Tables; changes: number } {
    return { tables: sumOf(this.#atCheckpoint, this.#repaired), changes: this.#changes };
  }

  /** The cursor was saved, and has passed everything that was counted. */
  checkpoint(): void {
    this.#atCheckpoint = structuredClone(this.#tables);
    this.#repaired = {};
  }

  rowsOf(source: string): number {
    return of(this.#tables, source).rows;
  }

  /** `times`: -1 takes back ranges that the next run will compare again. */
  addRanges(source: string, ranges: readonly RangeCounts[], times: 1 | -1 = 1): void {
    const counts = of(this.#tables, source);
    for (const each of ranges)
      for (const name of ["rows", "claims", "ranges", "equalRanges"] as const)
        counts[name] += times * each[name];
  }

  /** Counts a page, including its drifts. */
  addPage(source: string, { comparison, rows, records }: Examined): void {
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
    for (const duplicate of comparison.duplicates) this.#item(duplicateItem(duplicate));
    for (const { claim, detail } of comparison.unnameable)
      this.#item({
        kind: "unnameable",
        reason: "not_a_name",
        source: claim.source,
        bucket: claim.bucket,
        action: "none",
        outcome: "skipped",
        skipReason: "unnameable",
        detail,
      });
  }

  addPlanned(drift: Drift): void {
    this.#item(itemOf(drift, { outcome: "planned" }));
  }

  addOutcome(source: string, outcome: DriftOutcome): void {
    count(of(this.#tables, source), outcome);
    if (outcome.done) {
      this.#changes += 1;
      const repaired = of(this.#repaired, source);
      count(repaired, outcome);
      const kind = outcome.drift.action === "destroy" ? undefined : countsAs(outcome.drift);
      if (kind !== undefined) repaired[kind] += 1;
    }
    this.#item(itemOf(outcome.drift, outcomeOf(outcome)));
  }

  /** Queued rows are known to lack their claims, so their repairs don't count toward the limits. */
  addQueueOutcome(source: string, outcome: DriftOutcome): void {
    count(of(this.#queue, source), outcome);
    this.#item(itemOf(outcome.drift, outcomeOf(outcome)));
  }

  /** Why so many additional changes need approval. Undefined: they don't. */
  approvalReasonFor(additional: number): string | undefined {
    if (additional === 0) return undefined;
    const { claims, records } = this.total;
    const changes = this.#changes + additional;
    const { maxChanges, maxShare } = this.#settings;
    if (changes > maxChanges)
      return `${changes} claims would change, and \`maxChanges\` allows ${maxChanges}`;
    const seen = Math.max(claims, records);
    // A renamed row takes two changes, so the changes can outnumber the claims. A share of 1 allows all of
    // them.
    if (maxShare === 1) return undefined;
    if (changes <= Math.max(CHANGES_WITHOUT_APPROVAL, maxShare * seen)) return undefined;
    return `${changes} of ${seen} claims seen so far would change, and \`maxShare\` allows ${maxShare}`;
  }

  #item(item: VerificationItem): void {
    callHook(this.#settings.onItem, item);
    const kept = isDecision(item) ? this.#decisions : this.#others;
    if (kept.items.length < kept.max) kept.items.push(item);
    else kept.omitted += 1;
  }
}

const of = (tables: Tables, source: string): VerificationCounts => (tables[source] ??= noCounts());

function add(total: VerificationCounts, additional: VerificationCounts): void {
  for (const name of Object.keys(total) as (keyof VerificationCounts)[]) total[name] += additional[name];
}

function sumOf(one: Tables, other: Tables): Tables {
  const sum = structuredClone(one);
  for (const [source, counts] of Object.entries(other)) add(of(sum, source), counts);
  return sum;
}

function count(counts: VerificationCounts, outcome: DriftOutcome): void {
  const name = outcome.done ? actionCount(outcome.drift) : skipCount(outcome.skipReason);
  if (name !== undefined) counts[name] += 1;
}

function outcomeOf(outcome: DriftOutcome): Parameters<typeof itemOf>[1] {
  if (outcome.done) return { outcome: "done" };
  const { drift: _, done: __, ...skipped } = outcome;
  return { outcome: "skipped", ...skipped };
}
