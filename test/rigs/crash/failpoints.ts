import { directory, ledger, shard } from "../../../src/coordinator/capabilities/index.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";

/**
 * The points at which a process can be killed: each durable write of the objects, and each write of the cron
 * to D1.
 */

const writesOf = { directory: directory.writes, ledger: ledger.writes, shard: shard.writes };
const objectKinds = ["directory", "ledger", "shard"] as const;
export type ObjectKind = (typeof objectKinds)[number];
export type Side = "before" | "after";

/** The environment variables that arm a failpoint. A server of `src/coordinator/index.ts` ignores them. */
export const armVariables = {
  point: "CRASH_POINT",
  side: "CRASH_SIDE",
  hit: "CRASH_HIT",
  reportUrl: "CRASH_REPORT_URL",
} as const;

/** Runs the cron at once. Only the server under test has this path. */
export const CRON_PATH = "/crash/cron";

/** What a round does so that the write is reached. */
type RoundWorkload =
  /** The first start with a state folder, and the first runs of the cron, which wake all objects. */
  | "set_up"
  /** Begins, commits and rollbacks. */
  | "load"
  /** The same, with the cron running continuously. */
  | "cron"
  /** The same, on a folder whose older outcomes may be pruned. */
  | "prune";

export interface Failpoint {
  /** Such as `ledger:grant`. For a write of the cron `cron:save leases`, with the name that the log uses. */
  name: string;
  workload: RoundWorkload;
  /** The process dies at one of the first `hits` hits. */
  hits: number;
}

const point = (kind: ObjectKind, write: WritePoint, workload: RoundWorkload, hits: number): Failpoint => ({
  name: `${kind}:${write}`,
  workload,
  hits,
});

export const failpoints: readonly Failpoint[] = [
  point("directory", "migrate", "set_up", 1),
  point("directory", "add_cell", "set_up", 4),
  point("directory", "record_key", "set_up", 6),
  point("directory", "use_types", "load", 1),
  point("ledger", "migrate", "set_up", 4),
  point("ledger", "keep_name", "set_up", 4),
  point("ledger", "confirm_placement", "set_up", 4),
  point("shard", "migrate", "set_up", 2),
  point("shard", "keep_name", "set_up", 2),
  point("shard", "confirm_placement", "set_up", 2),
  point("shard", "exchange", "load", 150),
  point("shard", "clear", "load", 2),
  point("ledger", "raise_incarnation", "load", 2),
  point("ledger", "grant", "load", 60),
  point("ledger", "decide", "load", 60),
  point("ledger", "advance_applied", "cron", 3),
  point("ledger", "prune", "prune", 2),
  { name: "cron:begin run", workload: "cron", hits: 3 },
  { name: "cron:save cells", workload: "cron", hits: 3 },
  { name: "cron:save point", workload: "set_up", hits: 1 },
  { name: "cron:save keys", workload: "set_up", hits: 1 },
  { name: "cron:forget keys", workload: "set_up", hits: 1 },
  { name: "cron:save leases", workload: "cron", hits: 4 },
  { name: "cron:mark cells", workload: "cron", hits: 3 },
  { name: "cron:prune runs", workload: "cron", hits: 3 },
  { name: "cron:save audit", workload: "set_up", hits: 1 },
  { name: "cron:prune audit", workload: "cron", hits: 3 },
  { name: "cron:end run", workload: "cron", hits: 3 },
];

/** Writes without a failpoint round, and the reason. */
const GROWTH =
  "only while the deployment gets more shards; test/hosts/standalone/growth.test.ts kills it then";
const LOST = "only after the storage went back in time";
const FORMATS = "there is one format; the simulation crashes there, and the upgrade rig kills it";

