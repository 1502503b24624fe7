import type { Result } from "../../../../kernel/refusal.ts";
import type { ReportedStatus } from "../../../status/status.ts";
import type { CronRun } from "../../../../cron/cron-run.ts";
import type { WebhookEvent } from "../events.ts";

/** What one run of the cron has found out by its end. */
export interface RunFacts {
  nowMs: number;
  /** The error of the run as a whole. Null: there was none. */
  error: string | null;
  cellsFailed: number;
  /**
   * Whether each part has lost changes: `directory`, `ledger-7`, `shard-3`. Parts that are absent are
   * unknown.
   */
  parts: ReadonlyMap<string, boolean>;
  /** The authorities of client certificates. Null: the directory did not answer. */
  authorities: readonly { name: string; expiresAtMs: number }[] | null;
  /** How many leases of each cell are stale. Null: its ledger did not answer. */
  stale: ReadonlyMap<string, number | null>;
  /** What each cell said of itself last. Null: nothing. Undefined: its ledger did not answer. */
  statuses: ReadonlyMap<string, ReportedStatus | null | undefined>;
}

/** A cell without a finding is fine, unless its ledger did not answer. A cell that is gone is fine too. */
export const isKnownFine =
  (statuses: RunFacts["statuses"]) =>
  (cell: string): boolean =>
    !statuses.has(cell) || statuses.get(cell) !== undefined;

/** Something that a rule looks at, whether or not it is over the threshold. It has no names of claims. */
export interface Finding {
  /** A cell, a key or a part by its id, an authority, or `cron`. */
  subject: string;
  cell: string | null;
  /** Compared with the endpoint's threshold. */
  value: number;
  /** A sentence for people. */
  text: string;
}

export interface Findings {
  found: readonly Finding[];
  /** Whether a subject that was not found is known to be fine. Otherwise its alerts stay as they are. */
  isFine: (subject: string) => boolean;
}

/** The condition of one event. */
export interface Rule {
  event: WebhookEvent;
  /** The sentence about a subject that is fine again. */
  resolved: (subject: string) => string;
  /** Whether it is something that happens rather than lasts. It fires after two runs, whatever `for_s` is. */
  isMomentary?: boolean;
  /** Whether the condition holds. */
  holds: (finding: Finding, threshold: number) => boolean;
  /** `thresholds`: those of the endpoints, so that nothing is read that concerns none of them. */
  read: (run: CronRun, facts: RunFacts, thresholds: readonly number[]) => Promise<Result<Findings>>;
}
