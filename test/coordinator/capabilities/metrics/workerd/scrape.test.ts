import { beforeEach, expect, test } from "vitest";
import { readConfig } from "../../../../../src/coordinator/config.ts";
import { noIdentities } from "../../../../../src/coordinator/capabilities/identities/identities.ts";
import type { Cell } from "../../../../../src/coordinator/kernel/directory/messages.ts";
import type {
  DirectoryMetrics,
  LedgerMetrics,
  ShardMetrics,
} from "../../../../../src/coordinator/kernel/metrics/messages.ts";
import { ok, refused, type Result } from "../../../../../src/coordinator/kernel/refusal.ts";
import { Scrape } from "../../../../../src/coordinator/capabilities/metrics/edge/scrape.ts";
import type { ProjectionMetrics } from "../../../../../src/coordinator/capabilities/metrics/edge/family.ts";
import type { Growth } from "../../../../../src/coordinator/capabilities/growth/messages.ts";
import type { GrowthProgress } from "../../../../../src/coordinator/capabilities/growth/messages.ts";
import type { Objects } from "../../../../../src/coordinator/objects/objects.ts";
import { readOpenMetrics, valueOf, type ReadFamily } from "../../../../support/open-metrics.ts";
import { env } from "../../../../support/workerd/api.ts";
import { STAMP } from "../../../../support/ops.ts";

const part = { startedAtMs: 1_500, state: "complete" as const, sizeBytes: 4_096, waitingWrites: 2 };

const ledger: LedgerMetrics = {
  ...part,
  scrub: { findings: 0, endedAtMs: null, rows: 0, unchecked: 0 },
  cellState: "DRAINING",
  outstandingLeases: 5,
  staleLeases: 2,
  oldestLeaseMs: 90_500,
  leaseAges: { counts: [1, 2, 0, 4, 0, 0, 8], sumMs: 600_500 },
  unappliedDecisions: 3,
  oldestUnappliedMs: 30_250,
  preparedTransfers: 33,
  oldestTransferMs: 7_200_500,
  runningBegins: 1,
  waitingBegins: 24,
  waits: [{ result: "offered", count: 25 }],
  waitDurations: { counts: [0, 0, 0, 0, 0, 0, 0, 26, 0], sumMs: 27_000 },
  reported: {
    reportedAtMs: 200_500,
    nowMs: 201_000,
    sdk: { name: 'a"b\\c\n', version: "1.2.3" },
    reconciliation: { outcome: "aborted", endedAtMs: 199_000, lastDoneAtMs: 150_500, staleLeases: 30 },
    verification: {
      status: "done",
      endedAtMs: 100_250,
      lastDoneAtMs: 100_250,
      counts: { rows: 900, missing: 31, extra: 32, other_cell: 31, created: 2 },
    },
  },
  begins: [
    { result: "granted", reason: "", count: 7 },
    { result: "conflict", reason: "taken", count: 4 },
  ],
  decisions: [
    { outcome: "COMMITTED", by: "cell", count: 6 },
    { outcome: "ROLLED_BACK", by: "operator", count: 1 },
  ],
  fences: 8,
  refusedDecisions: [{ reason: "LEASE_COMMITTED", count: 9 }],
  beginDurations: { counts: [1, 0, 2, 0, 0, 0, 0, 0, 4], sumMs: 12_345 },
  decisionDurations: { counts: [3, 0, 0, 0, 0, 0, 0, 0, 0], sumMs: 6 },
  exchangeDurations: { counts: [0, 0, 5, 0, 0, 0, 0, 0, 0], sumMs: 100 },
};

const shard: ShardMetrics = {
  ...part,
  scrub: { findings: 3, endedAtMs: 2_500, rows: 41, unchecked: 4 },
  state: "reconciling",
  holds: 11,
  holdsOfOneCell: 9,
  waitingReads: 12,
  exchanges: 13,
  exchangeDurations: { counts: [13, 0, 0, 0, 0, 0, 0, 0, 0], sumMs: 26 },
  settles: 14,
  waits: 28,
  refusedWaits: 29,
  missedOffers: 30,
  waitingBegins: 31,
  inquiries: 15,
  sweeps: 16,
  lookups: 17,
  reports: 18,
  changeReads: 23,
  recordReads: 19,
};

const directory: DirectoryMetrics = {
  ...part,
  state: "lost",
  cells: 2,
  keys: 20,
  revokedKeys: 21,
  verificationSlots: [
    { cell: "2", heldMs: 22_000 },
    { cell: "4", heldMs: 500 },
  ],
  verificationWaiting: 23,
};

