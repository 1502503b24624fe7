/** How the rig tells the Worker of worker.ts what to run. */
export type VersionName = "today" | "next";

export interface Choice {
  /** The version of each object, by its name: `cell-1`, `shard-3`, `directory`. Others run `rest`. */
  objects: Record<string, VersionName>;
  rest: VersionName;
  /** The share of requests and runs of the cron that the next version gets. */
  nextShare: number;
}

/** What the Worker has run since it started. */
export interface Ran {
  requests: Record<VersionName, number>;
  cronRuns: Record<VersionName, number>;
  /** Calls of objects: `today's shard, called by next`. */
  calls: Record<string, number>;
}

/** All combinations of an object that is called and its caller. */
export const combinations: readonly string[] = ["CellLedger", "ClaimShard", "Directory"].flatMap((kind) =>
  (["today", "next"] as const).flatMap((called) =>
    (["today", "next"] as const).map((caller) => combination(kind, called, caller)),
  ),
);

export function combination(kind: string, called: VersionName, caller: VersionName): string {
  return `${called}'s ${kind}, called by ${caller}`;
}

export interface Control {
  choice?: Choice;
  /** The names of the objects to end, as an update of their code does. */
  end?: readonly string[];
  /** A migration of D1 to carry out, unless that was done. */
  migration?: { name: string; sql: string };
  /** Runs the cron once. */
  cron?: VersionName;
}

export const CONTROL_PATH = "/upgrade-rig";

/** The variable with the choice at the start. */
export const CHOICE = "UPGRADE_RIG_CHOICE";
