/**
 * Checks the budgets of docs/reference/limits.md from the outside. It checks only counts, which are the same
 * on every machine.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countAll } from "../../bench/counts/count-all.ts";
import type { WorkCounts } from "../../bench/counts/work-counts.ts";
import { PAGE_ITEMS } from "../../bench/counts/pages.ts";
import { PAGE, pageOf } from "../../bench/counts/report.ts";
import { jsonOf } from "../../bench/counts/table.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-counts-test-"));
const counted: WorkCounts[] = [];

beforeAll(async () => void counted.push(...(await countAll(folder))), 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

/** The counts of the operations whose names start with `start`. Fails when there are none. */
function worksOf(start: string, system: WorkCounts["system"] = "leasehold"): WorkCounts[] {
  const found = counted.filter((each) => each.system === system && each.work.startsWith(start));
  expect(found, start).not.toHaveLength(0);
  return found;
}

const oneOf = (work: string, like: Partial<WorkCounts> = {}): WorkCounts => {
  const found = worksOf(work).find((each) =>
    Object.entries(like).every(([name, value]) => each[name as keyof WorkCounts] === value),
  );
  if (found === undefined) throw new Error(`${work} was not counted`);
  return found;
};

/**
 * Rows written, messages, transactions and syncs of one call, by its claims and the shards that it touches.
 */
const PINS: readonly (readonly [
  work: string,
  claims: number,
  touched: number,
  ...pinned: (number | null)[],
])[] = [
  ["begin", 1, 1, 3, 2, 2, 1],
  ["begin", 4, 1, 3, 2, 2, 1],
  ["begin", 4, 4, 6, 5, 5, 1],
  ["begin", 16, 1, 3, 2, 2, 1],
  ["begin", 16, 4, 6, 5, 5, 1],
  ["commit", 1, 1, 4, 2, 2, 1],
  ["commit", 4, 1, 10, 2, 2, 1],
  ["commit", 4, 4, 13, 5, 5, 1],
  ["commit", 16, 1, 34, 2, 2, 1],
  ["commit", 16, 4, 37, 5, 5, 1],
  ["rollback", 1, 1, 2, 2, 2, 1],
  ["rollback", 4, 1, 2, 2, 2, 1],
  ["rollback", 4, 4, 5, 5, 5, 1],
  ["rollback", 16, 1, 2, 2, 2, 1],
  ["rollback", 16, 4, 5, 5, 5, 1],
  ["begin refused, taken", 1, 1, 0, 2, 0, 0],
  ["begin refused, leased", 1, 1, 0, 4, 0, 0],
  ["begin again, same id", 1, 1, 0, 1, 0, 0],
  ["lookup, there", 1, 1, 0, 1, 0, 0],
  ["lookup, not there", 1, 1, 0, 1, 0, 0],
  ["lookup, held", 1, 1, 0, 2, 0, 0],
  ["begin, commit and alarms, all alone", 1, 1, 8, 4, 5, null],
  ["clean-up, per lease", 1, 1, 0.01, 0, 0.01, null],
  ["pulls and forgets, per lease decided before", 1, 1, 1, 0, 0, null],
  ["pulls and forgets, per lease pulled outstanding", 1, 1, 1, 0.04, 0, null],
  ["begin, instead of an old lease", 1, 1, 3, 2, 2, null],
];

test.for(PINS)("%s of %i claims on %i shards: %d rows, %d messages, %d transactions", (pin) => {
  const [work, claims, shardsTouched, ...pinned] = pin;
  const found = worksOf(work).filter(
    (each) => each.work === work && each.claims === claims && each.shardsTouched === shardsTouched,
  );
  expect(found).not.toHaveLength(0);
  for (const { rowsWritten, messages, transactions, syncs } of found)
    expect([rowsWritten, messages, transactions, syncs]).toEqual(pinned);
});

test("a lookup reads 2 rows of a shard at most for each name, and sends each shard one message", () => {
  for (const each of worksOf("lookup")) expect(each.shardRowsRead).toBeLessThanOrEqual(2 * each.claims);
  for (const each of worksOf("lookup of many")) expect(each.messages).toBe(each.shards);
});

