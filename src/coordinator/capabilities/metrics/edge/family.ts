import type { Limits } from "../../../../common/limits.ts";
import type { DirectoryView } from "../../../isolate/directory-copy.ts";
import type { Durations } from "../../../kernel/metrics/histogram.ts";
import type { DirectoryMetrics, LedgerMetrics, ShardMetrics } from "../../../kernel/metrics/messages.ts";

export interface CronEnd {
  startedAtMs: number;
  finishedAtMs: number;
  cellsPulled: number;
  cellsFailed: number;
  hasFailed: boolean;
}

/** What D1 tells about the cron, about the copies of the ledgers, and about what capabilities have there. */
export interface ProjectionMetrics {
  /** The latest run that finished. Null: none of the latest runs. */
  lastRun: CronEnd | null;
  /** The latest runs that failed or were killed. */
  failedRuns: number;
  /** When the copy that is furthest behind was complete. Null: there is no complete copy. */
  oldestCopyMs: number | null;
  cellsNeverCopied: number;
  /** Cells whose last copy failed. */
  cellsFailed: number;
}

/** What samples are read from. A capability may add sources. */
export interface Sources {
  deployment: { placement: string; shards: number; cellsLeftOut: number; view: DirectoryView };
  /** Whether a part has answered. */
  answered: boolean;
  part: DirectoryMetrics | LedgerMetrics | ShardMetrics;
  ledger: LedgerMetrics;
  shard: ShardMetrics;
  directory: DirectoryMetrics;
  d1: ProjectionMetrics;
}

/** The labels that all samples of a source have. */
const sourceLabels: Partial<Record<keyof Sources, string>> = {
  answered: "part",
  part: "part",
  ledger: "cell",
  shard: "shard",
};

/** A sample, with the labels that its source doesn't have. */
type Sample<Label extends string> = readonly [labels: Readonly<Record<Label, string>>, value: number];

/** One family of metrics, as `GET /metrics` declares it. */
export interface Family<Source = never> {
  type: "counter" | "gauge" | "histogram" | "gaugehistogram" | "info";
  help: string;
  labels: readonly string[];
  /** Reads its samples. Null or undefined: the source has none. */
  read: (source: Source, limits: Limits) => number | null | undefined | Durations | readonly Sample<string>[];
}

/** A family that declares labels has any number of samples from one source, each with these labels. */
type Reading<Value, Label extends string> = [Label] extends [never]
  ? Value | null | undefined
  : readonly Sample<Label>[];

const declares =
  <Value extends number | Durations>(type: Family["type"]) =>
  <Source, const Label extends string = never>(
    help: string,
    read: (source: Source, limits: Limits) => Reading<Value, NoInfer<Label>>,
    ...labels: Label[]
  ): Family<Source> => ({ type, help, labels, read });

export const counter = declares<number>("counter");
export const gauge = declares<number>("gauge");
export const info = declares<number>("info");
export const histogram = declares<Durations>("histogram");
export const gaugeHistogram = declares<Durations>("gaugehistogram");

export interface ListedFamily extends Family {
  source: keyof Sources;
  /** The label that the source has. */
  label: string | undefined;
}

type ListedFamilies = Readonly<Record<string, ListedFamily>>;

/**
 * Declares families that are read from one source. Their names have the base unit at their end.
 *
 * @param before the family before which they are listed. Null: they are listed after all others
 */
export function familiesOf<Name extends keyof Sources>(
  source: Name,
  before: string | null,
  families: Readonly<Record<string, Family<Sources[Name]>>>,
): { before: string | null; families: ListedFamilies } {
  const label = sourceLabels[source];
  const listed = Object.entries(families).map(([name, family]) => [
    name,
    { ...family, source, label, labels: [label ?? [], family.labels].flat() },
  ]);
  return { before, families: Object.fromEntries(listed) as ListedFamilies };
}

export const secondsOf = (ms: number | null | undefined): number | null => (ms == null ? null : ms / 1_000);

export const since = "since the instance of the object started";

/** developers.cloudflare.com/workers/runtime-apis/performance */
export const byClock =
  "by the clock of the object. On Workers it only moves with I/O, so computing counts as 0.";