const projection: ProjectionMetrics = {
  lastRun: {
    startedAtMs: 100_000,
    finishedAtMs: 104_500,
    cellsPulled: 24,
    cellsFailed: 25,
    hasFailed: false,
  },
  failedRuns: 26,
  oldestCopyMs: 99_000,
  cellsNeverCopied: 27,
  cellsFailed: 28,
  nextExpiryMs: { key: 36_500, certificate: null },
  webhooks: [
    {
      id: "hook-1",
      isEnabled: false,
      delivered: 30,
      failedAttempts: 31,
      givenUp: 32,
      waiting: 33,
      oldestAgeMs: 34_500,
      failingMs: 35_000,
    },
  ],
};

const authority = { name: "cells", certificate: "", expiresAtMs: 37_500, rules: [] };

const progressOf = (index: number): GrowthProgress => ({
  shard: index,
  growth: "g",
  state: "copying",
  waitsFor: null,
  copied: 40,
  waiting: 41,
  cleaned: 42,
});

/** A deployment that counts the calls, and in which some parts fail or hang. */
class Fixture {
  ledger = ledger;
  cells = ["1", "2"];
  nowMs = 0;
  calls: string[] = [];
  failing = new Set<string>();
  hanging = new Set<string>();
  isDirectoryReadable = true;
  growth: Growth | null = null;

  projection = projection;