export const exempt: Readonly<Record<string, string>> = {
  "directory:keep_name": "the directory does not store its name",
  "directory:confirm_placement": "the directory sets the placement and does not confirm it",
  "directory:change_cell": "only an operator's call writes it",
  "directory:mark_cell_removed": "only the removal of a cell writes it",
  "directory:change_types": "only an operator's call writes it",
  "directory:change_identities": "only an operator's call writes it",
  "directory:begin_operation": "only an operator's call writes it",
  "directory:end_operation": "only an operator's call or a settled operation writes it",
  "directory:revoke_key": "only an operator's call writes it",
  "directory:take_slot": "only a verification writes it",
  "directory:release_slot": "only a verification writes it",
  "ledger:report_status": "nothing is decided by it",
  "ledger:renew": "nothing is decided by it",
  "ledger:approve_removal": "only the removal of a cell writes it",
  "ledger:start_removal": "only the removal of a cell writes it",
  "ledger:finish_removal": "only the removal of a cell writes it",
  "ledger:scrub": "nothing is decided by it",
  "shard:scrub": "nothing is decided by it",
  "directory:forget_audit": "the entries are in D1 already",
  "ledger:forget_audit": "the entries are in D1 already",
  "shard:forget_audit": "the entries are in D1 already",
  "shard:drop_past_claims": "claims must be months old first; the simulation crashes there",
  "shard:erase_past_claims": "only an operator's call writes it",
  "ledger:change_transfer": "the load has no transfers; the simulation crashes there",
  "shard:move_claims": "the load has no transfers; the simulation crashes there",
  "directory:start_growth": GROWTH,
  "directory:order_cut": GROWTH,
  "directory:confirm_cut": GROWTH,
  "directory:abort_growth": GROWTH,
  "directory:finish_growth": GROWTH,
  "shard:copy": GROWTH,
  "shard:receive": GROWTH,
  "shard:fence": GROWTH,
  "shard:clean": GROWTH,
  "ledger:set_state": "only an operator's call writes it",
  "ledger:revoke_cell_key": "only an operator's call writes it",
  "directory:raise_format": FORMATS,
  "ledger:raise_format": FORMATS,
  "shard:raise_format": FORMATS,
  "directory:restore_directory": LOST,
  "ledger:rebuild_leases": LOST,
  "ledger:accept_loss": LOST,
  "shard:accept_loss": LOST,
  "shard:finish_reconciliation": LOST,
  "directory:record_lost_history": LOST,
  "ledger:record_lost_history": LOST,
  "shard:record_lost_history": LOST,
  "cron:save types": "a begin may write it first; the fault matrix fails it (declared type)",
  "cron:note aborted growth": "only after a growth was aborted",
  "cron:save operations": "only after an operation was started",
  "cron:save growth": "only while the deployment gets more shards",
  "cron:prune credential uses": "once per hour, and nothing is decided by these rows",
  "cron:save alerts": "only with a webhook",
  "cron:save sightings": "only with a webhook",
  "cron:give up messages": "only with a webhook",
  "cron:claim messages": "only with a webhook",
  "cron:record attempts": "only with a webhook",
  "cron:release messages": "only with a webhook, and at the end of a run's time",
};

/** Every write of the objects, named as failpoints are. */
export const objectWrites: readonly string[] = objectKinds.flatMap((kind) =>
  writesOf[kind].map((write) => `${kind}:${write}`),
);

/** Patterns of the cron's statements. Null for statements that only read. */
const statements: readonly [RegExp, string | null][] = [
  [/^\s*select/i, null],
  [/^insert into "cron_runs" .* on conflict do nothing/i, "begin run"],
  [/^insert into "cron_runs" .* on conflict .* do update/i, "end run"],
  [/^\s*INSERT INTO cells/, "save cells"],
  [/^insert into "type_sets"/, "save types"],
  [/^insert into "growths"/, "save growth"],
  [/^insert into "operation_sets"/, "save operations"],
  [/^update "growths"/, "note aborted growth"],
  [/^\s*INSERT INTO keys/, "save keys"],
  [/^\s*DELETE FROM keys/, "forget keys"],
  [/^(?:insert into|update) "seen_points"/, "save point"],
  [/^\s*(?:INSERT INTO|DELETE FROM) open_leases/, "save leases"],
  [/^\s*UPDATE cells SET\s+contradiction_seen_at_ms/, "mark cells"],
  [/^\s*UPDATE cells SET seen/, "save leases"],
  [/^delete from "cron_runs"/, "prune runs"],
  [/^\s*INSERT INTO audit/, "save audit"],
  [/^\s*INSERT INTO webhook_deliveries/, "save alerts"],
  [/^\s*UPDATE webhook_deliveries SET claimed_by = NULL/, "release messages"],
  [/^\s*UPDATE webhook_deliveries SET claimed_by/, "claim messages"],
  [/^\s*UPDATE webhooks SET\s+delivered/, "record attempts"],
  [/^\s*UPDATE webhooks SET given_up/, "give up messages"],
  [/^\s*UPDATE webhook_alerts SET\s+held_since_ms/, "save sightings"],
  [/^\s*DELETE FROM audit WHERE \(at_ms, id\) IN/, "prune audit"],
  [/^\s*DELETE FROM credential_uses/, "prune credential uses"],
];

/** Every write of the cron that has a pattern, named as failpoints are. */
export const namedWrites: readonly string[] = [
  ...new Set(statements.flatMap(([, name]) => (name === null ? [] : `cron:${name}`))),
];

/** The error of a statement that has no name. Then the cron ends, and reaches no failpoint behind it. */
export const UNNAMED = "a statement of the cron has no name in failpoints.ts";

/** Returns undefined for a read. Throws for an unknown statement, because a new write needs a failpoint. */
export function cronWriteOf(sql: string): string | undefined {
  const known = statements.find(([pattern]) => pattern.test(sql));
  if (known === undefined) throw new Error(`${UNNAMED}: ${sql.slice(0, 80)}`);
  return known[1] === null ? undefined : `cron:${known[1]}`;
}
