import type { Limits } from "../../../../common/limits.ts";
import { cellStates } from "../../../kernel/messages.ts";
import type {
  DirectoryMetrics,
  LedgerMetrics,
  PartMetrics,
  ShardMetrics,
} from "../../../kernel/metrics/messages.ts";
import type { ScrubMetrics } from "../../scrub/messages.ts";
import { driftKinds, type ReportedStatus } from "../../status/status.ts";
import type { GrowthProgress } from "../../growth/messages.ts";
import type { ProjectionMetrics } from "./cron.ts";
import type { Exposition } from "./exposition.ts";

// These functions turn the answers of objects into samples.

function addPart(to: Exposition, part: string, metrics: PartMetrics): void {
  const { startedAtMs, state, sizeBytes, waitingWrites } = metrics;
  to.add("leasehold_start_time_seconds", { part }, startedAtMs / 1_000);
  to.add("leasehold_history_lost", { part }, Number(state === "lost"));
  to.add("leasehold_reconciling", { part }, Number(state === "reconciling"));
  to.add("leasehold_object_size_bytes", { part }, sizeBytes);
  to.add("leasehold_waiting_writes", { part }, waitingWrites);
}

/** Before the first pass has ended, 0 rows would say that all is well. */
function addScrub(
  to: Exposition,
  part: string,
  { findings, endedAtMs, rows, unchecked }: ScrubMetrics,
): void {
  to.add("leasehold_scrub_findings", { part }, findings);
  if (endedAtMs === null) return;
  to.add("leasehold_scrub_end_timestamp_seconds", { part }, endedAtMs / 1_000);
  to.add("leasehold_scrub_rows", { part }, rows);
  to.add("leasehold_scrub_unchecked", { part }, unchecked);
}

export function addLedger(
  to: Exposition,
  part: string,
  cell: string,
  metrics: LedgerMetrics,
  { ledgerBytes }: Pick<Limits, "ledgerBytes">,
): void {
  addPart(to, part, metrics);
  addScrub(to, part, metrics.scrub);
  to.add("leasehold_object_limit_bytes", { part }, ledgerBytes);
  for (const state of cellStates)
    to.add("leasehold_cell_state", { cell, state }, Number(metrics.cellState === state));
  for (const { result, reason, count } of metrics.begins)
    to.add("leasehold_begins", { cell, result, reason }, count);
  to.add("leasehold_begins_running", { cell }, metrics.runningBegins);
  to.add("leasehold_begins_waiting", { cell }, metrics.waitingBegins);
  for (const { result, count } of metrics.waits) to.add("leasehold_begin_waits", { cell, result }, count);
  for (const { outcome, by, count } of metrics.decisions)
    to.add(outcome === "COMMITTED" ? "leasehold_commits" : "leasehold_rollbacks", { cell, by }, count);
  to.add("leasehold_fences", { cell }, metrics.fences);
  for (const { reason, count } of metrics.refusedDecisions)
    to.add("leasehold_decisions_refused", { cell, reason }, count);
  to.addHistogram("leasehold_begin_duration_seconds", { cell }, metrics.beginDurations);
  to.addHistogram("leasehold_begin_wait_duration_seconds", { cell }, metrics.waitDurations);
  to.addHistogram("leasehold_decision_duration_seconds", { cell }, metrics.decisionDurations);
  to.addHistogram("leasehold_exchange_duration_seconds", { cell }, metrics.exchangeDurations);
  to.add("leasehold_decisions_unapplied", { cell }, metrics.unappliedDecisions);
  to.add("leasehold_decision_oldest_unapplied_age_seconds", { cell }, metrics.oldestUnappliedMs / 1_000);
  to.add("leasehold_leases_outstanding", { cell }, metrics.outstandingLeases);
  to.add("leasehold_leases_stale", { cell }, metrics.staleLeases);
  to.add("leasehold_lease_oldest_age_seconds", { cell }, metrics.oldestLeaseMs / 1_000);
  to.addHistogram("leasehold_lease_age_seconds", { cell }, metrics.leaseAges);
  to.add("leasehold_transfers_prepared", { cell }, metrics.preparedTransfers);
  to.add("leasehold_transfer_oldest_age_seconds", { cell }, metrics.oldestTransferMs / 1_000);
  if (metrics.reported !== null) addReported(to, cell, metrics.reported);
}

/** What the cell has not reported is left out, because 0 would say that all is well. */
function addReported(to: Exposition, cell: string, status: ReportedStatus): void {
  const { reportedAtMs, reconciliation, verification, sdk } = status;
  const { name, version } = sdk;
  const addTime = (family: TimeOfCell, atMs: number | undefined): void => {
    if (atMs !== undefined) to.add(family, { cell }, atMs / 1_000);
  };
  addTime("leasehold_cell_reported_timestamp_seconds", reportedAtMs);
  addTime("leasehold_cell_reconciled_timestamp_seconds", reconciliation?.lastDoneAtMs);
  addTime("leasehold_cell_verified_timestamp_seconds", verification?.lastDoneAtMs);
  const counts = verification?.counts;
  if (counts !== undefined)
    for (const kind of driftKinds) to.add("leasehold_cell_drift", { cell, kind }, counts[kind] ?? 0);
  const stale = reconciliation?.staleLeases;
  if (stale !== undefined) to.add("leasehold_cell_stale_leases", { cell }, stale);
  to.add("leasehold_cell_sdk", { cell, name, version }, 1);
}