test("a page of leases costs 1 message and few extra rows; a page of records asks each shard", () => {
  for (const each of worksOf("list of leases")) {
    expect(each).toMatchObject({ messages: 1, transactions: 0 });
    expect(each.rowsRead).toBeGreaterThanOrEqual(PAGE_ITEMS);
    expect(each.rowsRead).toBeLessThanOrEqual(PAGE_ITEMS + 3);
  }
  for (const each of worksOf("list of records")) {
    expect(each.transactions).toBe(0);
    expect(each.messages).toBeGreaterThanOrEqual(1 + each.shards);
  }
});

test("only the cron writes D1: nothing for a lease decided before its first pull, otherwise 3 rows", () => {
  expect(oneOf("pulls and forgets, per lease decided before").d1RowsWritten).toBe(0);
  expect(oneOf("pulls and forgets, per lease pulled outstanding").d1RowsWritten).toBe(3);
  for (const each of worksOf(""))
    if (!/^(cron|pulls|cycle|riding)/.test(each.work))
      expect(each, each.work).toMatchObject({ d1Calls: 0, d1RowsWritten: 0 });
});

test("warm objects send the directory nothing; only the Worker's copy and the cron read it", () => {
  // A copy is valid for 30 s, so it may be refreshed once while one operation is counted.
  for (const each of worksOf(""))
    if (!/^(cron|pulls|cycle|riding)/.test(each.work))
      expect(each.directoryMessages * each.calls, each.work).toBeLessThanOrEqual(1);
});

test("the peer d1-only calls D1 once per call, and writes each index", () => {
  for (const each of worksOf("", "d1-only"))
    expect(each).toMatchObject({ d1Calls: each.requests, messages: 0 });
  // A lease writes its row and one index row, and a claim writes its row and two index rows.
  for (const { claims, d1RowsWritten } of worksOf("begin", "d1-only").filter(
    ({ work }) => work === "begin",
  )) {
    expect(d1RowsWritten).toBe(2 + 3 * claims);
  }
});

test("random names touch 2.73 of 4 shards, and the mean lies between one shard and all", () => {
  const messages = (work: string, shards: number): number[] =>
    counted
      .filter((each) => each.work === work && each.shards === shards && each.claims === 4)
      .map((each) => each.messages);
  expect(messages("begin", 1)).toEqual([2]);
  expect(messages("begin", 4)).toEqual([5, 3.734375]);
  expect(messages("cycle", 4)).toEqual([10, 7.46875]);
});

test("a cycle includes its part of the alarm, and no row until its lease is forgotten", () => {
  for (const cycle of worksOf("cycle")) {
    const { shards, claims, shardsTouched } = cycle;
    const rowsOf = (work: string): number => oneOf(work, { work, shards, claims, shardsTouched }).rowsWritten;
    expect(cycle.rowsWritten).toBeCloseTo(rowsOf("begin") + rowsOf("commit") + 0.01);
    expect(cycle.d1RowsWritten).toBeCloseTo(0);
    expect(cycle.requests).toBeCloseTo(2);
  }
});

test.each([
  { shards: 4, ride: 0.865 },
  { shards: 1, ride: 0.952 },
])("[N1] at the rate of GitLab.com, $ride of the decisions for $shards shards ride", ({ shards, ride }) => {
  const riding = oneOf("riding decisions, begin", { shards });
  const { messages, transactions, shardsTouched, shardRowsWritten } = riding;
  // The two calls to the ledger, a message for each shard with a begin, and the decisions that go alone.
  expect((messages - 2 - shardsTouched) / shardsTouched).toBeCloseTo(1 - ride, 2);
  expect(transactions).toBeCloseTo(messages);
  // A message is a row of the log, and each claim takes two.
  expect(shardRowsWritten).toBeCloseTo(messages - 2 + 2 * riding.claims);
});

test("the published counts and costs are those of the code", () => {
  // How many alarms are set, and what a run of the cron finds, also depends on the time.
  const steady = (page: string): string[] =>
    page.split("\n").filter((line) => !/all alone|cron, nothing new/.test(line));
  expect(steady(readFileSync(PAGE, "utf8")), "run `npm run counts -- --write`").toEqual(
    steady(pageOf(counted)),
  );
});

test("the JSON has an entry for each operation", () => {
  const entries = JSON.parse(jsonOf(counted)) as object[];
  expect(entries).toHaveLength(counted.length);
  for (const entry of entries)
    expect(Object.keys(entry)).toEqual(
      expect.arrayContaining([
        "work",
        "claims",
        "shards",
        "rows_written",
        "messages",
        "transactions",
        "syncs",
        "usd_per_million",
      ]),
    );
});
