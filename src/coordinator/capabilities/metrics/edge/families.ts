import { cellStates } from "../../../kernel/messages.ts";

/** One family of metrics, as `GET /metrics` declares it. */
export interface Family {
  type: "counter" | "gauge" | "histogram" | "gaugehistogram" | "info";
  help: string;
  labels: readonly string[];
}

const cell = ["cell"] as const;
const shard = ["shard"] as const;
const part = ["part"] as const;
/** The id of the webhook. Its address may be a secret. */
const webhook = ["webhook"] as const;

const since = "since the instance of the object started";

/** developers.cloudflare.com/workers/runtime-apis/performance */
const byClock = "by the clock of the object. On Workers it only moves with I/O, so computing counts as 0.";

/**
 * Every family of metrics. Names have the base unit at their end. A counter belongs to one object, because
 * each object starts again at 0 with each of its instances: a sum over objects would look like a reset of all
 * of them. docs/reference/metrics.md lists the same families; a test compares them.
 */
export const families = {
  leasehold_build: {
    type: "info",
    help: "The version of the code, and the placement of the deployment.",
    labels: ["version", "placement"],
  },
  leasehold_shards: { type: "gauge", help: "The number of shards in use.", labels: [] },
  leasehold_growth: {
    type: "gauge",
    help: "The number of shards to which the deployment grows. Left out while it does not grow.",
    labels: ["phase"],
  },
  leasehold_growth_copied_names: {
    type: "gauge",
    help: "The names that a shard has sent to new shards in this growth.",
    labels: shard,
  },
  leasehold_growth_waiting_changes: {
    type: "gauge",
    help: "The changes of copied names that a shard must send again, at most 10,000.",
    labels: shard,
  },
  leasehold_growth_deleted_names: {
    type: "gauge",
    help: "The names that have moved and that their old shard has deleted.",
    labels: shard,
  },
  leasehold_up: {
    type: "gauge",
    help: "1 if the part answered this scrape, 0 if it failed or did not answer in time.",
    labels: part,
  },
  leasehold_start_time_seconds: {
    type: "gauge",
    help: "When the instance of the part started, since 1970. Its counters started at 0 then.",
    labels: part,
  },
  leasehold_history_lost: {
    type: "gauge",
    help: "1 while the part has gone back in time and refuses everything, until an operator reconciles it.",
    labels: part,
  },
  leasehold_reconciling: {
    type: "gauge",
    help: "1 while a shard that has gone back in time is reconciled.",
    labels: part,
  },
  leasehold_scrub_findings: {
    type: "gauge",
    help: "Rows of the part that break a rule, as the last scrub or the running one has found: the larger.",
    labels: part,
  },
  leasehold_scrub_end_timestamp_seconds: {
    type: "gauge",
    help: "When the last scrub of the part ended, since 1970. Left out before the first one.",
    labels: part,
  },
  leasehold_scrub_rows: {
    type: "gauge",
    help: "The rows that the last scrub of the part has checked.",
    labels: part,
  },
  leasehold_scrub_unchecked: {
    type: "gauge",
    help: "Holds and leases that the last scrub could not compare, because the other part did not answer.",
    labels: part,
  },
  leasehold_object_size_bytes: {
    type: "gauge",
    help: "The size of the part's database.",
    labels: part,
  },
  leasehold_object_limit_bytes: {
    type: "gauge",
    help: "The size from which on the part refuses begins.",
    labels: part,
  },
  leasehold_waiting_writes: {
    type: "gauge",
    help: "Writes that wait for the next transaction of the part.",
    labels: part,
  },
  leasehold_cells: { type: "gauge", help: "Registered cells, without those that were removed.", labels: [] },
  leasehold_cells_left_out: {
    type: "gauge",
    help: "Cells among them that this answer leaves out, because there are more than metrics_cells allows.",
    labels: [],
  },
  leasehold_cell_state: {
    type: "gauge",
    help: `1 for the state of the cell, and 0 for the others: ${cellStates.join(", ")}.`,
    labels: ["cell", "state"],
  },
  leasehold_begins: {
    type: "counter",
    help: `Begins by their result, and by why they failed, ${since}.`,
    labels: ["cell", "result", "reason"],
  },
  leasehold_begins_running: { type: "gauge", help: "Begins that are running.", labels: cell },
  leasehold_begins_waiting: {
    type: "gauge",
    help: "Begins among them that wait for a leased name.",
    labels: cell,
  },
  leasehold_begin_waits: {
    type: "counter",
    help: `Waits of begins for leased names, by how they ended: offered, ended or refused, ${since}.`,
    labels: ["cell", "result"],
  },
  leasehold_commits: {
    type: "counter",
    help: `Leases that were committed, by who did it, ${since}.`,
    labels: ["cell", "by"],
  },
  leasehold_rollbacks: {
    type: "counter",
    help: `Leases that were rolled back, by who did it, ${since}.`,
    labels: ["cell", "by"],
  },
  leasehold_fences: {
    type: "counter",
    help: `Rollbacks of leases that the ledger did not know, ${since}.`,
    labels: cell,
  },
  leasehold_decisions_refused: {
    type: "counter",
    help: `Commits and rollbacks that were refused, ${since}.`,
    labels: ["cell", "reason"],
  },
  leasehold_begin_duration_seconds: {
    type: "histogram",
    help: `From the arrival of a begin at its ledger to the answer, ${byClock}`,
    labels: cell,
  },
  leasehold_begin_wait_duration_seconds: {
    type: "histogram",
    help: `How long begins waited for a leased name, ${byClock}`,
    labels: cell,
  },
  leasehold_decision_duration_seconds: {
    type: "histogram",
    help: `From the arrival of a commit or rollback at its ledger to the answer, ${byClock}`,
    labels: cell,
  },
  leasehold_exchange_duration_seconds: {
    type: "histogram",
    help: `From a ledger's message to a shard to the answer, ${byClock}`,
    labels: cell,
  },
  leasehold_decisions_unapplied: {
    type: "gauge",
    help: "Decisions that some shard has not confirmed yet.",
    labels: cell,
  },
  leasehold_decision_oldest_unapplied_age_seconds: {
    type: "gauge",
    help: "The age of the oldest of these decisions. 0 if there is none.",
    labels: cell,
  },
  leasehold_leases_outstanding: {
    type: "gauge",
    help: "Granted leases that are not decided.",
    labels: cell,
  },
  leasehold_leases_stale: {
    type: "gauge",
    help: "Of the oldest 1000 leases, those that were neither granted nor renewed within the limit stale_s.",
    labels: cell,
  },
  leasehold_lease_oldest_age_seconds: {
    type: "gauge",
    help: "The age of the oldest outstanding lease. 0 if there is none.",
    labels: cell,
  },
  leasehold_lease_age_seconds: {
    type: "gaugehistogram",
    help: "The ages of the outstanding leases, or of the oldest 1000 if there are more.",
    labels: cell,
  },
  leasehold_transfers_prepared: {
    type: "gauge",
    help: "Transfers to the cell that are neither cut nor aborted.",
    labels: cell,
  },
  leasehold_transfer_oldest_age_seconds: {
    type: "gauge",
    help: "The age of the oldest of these transfers. 0 if there is none.",
    labels: cell,
  },
  leasehold_cell_reported_timestamp_seconds: {
    type: "gauge",
    help: "When the cell last reported its status, since 1970. Left out if it never has.",
    labels: cell,
  },
  leasehold_cell_reconciled_timestamp_seconds: {
    type: "gauge",
    help:
      "When the last reconciliation that the cell reported as done has ended, since 1970. Left out if " +
      "there is none.",
    labels: cell,
  },
  leasehold_cell_verified_timestamp_seconds: {
    type: "gauge",
    help:
      "When the last verification that the cell reported as done has ended, since 1970. Left out if " +
      "there is none.",
    labels: cell,
  },
  leasehold_cell_drift: {
    type: "gauge",
    help:
      "Differences that the last verification of the cell has found, repaired ones included. Kinds " +
      "overlap, so they don't add up.",
    labels: ["cell", "kind"],
  },
  leasehold_cell_stale_leases: {
    type: "gauge",
    help: "Stale leases that the last reconciliation of the cell could not decide.",
    labels: cell,
  },
  leasehold_cell_sdk: {
    type: "info",
    help: "The code that sent the last report of the cell.",
    labels: ["cell", "name", "version"],
  },
  leasehold_exchanges: {
    type: "counter",
    help: `Messages with begins and decisions from ledgers, ${since}.`,
    labels: shard,
  },
  leasehold_shard_exchange_duration_seconds: {
    type: "histogram",
    help: `From the arrival of such a message to the answer, ${byClock}`,
    labels: shard,
  },
  leasehold_settles: {
    type: "counter",
    help: `Messages from ledgers whose begins met holds, ${since}.`,
    labels: shard,
  },
  leasehold_waits: {
    type: "counter",
    help: `Messages from ledgers whose begins wait for a name, ${since}.`,
    labels: shard,
  },
  leasehold_waits_refused: {
    type: "counter",
    help: `The messages among them that found no room in a queue, ${since}.`,
    labels: shard,
  },
  leasehold_offers_missed: {
    type: "counter",
    help: `Offers of names that a begin did not take within the limit offer_ms, ${since}.`,
    labels: shard,
  },
  leasehold_queue_length: {
    type: "gauge",
    help: "Begins that wait for names of the shard.",
    labels: shard,
  },
  leasehold_inquiries: {
    type: "counter",
    help: `Messages in which the shard asked a ledger about holds, ${since}.`,
    labels: shard,
  },
  leasehold_sweeps: {
    type: "counter",
    help: `Alarms in which the shard looked for old holds, ${since}.`,
    labels: shard,
  },
  leasehold_lookups: { type: "counter", help: `Names that were looked up, ${since}.`, labels: shard },
  leasehold_reports: { type: "counter", help: `Reports that routers asked for, ${since}.`, labels: shard },
  leasehold_change_reads: {
    type: "counter",
    help: `Messages in which consumers of the change feed asked what happened, ${since}.`,
    labels: shard,
  },
  leasehold_record_reads: {
    type: "counter",
    help: `Messages for lists, exports and digests of records, ${since}.`,
    labels: shard,
  },
  leasehold_waiting_reads: {
    type: "gauge",
    help: "Lists and digests that wait for their turn at the shard.",
    labels: shard,
  },
  leasehold_holds: {
    type: "gauge",
    help: "Names on hold. A long name counts as several.",
    labels: shard,
  },
  leasehold_holds_of_one_cell: {
    type: "gauge",
    help: "Those for the cell with the most of them.",
    labels: shard,
  },
  leasehold_holds_limit: {
    type: "gauge",
    help: "Names that may be on hold (`LEASEHOLD_HELD_NAMES`), half of them for one cell.",
    labels: shard,
  },
  leasehold_keys: {
    type: "gauge",
    help: "Keys that the directory describes, expired ones included.",
    labels: [],
  },
  leasehold_keys_revoked: { type: "gauge", help: "The revoked ones of these keys.", labels: [] },
  leasehold_next_expiry_timestamp_seconds: {
    type: "gauge",
    help:
      "When the next of the keys, or of the certificates that were used within a day, expires, since 1970. " +
      "Left out if there is none.",
    labels: ["kind"],
  },
  leasehold_authority_expiry_timestamp_seconds: {
    type: "gauge",
    help: "When the certificate of the authority of client certificates expires, since 1970.",
    labels: ["authority"],
  },
  leasehold_verification_slots_taken: {
    type: "gauge",
    help: "Cells that have a verification slot.",
    labels: [],
  },
  leasehold_verification_slot_held_seconds: {
    type: "gauge",
    help: "How long a cell has had its verification slot. Left out for cells without one.",
    labels: ["cell"],
  },
  leasehold_verification_waiting: {
    type: "gauge",
    help: "Cells that wait for a verification slot.",
    labels: [],
  },
  leasehold_cron_end_timestamp_seconds: {
    type: "gauge",
    help: "When the last run of the cron that finished has ended, since 1970.",
    labels: [],
  },
  leasehold_cron_duration_seconds: { type: "gauge", help: "How long that run took.", labels: [] },
  leasehold_cron_cells_pulled: {
    type: "gauge",
    help: "Cells whose ledger that run copied into D1 completely.",
    labels: [],
  },
  leasehold_cron_cells_failed: {
    type: "gauge",
    help: "Cells whose ledger that run could not reach or copy.",
    labels: [],
  },
  leasehold_cron_runs_failed: {
    type: "gauge",
    help: "Of the last 10 runs of the cron, those that failed or were killed.",
    labels: [],
  },
  leasehold_copy_oldest_timestamp_seconds: {
    type: "gauge",
    help: "When the copy in D1 that is furthest behind was complete, since 1970.",
    labels: [],
  },
  leasehold_copy_cells_missing: {
    type: "gauge",
    help: "Cells that were never copied completely.",
    labels: [],
  },
  leasehold_copy_cells_failed: { type: "gauge", help: "Cells whose last copy failed.", labels: [] },
  leasehold_webhook_enabled: {
    type: "gauge",
    help: "1 if the webhook is sent messages, 0 if it is disabled.",
    labels: webhook,
  },
  leasehold_webhook_attempts: {
    type: "counter",
    help: "Attempts to send messages to the webhook since it was added, by result: delivered or failed.",
    labels: ["webhook", "result"],
  },
  leasehold_webhook_messages_given_up: {
    type: "counter",
    help: "Messages to the webhook that were given up since it was added.",
    labels: webhook,
  },
  leasehold_webhook_messages_waiting: {
    type: "gauge",
    help: "Messages that wait to be sent to the webhook.",
    labels: webhook,
  },
  leasehold_webhook_oldest_message_age_seconds: {
    type: "gauge",
    help: "The age of the oldest of these messages. 0 if there is none.",
    labels: webhook,
  },
  leasehold_webhook_failing_seconds: {
    type: "gauge",
    help: "How long ago the first of the failed attempts since the last success was. 0 if there is none.",
    labels: webhook,
  },
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof families;

export type HistogramName = {
  [Name in FamilyName]: (typeof families)[Name]["type"] extends "histogram" | "gaugehistogram" ? Name : never;
}[FamilyName];

/** The labels of a family, each with its value. */
export type LabelsOf<Name extends FamilyName> = Readonly<
  Record<(typeof families)[Name]["labels"][number], string>
>;
