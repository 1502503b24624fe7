import { writePoints, type WritePoint } from "../../../src/core/write-points.ts";

/** Where a process can be made to die: each durable write of the objects, and each write of the cron to D1. */

const objectKinds = ["directory", "ledger", "shard"] as const;
export type ObjectKind = (typeof objectKinds)[number];
export type Side = "before" | "after";

/** The variables that arm the server under test. A server of `src/index.ts` does not know them. */
export const armVariables = {
  point: "CRASH_POINT",
  side: "CRASH_SIDE",
  hit: "CRASH_HIT",
  reportUrl: "CRASH_REPORT_URL",
} as const;

/** Of the server under test only: runs the cron at once. */
export const CRON_PATH = "/crash/cron";

/** What a round does so that the write is reached. */
type RoundWorkload =
  /** The very first start of a state folder. */
  | "set_up"
  /** Begins, commits and rollbacks. */
  | "load"
  /** The same, with the cron running all the time. */
  | "cron"
  /** The same, on a folder whose older outcomes may be forgotten. */
  | "prune";

export interface Failpoint {
  /** `ledger:grant`; of the cron's own writes `cron:save leases`, after the name that the log has for it. */
  name: string;
  workload: RoundWorkload;
  /** It dies at one of the first so many hits. */
  hits: number;
}

const point = (kind: ObjectKind, write: WritePoint, workload: RoundWorkload, hits: number): Failpoint => ({
  name: `${kind}:${write}`,
  workload,
  hits,
});

export const failpoints: readonly Failpoint[] = [
  point("directory", "migrate", "set_up", 1),
  point("directory", "fix_placement", "set_up", 1),
  point("directory", "add_cell", "set_up", 4),
  point("directory", "record_key", "set_up", 6),
  point("ledger", "migrate", "set_up", 4),
  point("ledger", "keep_name", "set_up", 4),
  point("ledger", "confirm_placement", "set_up", 4),
  point("shard", "migrate", "load", 8),
  point("shard", "keep_name", "load", 8),
  point("shard", "confirm_placement", "load", 8),
  point("shard", "exchange", "load", 150),
  point("shard", "clear", "load", 2),
  point("ledger", "raise_incarnation", "load", 2),
  point("ledger", "grant", "load", 60),
  point("ledger", "decide", "load", 60),
  point("ledger", "advance_applied", "cron", 3),
  point("ledger", "prune", "prune", 2),
  { name: "cron:begin run", workload: "cron", hits: 3 },
  { name: "cron:save cells", workload: "cron", hits: 3 },
  { name: "cron:save keys", workload: "cron", hits: 1 },
  { name: "cron:save leases", workload: "cron", hits: 4 },
  { name: "cron:mark cells", workload: "cron", hits: 3 },
  { name: "cron:prune runs", workload: "cron", hits: 3 },
  { name: "cron:prune leases", workload: "cron", hits: 3 },
  { name: "cron:end run", workload: "cron", hits: 3 },
];

/** Writes without a failpoint round, and why. */
export const exempt: Readonly<Record<string, string>> = {
  "directory:keep_name": "the directory has one name and keeps none",
  "directory:confirm_placement": "the directory fixes the placement and asks nobody",
  "directory:change_cell": "an operator's call; no begin, commit, rollback or cron comes here",
  "directory:revoke_key": "an operator's call; no begin, commit, rollback or cron comes here",
  "directory:take_slot": "of verifications; no begin, commit, rollback or cron comes here",
  "directory:release_slot": "of verifications; no begin, commit, rollback or cron comes here",
  "ledger:set_state": "an operator's call; no begin, commit, rollback or cron comes here",
  "ledger:revoke_cell_key": "an operator's call; no begin, commit, rollback or cron comes here",
  "cron:reset cursor": "only for a ledger that was restored from a backup, which no crash makes",
};

/** Every write that there is in the objects, as failpoints name it. */
export const objectWrites: readonly string[] = objectKinds.flatMap((kind) =>
  [...writePoints.any, ...writePoints[kind]].map((write) => `${kind}:${write}`),
);

/** Statements of the cron by how they begin; what does not write is null. */
const statements: readonly [RegExp, string | null][] = [
  [/^\s*select/i, null],
  [/^insert into "cron_runs" .* on conflict do nothing/i, "begin run"],
  [/^insert into "cron_runs" .* on conflict .* do update/i, "end run"],
  [/^\s*INSERT INTO cells/, "save cells"],
  [/^\s*INSERT INTO keys/, "save keys"],
  [/^insert into "leases"/, "save leases"],
  [/^\s*UPDATE cells SET\s+last_pulled_at_ms/, "mark cells"],
  [/^update "cells" set "pulled_position"/, "reset cursor"],
  [/^delete from "cron_runs"/, "prune runs"],
  [/^\s*DELETE FROM leases WHERE \(cell_id, created_position\) IN/, "prune leases"],
];

/** Undefined for what only reads. Throws for a statement that is not listed: a new write needs a failpoint. */
export function cronWriteOf(sql: string): string | undefined {
  const known = statements.find(([pattern]) => pattern.test(sql));
  if (known === undefined)
    throw new Error(`a statement of the cron has no name in failpoints.ts: ${sql.slice(0, 80)}`);
  return known[1] === null ? undefined : `cron:${known[1]}`;
}