  readonly scrape = new Scrape(
    {
      env,
      config: readConfig({
        LEASEHOLD_METRICS_CELLS: "4",
        LEASEHOLD_INQUIRY_TIMEOUT_MS: "50",
        LEASEHOLD_EXCHANGE_TIMEOUT_MS: "50",
      }),
      clock: { now: () => this.nowMs, after: () => () => {} },
      envelope: { ...STAMP, placement: "" },
      shards: 3,
      directory: {
        view: async () =>
          this.isDirectoryReadable
            ? ok({
                cells: new Map(this.cells.map((cell) => [cell, { cell } as Cell])),
                removedCells: new Map<string, Cell>(),
                revokedKeys: new Set<string>(),
                revokedThroughMs: 0,
                isPlaced: this.cells.length > 0,
                growth: this.growth,
                identities: { ...noIdentities, authorities: [authority] },
              })
            : refused("UNAVAILABLE", "down"),
      },
      objects: {
        directory: () => ({ metrics: () => this.#ask("directory", directory) }),
        shard: (index: number) => ({
          metrics: () => this.#ask(`shard-${index}`, shard),
          growthProgress: () => this.#ask(`growth-${index}`, progressOf(index)),
        }),
        ledger: (cell: string) => ({ metrics: () => this.#ask(`ledger-${cell}`, this.ledger) }),
      } as unknown as Objects,
    },
    async () => this.#ask("d1", this.projection),
  );

  async #ask<T>(name: string, metrics: T): Promise<Result<T>> {
    this.calls.push(name);
    if (this.hanging.has(name)) await new Promise(() => {});
    return this.failing.has(name) ? refused("UNAVAILABLE", "down") : ok(metrics);
  }

  async read(): Promise<ReadonlyMap<string, ReadFamily>> {
    const scraped = await this.scrape.read(() => {});
    if (!scraped.ok) throw new Error(scraped.refusal.detail);
    return readOpenMetrics(scraped.value.openMetrics());
  }
}

let fixture: Fixture;

beforeEach(() => void (fixture = new Fixture()));

const ups = (families: ReadonlyMap<string, ReadFamily>): Record<string, number> =>
  Object.fromEntries(
    families.get("leasehold_up")?.samples.map(({ labels, value }) => [labels["part"], value]) ?? [],
  );

test("while the deployment grows, the shards of before say how far they are", async () => {
  fixture.growth = {
    id: "g",
    from: 2,
    to: 5,
    phase: "copying",
    startedAtMs: 1,
    startedBy: "k",
    cutAtMs: null,
    position: 1,
  };
  fixture.failing.add("growth-1");
  const families = await fixture.read();
  const samplesOf = (name: string) => families.get(name)?.samples.map(({ labels, value }) => [labels, value]);
  expect(samplesOf("leasehold_shards")).toEqual([[{}, 3]]);
  expect(samplesOf("leasehold_growth")).toEqual([[{ phase: "copying" }, 5]]);
  expect(samplesOf("leasehold_growth_copied_names")).toEqual([[{ shard: "0" }, 40]]);
  expect(samplesOf("leasehold_growth_waiting_changes")).toEqual([[{ shard: "0" }, 41]]);
  expect(samplesOf("leasehold_growth_deleted_names")).toEqual([[{ shard: "0" }, 42]]);
});

test("one scrape asks the directory, D1, every shard and every ledger once", async () => {
  const families = await fixture.read();
  const parts = ["directory", "d1", "shard-0", "shard-1", "shard-2", "ledger-1", "ledger-2"];
  expect(fixture.calls).toEqual(parts);
  expect(ups(families)).toEqual(Object.fromEntries(parts.map((name) => [name, 1])));
});

test("each number of an answer becomes a sample of its part", async () => {
  const families = await fixture.read();
  const of = (family: string, labels?: Record<string, string>): number | undefined =>
    valueOf(families, family, labels);
  const cell = "2";
  expect(of("leasehold_start_time_seconds", { part: "ledger-2" })).toBe(1.5);
  expect(of("leasehold_object_size_bytes", { part: "ledger-2" })).toBe(4_096);
  expect(of("leasehold_object_limit_bytes", { part: "ledger-2" })).toBe(9_000_000_000);
  expect(of("leasehold_object_limit_bytes", { part: "shard-1" })).toBe(8_000_000_000);
  expect(of("leasehold_waiting_writes", { part: "shard-1" })).toBe(2);
  expect(of("leasehold_history_lost", { part: "directory" })).toBe(1);
  expect(of("leasehold_history_lost", { part: "shard-1" })).toBe(0);
  expect(of("leasehold_reconciling", { part: "shard-1" })).toBe(1);
  expect(of("leasehold_scrub_findings", { part: "shard-1" })).toBe(3);
  expect(of("leasehold_scrub_end_timestamp_seconds", { part: "shard-1" })).toBe(2.5);
  expect(of("leasehold_scrub_rows", { part: "shard-1" })).toBe(41);
  expect(of("leasehold_scrub_unchecked", { part: "shard-1" })).toBe(4);
  expect(of("leasehold_scrub_findings", { part: "ledger-2" })).toBe(0);
  expect(of("leasehold_cell_state", { cell, state: "DRAINING" })).toBe(1);
  expect(of("leasehold_cell_state", { cell, state: "FROZEN" })).toBe(0);
  expect(of("leasehold_begins", { cell, result: "granted" })).toBe(7);
  expect(of("leasehold_begins", { cell, result: "conflict", reason: "taken" })).toBe(4);
  expect(of("leasehold_begins_running", { cell })).toBe(1);
  expect(of("leasehold_begins_waiting", { cell })).toBe(24);
  expect(of("leasehold_begin_waits", { cell, result: "offered" })).toBe(25);
  expect(of("leasehold_commits", { cell, by: "cell" })).toBe(6);
  expect(of("leasehold_rollbacks", { cell, by: "operator" })).toBe(1);
  expect(of("leasehold_fences", { cell })).toBe(8);
  expect(of("leasehold_decisions_refused", { cell, reason: "LEASE_COMMITTED" })).toBe(9);
  expect(of("leasehold_decisions_unapplied", { cell })).toBe(3);
  expect(of("leasehold_decision_oldest_unapplied_age_seconds", { cell })).toBe(30.25);
  expect(of("leasehold_leases_outstanding", { cell })).toBe(5);
  expect(of("leasehold_leases_stale", { cell })).toBe(2);
  expect(of("leasehold_lease_oldest_age_seconds", { cell })).toBe(90.5);
  expect(of("leasehold_transfers_prepared", { cell })).toBe(33);
  expect(of("leasehold_transfer_oldest_age_seconds", { cell })).toBe(7_200.5);
  expect(of("leasehold_cell_reported_timestamp_seconds", { cell })).toBe(200.5);
  expect(of("leasehold_cell_reconciled_timestamp_seconds", { cell })).toBe(150.5);
  expect(of("leasehold_cell_verified_timestamp_seconds", { cell })).toBe(100.25);
  expect(of("leasehold_cell_stale_leases", { cell })).toBe(30);
  expect(of("leasehold_cell_sdk", { cell, name: 'a"b\\c\n', version: "1.2.3" })).toBe(1);
  const drift = families.get("leasehold_cell_drift")?.samples.filter(({ labels }) => labels["cell"] === cell);
  expect(drift?.map(({ labels, value }) => [labels["kind"], value])).toEqual([
    ["missing", 31],
    ["different", 0],
    ["extra", 32],
    ["duplicates", 0],
    ["unnameable", 0],
  ]);
  const shardFamilies = {
    leasehold_holds: 11,
    leasehold_holds_of_one_cell: 9,
    leasehold_holds_limit: 100_000,
    leasehold_waiting_reads: 12,
    leasehold_exchanges: 13,
    leasehold_settles: 14,
    leasehold_waits: 28,
    leasehold_waits_refused: 29,
    leasehold_offers_missed: 30,
    leasehold_queue_length: 31,
    leasehold_inquiries: 15,
    leasehold_sweeps: 16,
    leasehold_lookups: 17,
    leasehold_reports: 18,
    leasehold_change_reads: 23,
    leasehold_record_reads: 19,
  };
  for (const [family, value] of Object.entries(shardFamilies)) expect(of(family, { shard: "2" })).toBe(value);
  expect(of("leasehold_cells")).toBe(2);
  expect(of("leasehold_keys")).toBe(20);
  expect(of("leasehold_keys_revoked")).toBe(21);
  expect(of("leasehold_verification_slots_taken")).toBe(2);
  expect(of("leasehold_verification_slot_held_seconds", { cell: "2" })).toBe(22);
  expect(of("leasehold_verification_slot_held_seconds", { cell: "4" })).toBe(0.5);
  expect(of("leasehold_verification_waiting")).toBe(23);
  expect(of("leasehold_cron_end_timestamp_seconds")).toBe(104.5);
  expect(of("leasehold_cron_duration_seconds")).toBe(4.5);
  expect(of("leasehold_cron_cells_pulled")).toBe(24);
  expect(of("leasehold_cron_cells_failed")).toBe(25);
  expect(of("leasehold_cron_runs_failed")).toBe(26);
  expect(of("leasehold_copy_oldest_timestamp_seconds")).toBe(99);
  expect(of("leasehold_copy_cells_missing")).toBe(27);
  expect(of("leasehold_copy_cells_failed")).toBe(28);
  expect(of("leasehold_next_expiry_timestamp_seconds", { kind: "key" })).toBe(36.5);
  const expiries = families.get("leasehold_next_expiry_timestamp_seconds")?.samples;
  expect(expiries?.map(({ labels }) => labels["kind"])).toEqual(["key"]);
  expect(of("leasehold_authority_expiry_timestamp_seconds", { authority: "cells" })).toBe(37.5);
  const webhook = "hook-1";
  expect(of("leasehold_webhook_enabled", { webhook })).toBe(0);
  expect(of("leasehold_webhook_attempts", { webhook, result: "delivered" })).toBe(30);
  expect(of("leasehold_webhook_attempts", { webhook, result: "failed" })).toBe(31);
  expect(of("leasehold_webhook_messages_given_up", { webhook })).toBe(32);
  expect(of("leasehold_webhook_messages_waiting", { webhook })).toBe(33);
  expect(of("leasehold_webhook_oldest_message_age_seconds", { webhook })).toBe(34.5);
  expect(of("leasehold_webhook_failing_seconds", { webhook })).toBe(35);
});

test("a histogram has buckets that add up, a sum in seconds and a count", async () => {
  const families = await fixture.read();
  const samples = families.get("leasehold_begin_duration_seconds")?.samples ?? [];
  const ofCell = samples.filter(({ labels }) => labels["cell"] === "1");
  expect(ofCell.map(({ name, labels, value }) => [name.split("_").at(-1), labels["le"], value])).toEqual([
    ["bucket", "0.005", 1],
    ["bucket", "0.01", 1],
    ["bucket", "0.025", 3],
    ["bucket", "0.05", 3],
    ["bucket", "0.1", 3],
    ["bucket", "0.25", 3],
    ["bucket", "1.0", 3],
    ["bucket", "5.0", 3],
    ["bucket", "+Inf", 7],
    ["sum", undefined, 12.345],
    ["count", undefined, 7],
  ]);
  const countOf = (family: string): (number | undefined)[] =>
    families
      .get(family)
      ?.samples.filter(({ name }) => name.endsWith("_count"))
      .map(({ value }) => value) ?? [];
  expect(countOf("leasehold_decision_duration_seconds")).toEqual([3, 3]);
  expect(countOf("leasehold_exchange_duration_seconds")).toEqual([5, 5]);
  expect(countOf("leasehold_shard_exchange_duration_seconds")).toEqual([13, 13, 13]);
});

test("the ages of leases are a histogram that is a gauge", async () => {
  const samples = (await fixture.read()).get("leasehold_lease_age_seconds")?.samples ?? [];
  const ofCell = samples.filter(({ labels }) => labels["cell"] === "1");
  expect(ofCell.map(({ name, labels, value }) => [name.split("_").at(-1), labels["le"], value])).toEqual([
    ["bucket", "1.0", 1],
    ["bucket", "10.0", 3],
    ["bucket", "60.0", 3],
    ["bucket", "600.0", 7],
    ["bucket", "3600.0", 7],
    ["bucket", "86400.0", 7],
    ["bucket", "+Inf", 15],
    ["gsum", undefined, 600.5],
    ["gcount", undefined, 15],
  ]);
});

test("parts that fail or hang are samples, and the others are complete", async () => {
  fixture.failing = new Set(["shard-1", "directory"]);
  fixture.hanging = new Set(["ledger-1", "d1"]);
  const families = await fixture.read();
  expect(ups(families)).toEqual({
    directory: 0,
    d1: 0,
    "shard-0": 1,
    "shard-1": 0,
    "shard-2": 1,
    "ledger-1": 0,
    "ledger-2": 1,
  });
  expect(valueOf(families, "leasehold_exchanges", { shard: "2" })).toBe(13);
  expect(valueOf(families, "leasehold_exchanges", { shard: "1" })).toBeUndefined();
  expect(valueOf(families, "leasehold_leases_outstanding", { cell: "1" })).toBeUndefined();
  expect(families.has("leasehold_keys")).toBe(false);
  expect(families.has("leasehold_cron_runs_failed")).toBe(false);
});

test("with more cells than the limit, the first ones are asked, and the rest is counted", async () => {
  fixture.cells = Array.from({ length: 10 }, (_, index) => String(index + 1));
  const families = await fixture.read();
  expect(fixture.calls.filter((name) => name.startsWith("ledger"))).toHaveLength(4);
  expect(valueOf(families, "leasehold_cells")).toBe(10);
  expect(valueOf(families, "leasehold_cells_left_out")).toBe(6);
});

test("before the first run of the cron, no time of it is shown", async () => {
  fixture.projection = { ...projection, lastRun: null, oldestCopyMs: null };
  const families = await fixture.read();
  expect(families.has("leasehold_cron_end_timestamp_seconds")).toBe(false);
  expect(families.has("leasehold_copy_oldest_timestamp_seconds")).toBe(false);
  expect(valueOf(families, "leasehold_cron_runs_failed")).toBe(26);
});

test("what a cell has not reported is left out, and not shown as 0", async () => {
  const sdk = { name: "my-cell", version: "1" };
  const failed = { status: "failed" as const, endedAtMs: 1 };
  fixture.ledger = { ...ledger, reported: { reportedAtMs: 2_000, nowMs: 2_000, sdk, verification: failed } };
  const some = [...(await fixture.read()).keys()].filter((name) => name.startsWith("leasehold_cell_"));
  expect(some).toEqual([
    "leasehold_cell_state",
    "leasehold_cell_reported_timestamp_seconds",
    "leasehold_cell_sdk",
  ]);
  fixture = new Fixture();
  fixture.ledger = { ...ledger, reported: null };
  const none = [...(await fixture.read()).keys()].filter((name) => name.startsWith("leasehold_cell_"));
  expect(none).toEqual(["leasehold_cell_state"]);
});

test("[P2] before the first cell is registered, no shard and no ledger is asked", async () => {
  fixture.cells = [];
  expect(ups(await fixture.read())).toEqual({ directory: 1, d1: 1 });
  expect(fixture.calls).toEqual(["directory", "d1"]);
});

test("scrapes share an answer for 15 s, whoever sends them", async () => {
  await fixture.read();
  const { length } = fixture.calls;
  fixture.nowMs += 15_000;
  await Promise.all([fixture.read(), fixture.read()]);
  expect(fixture.calls).toHaveLength(length);
  fixture.nowMs += 1;
  await Promise.all([fixture.read(), fixture.read()]);
  expect(fixture.calls).toHaveLength(2 * length);
});

test("without the list of cells, the scrape is refused", async () => {
  fixture.isDirectoryReadable = false;
  const refusedScrape = await fixture.scrape.read(() => {});
  expect(refusedScrape).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
  expect(fixture.calls).toEqual([]);
});