type TimeOfCell = `leasehold_cell_${"reported" | "reconciled" | "verified"}_timestamp_seconds`;

export function addShard(
  to: Exposition,
  part: string,
  shard: string,
  metrics: ShardMetrics,
  { shardBytes, heldNames }: Pick<Limits, "shardBytes" | "heldNames">,
): void {
  addPart(to, part, metrics);
  addScrub(to, part, metrics.scrub);
  to.add("leasehold_object_limit_bytes", { part }, shardBytes);
  to.add("leasehold_exchanges", { shard }, metrics.exchanges);
  to.addHistogram("leasehold_shard_exchange_duration_seconds", { shard }, metrics.exchangeDurations);
  to.add("leasehold_settles", { shard }, metrics.settles);
  to.add("leasehold_waits", { shard }, metrics.waits);
  to.add("leasehold_waits_refused", { shard }, metrics.refusedWaits);
  to.add("leasehold_offers_missed", { shard }, metrics.missedOffers);
  to.add("leasehold_queue_length", { shard }, metrics.waitingBegins);
  to.add("leasehold_inquiries", { shard }, metrics.inquiries);
  to.add("leasehold_sweeps", { shard }, metrics.sweeps);
  to.add("leasehold_lookups", { shard }, metrics.lookups);
  to.add("leasehold_reports", { shard }, metrics.reports);
  to.add("leasehold_change_reads", { shard }, metrics.changeReads);
  to.add("leasehold_record_reads", { shard }, metrics.recordReads);
  to.add("leasehold_waiting_reads", { shard }, metrics.waitingReads);
  to.add("leasehold_holds", { shard }, metrics.holds);
  to.add("leasehold_holds_of_one_cell", { shard }, metrics.holdsOfOneCell);
  to.add("leasehold_holds_limit", { shard }, heldNames);
}

export function addDirectory(to: Exposition, part: string, metrics: DirectoryMetrics): void {
  addPart(to, part, metrics);
  to.add("leasehold_keys", {}, metrics.keys);
  to.add("leasehold_keys_revoked", {}, metrics.revokedKeys);
  to.add("leasehold_verification_slots_taken", {}, metrics.verificationSlots.length);
  for (const { cell, heldMs } of metrics.verificationSlots)
    to.add("leasehold_verification_slot_held_seconds", { cell }, heldMs / 1_000);
  to.add("leasehold_verification_waiting", {}, metrics.verificationWaiting);
}

export function addGrowth(to: Exposition, shard: string, { copied, waiting, cleaned }: GrowthProgress): void {
  to.add("leasehold_growth_copied_names", { shard }, copied);
  to.add("leasehold_growth_waiting_changes", { shard }, waiting);
  to.add("leasehold_growth_deleted_names", { shard }, cleaned);
}

export function addProjection(to: Exposition, metrics: ProjectionMetrics): void {
  const { lastRun, oldestCopyMs } = metrics;
  if (lastRun !== null) {
    const { startedAtMs, finishedAtMs, cellsPulled, cellsFailed } = lastRun;
    to.add("leasehold_cron_end_timestamp_seconds", {}, finishedAtMs / 1_000);
    to.add("leasehold_cron_duration_seconds", {}, Math.max(0, finishedAtMs - startedAtMs) / 1_000);
    to.add("leasehold_cron_cells_pulled", {}, cellsPulled);
    to.add("leasehold_cron_cells_failed", {}, cellsFailed);
  }
  to.add("leasehold_cron_runs_failed", {}, metrics.failedRuns);
  if (oldestCopyMs !== null) to.add("leasehold_copy_oldest_timestamp_seconds", {}, oldestCopyMs / 1_000);
  for (const kind of ["key", "certificate"] as const) {
    const atMs = metrics.nextExpiryMs[kind];
    if (atMs !== null) to.add("leasehold_next_expiry_timestamp_seconds", { kind }, atMs / 1_000);
  }
  to.add("leasehold_copy_cells_missing", {}, metrics.cellsNeverCopied);
  to.add("leasehold_copy_cells_failed", {}, metrics.cellsFailed);
  for (const { id: webhook, isEnabled, delivered, failedAttempts, givenUp, ...each } of metrics.webhooks) {
    to.add("leasehold_webhook_enabled", { webhook }, Number(isEnabled));
    to.add("leasehold_webhook_attempts", { webhook, result: "delivered" }, delivered);
    to.add("leasehold_webhook_attempts", { webhook, result: "failed" }, failedAttempts);
    to.add("leasehold_webhook_messages_given_up", { webhook }, givenUp);
    to.add("leasehold_webhook_messages_waiting", { webhook }, each.waiting);
    to.add("leasehold_webhook_oldest_message_age_seconds", { webhook }, each.oldestAgeMs / 1_000);
    to.add("leasehold_webhook_failing_seconds", { webhook }, each.failingMs / 1_000);
  }
}
