import { VERSION } from "../../../api/version.ts";
import { cellStates } from "../../../api/contract/cell-states.ts";
import type { DecisionCount } from "../../../kernel/metrics/messages.ts";
import {
  byClock,
  counter,
  familiesOf,
  gauge,
  gaugeHistogram,
  histogram,
  info,
  secondsOf,
  since,
} from "./family.ts";

const withOutcome = (decisions: readonly DecisionCount[], outcome: DecisionCount["outcome"]) =>
  decisions.filter((each) => each.outcome === outcome).map(({ by, count }) => [{ by }, count] as const);

export const families = [
  familiesOf("deployment", null, {
    leasehold_build: info(
      "The version of the code, and the placement of the deployment.",
      ({ placement }) => [[{ version: VERSION, placement }, 1]],
      "version",
      "placement",
    ),
    leasehold_shards: gauge("The number of shards in use.", ({ shards }) => shards),
  }),
  familiesOf("answered", null, {
    leasehold_up: gauge(
      "1 if the part answered this scrape, 0 if it failed or did not answer in time.",
      Number,
    ),
  }),
  familiesOf("part", null, {
    leasehold_start_time_seconds: gauge(
      "When the instance of the part started, since 1970. Its counters started at 0 then.",
      (of) => secondsOf(of.startedAtMs),
    ),
    leasehold_object_size_bytes: gauge("The size of the part's database.", (of) => of.sizeBytes),
    leasehold_object_limit_bytes: gauge(
      "The size from which on the part refuses begins.",
      (of, { ledgerBytes, shardBytes }) =>
        "cellState" in of ? ledgerBytes : "holds" in of ? shardBytes : null,
    ),
    leasehold_waiting_writes: gauge(
      "Writes that wait for the next transaction of the part.",
      (of) => of.waitingWrites,
    ),
  }),
  familiesOf("deployment", null, {
    leasehold_cells: gauge(
      "Registered cells, without those that were removed.",
      ({ view }) => view.cells.size,
    ),
    leasehold_cells_left_out: gauge(
      "Cells among them that this answer leaves out, because there are more than metrics_cells allows.",
      (of) => of.cellsLeftOut,
    ),
  }),
  familiesOf("ledger", null, {
    leasehold_cell_state: gauge(
      `1 for the state of the cell, and 0 for the others: ${cellStates.join(", ")}.`,
      ({ cellState }) => cellStates.map((state) => [{ state }, Number(state === cellState)]),
      "state",
    ),
    leasehold_begins: counter(
      `Begins by their result, and by why they failed, ${since}.`,
      ({ begins }) => begins.map(({ result, reason, count }) => [{ result, reason }, count]),
      "result",
      "reason",
    ),
    leasehold_begins_running: gauge("Begins that are running.", (of) => of.runningBegins),
    leasehold_commits: counter(
      `Leases that were committed, by who did it, ${since}.`,
      (of) => withOutcome(of.decisions, "COMMITTED"),
      "by",
    ),
    leasehold_rollbacks: counter(
      `Leases that were rolled back, by who did it, ${since}.`,
      (of) => withOutcome(of.decisions, "ROLLED_BACK"),
      "by",
    ),
    leasehold_fences: counter(
      `Rollbacks of leases that the ledger did not know, ${since}.`,
      (of) => of.fences,
    ),
    leasehold_decisions_refused: counter(
      `Commits and rollbacks that were refused, ${since}.`,
      (of) => of.refusedDecisions.map(({ reason, count }) => [{ reason }, count]),
      "reason",
    ),
    leasehold_begin_duration_seconds: histogram(
      `From the arrival of a begin at its ledger to the answer, ${byClock}`,
      (of) => of.beginDurations,
    ),
    leasehold_decision_duration_seconds: histogram(
      `From the arrival of a commit or rollback at its ledger to the answer, ${byClock}`,
      (of) => of.decisionDurations,
    ),
    leasehold_exchange_duration_seconds: histogram(
      `From a ledger's message to a shard to the answer, ${byClock}`,
      (of) => of.exchangeDurations,
    ),
    leasehold_decisions_unapplied: gauge(
      "Decisions that some shard has not confirmed yet.",
      (of) => of.unappliedDecisions,
    ),
    leasehold_decision_oldest_unapplied_age_seconds: gauge(
      "The age of the oldest of these decisions. 0 if there is none.",
      (of) => secondsOf(of.oldestUnappliedMs),
    ),
    leasehold_leases_outstanding: gauge("Granted leases that are not decided.", (of) => of.outstandingLeases),
    leasehold_leases_stale: gauge(
      "Of the oldest 1000 leases, those that were neither granted nor renewed within the limit stale_s.",
      (of) => of.staleLeases,
    ),
    leasehold_lease_oldest_age_seconds: gauge(
      "The age of the oldest outstanding lease. 0 if there is none.",
      (of) => secondsOf(of.oldestLeaseMs),
    ),
    leasehold_lease_age_seconds: gaugeHistogram(
      "The ages of the outstanding leases, or of the oldest 1000 if there are more.",
      (of) => of.leaseAges,
    ),
  }),
  familiesOf("shard", null, {
    leasehold_exchanges: counter(
      `Messages with begins and decisions from ledgers, ${since}.`,
      (of) => of.exchanges,
    ),
    leasehold_shard_exchange_duration_seconds: histogram(
      `From the arrival of such a message to the answer, ${byClock}`,
      (of) => of.exchangeDurations,
    ),
    leasehold_settles: counter(`Messages from ledgers whose begins met holds, ${since}.`, (of) => of.settles),
    leasehold_inquiries: counter(
      `Messages in which the shard asked a ledger about holds, ${since}.`,
      (of) => of.inquiries,
    ),
    leasehold_sweeps: counter(`Alarms in which the shard looked for old holds, ${since}.`, (of) => of.sweeps),
    leasehold_lookups: counter(`Names that were looked up, ${since}.`, (of) => of.lookups),
    leasehold_waiting_reads: gauge(
      "Lists and digests that wait for their turn at the shard.",
      (of) => of.waitingReads,
    ),
    leasehold_holds: gauge("Names on hold. A long name counts as several.", (of) => of.holds),
    leasehold_holds_of_one_cell: gauge(
      "Those for the cell with the most of them.",
      (of) => of.holdsOfOneCell,
    ),
    leasehold_holds_limit: gauge(
      "Names that may be on hold (`LEASEHOLD_HELD_NAMES`), half of them for one cell.",
      (_, { heldNames }) => heldNames,
    ),
  }),
  familiesOf("d1", null, {
    leasehold_cron_end_timestamp_seconds: gauge(
      "When the last run of the cron that finished has ended, since 1970.",
      ({ lastRun }) => secondsOf(lastRun?.finishedAtMs),
    ),
    leasehold_cron_duration_seconds: gauge(
      "How long that run took.",
      ({ lastRun }) => lastRun && Math.max(0, lastRun.finishedAtMs - lastRun.startedAtMs) / 1_000,
    ),
    leasehold_cron_cells_pulled: gauge(
      "Cells whose ledger that run copied into D1 completely.",
      ({ lastRun }) => lastRun?.cellsPulled,
    ),
    leasehold_cron_cells_failed: gauge(
      "Cells whose ledger that run could not reach or copy.",
      ({ lastRun }) => lastRun?.cellsFailed,
    ),
    leasehold_cron_runs_failed: gauge(
      "Of the last 10 runs of the cron, those that failed or were killed.",
      (of) => of.failedRuns,
    ),
    leasehold_copy_oldest_timestamp_seconds: gauge(
      "When the copy in D1 that is furthest behind was complete, since 1970.",
      (of) => secondsOf(of.oldestCopyMs),
    ),
    leasehold_copy_cells_missing: gauge(
      "Cells that were never copied completely.",
      (of) => of.cellsNeverCopied,
    ),
    leasehold_copy_cells_failed: gauge("Cells whose last copy failed.", (of) => of.cellsFailed),
  }),
];
