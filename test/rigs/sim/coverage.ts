import {
  activities,
  cellCrashes,
  diskFaults,
  driftKinds,
  localFaults,
  messageFaults,
  partFaults,
  recordFaults,
} from "./simulation-settings.ts";
import * as kinds from "../../../src/coordinator/capabilities/index.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import { ruleOf } from "../../support/rules.ts";
import { invariants } from "./violation.ts";

/**
 * The numbers of all rules. Without those of the protobuf wire, the one about the shares of callers in the
 * Worker (M8), and of transfers the one that a ledger keeps alone (Y7).
 */
const numbers = [...ruleOf.keys()].filter((number) => !/^(?:W|Y7$|M8$)/.test(number));

/** Writes that hardly any run makes, or that no run has pending for long. */
const RARELY_CUT: ReadonlySet<WritePoint> = new Set([
  "keep_name",
  "record_lost_history",
  "rebuild_leases",
  "accept_loss",
  "finish_reconciliation",
  "restore_directory",
  "approve_removal",
  "start_removal",
  "finish_removal",
  "forget_audit",
  "drop_past_claims",
  "erase_past_claims",
  "add_cell",
  "change_cell",
  "mark_cell_removed",
  "record_key",
  "revoke_key",
  "change_identities",
  "begin_operation",
  "end_operation",
]);

/**
 * Everything that enough runs must have met: every kind of fault, every activity, every invariant and every
 * rule.
 */
function expected(): string[] {
  return [
    ...[...messageFaults, ...diskFaults, ...partFaults, ...recordFaults, ...localFaults].map(
      (kind) => `fault ${kind}`,
    ),
    ...cellCrashes.map((kind) => `fault cell:${kind}`),
    // A crash or a replacement while the write was pending. The directory makes few other writes during a
    // run.
    ...[...new Set([...kinds.ledger.writes, ...kinds.shard.writes, ...kinds.directory.writes])]
      .filter((point) => !RARELY_CUT.has(point))
      .map((point) => `fault cut ${point}`),
    "fault sent_by_replaced",
    "fault alarm_cut",
    "fault alarm_redelivered",
    "fault alarm_restored",
    ...activities.map((kind) => `activity ${kind}`),
    ...["granted", "running", "committed", "rolled_back", "gone"].map((verdict) => `verdict ${verdict}`),
    ...["committed", "rolledBack", "pending", "orphaned"].map((counter) => `reconciled ${counter}`),
    ...["failed", "aborted by the coordinator", "aborted by the database"].map((end) => `reconciled ${end}`),
    ...["done", "out_of_time", "needs_approval", "no_slot", "resumed", "without changes"].map(
      (end) => `verified ${end}`,
    ),
    ...["aborted by the coordinator", "aborted by the database"].map((end) => `verified ${end}`),
    ...[
      "create done",
      "replace done",
      "destroy done",
      "create other_cell",
      "create changed",
      "create leased",
    ].map((item) => `verified ${item}`),
    ...driftKinds.map((kind) => `drift ${kind}`),
    "a drift is over",
    "a queued row is done",
    "digest held",
    "digest asked",
    "slot refused",
    "slot expired",
    "slot renewed",
    "crons overlap",
    "a cron takes over a minute",
    "recorded lease",
    "source on two pages",
    "digest in parts",
    "a fence was forgotten",
    "an inquiry told a ledger",
    "unchecked",
    "a lost cut was noticed",
    "the cron told a shard",
    "the Worker told a shard",
    "D1 told a ledger",
    "the Worker told a ledger",
    "a begin through the Worker told a shard",
    "an operator declared a loss",
    ...["alone", "without D1", "with the ledgers"].map((kind) => `the directory went back ${kind}`),
    "the directory noticed that it went back",
    ...["offered", "waiting", "full"].map((state) => `waited: ${state}`),
    "settled awaited",
    "refused TYPE_IN_USE",
    "refused a change of an older set of types",
    "a type was changed before its first begin",
    "refused LEDGER_FULL",
    "a freeze held",
    "granted while draining",
    "the change feed was pruned",
    "the change feed goes on to a new shard",
    "a removal released names",
    "the cron marks a removed cell",
    "D1 marks a removed cell",
    "a ledger has lost a removal",
    "a removal outlives a ledger that went back",
    "a removal outlives a shard that went back",
    "a shard with names of a removed cell stays out of service",
    "scrub cleared a hold",
    "scrub left something out",
    ...["wrong_digest", "wrong_epoch", "wrong_source_order", "unfit_hold"].map(
      (kind) => `scrub found ${kind}`,
    ),
    ...["unreadable_lease", "missing_holds"].map((kind) => `scrub found ${kind}`),
    "a transfer was cut",
    "a transfer was aborted",
    ...["prepared", "cut", "being rewritten", "finished", "switched back"].map(
      (state) => `a transfer went back: ${state}`,
    ),
    "a late prepare of a transfer",
    "a name of a transfer was repaired",
    "a revocation held",
    "a forgotten revocation held",
    "cleaned up without a cron",
    "cleanup needs a cron",
    "a growth has ended",
    "a growth was aborted",
    "a hold moved",
    "a source has lost a name that moves",
    "a source has gone back after a growth",
    "new shards kept a source from accepting its loss",
    "cut when all was copied",
    "an operation was in the way",
    "upgraded",
    "rolled back",
    "an upgrade was finished",
    "an upgrade was finished too early",
    "rolled back after the upgrade was finished",
    ...Object.keys(invariants),
    ...numbers,
  ];
}

export function missing(seen: Readonly<Record<string, number>>): string[] {
  return expected().filter((what) => (seen[what] ?? 0) === 0);
}
