/**
 * Checks the budgets of docs/reference/limits.md from the outside. It checks only counts, which are the same
 * on every machine.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countAll } from "../../bench/counts/count-all.ts";
import type { WorkCounts } from "../../bench/counts/work-counts.ts";
import { PAGE_ITEMS } from "../../bench/counts/pages.ts";
import { tableOf } from "../../bench/counts/table.ts";

const CALLS = 3;
const folder = mkdtempSync(join(tmpdir(), "leasehold-counts-test-"));
const counted: WorkCounts[] = [];

beforeAll(async () => void counted.push(...(await countAll(folder, CALLS))), 120_000);
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

/** The begins, commits and rollbacks of each size and number of shards. */
const cycles = (): WorkCounts[] =>
  counted.filter(
    ({ system, work }) => system === "leasehold" && ["begin", "commit", "rollback"].includes(work),
  );

test("begins, commits and rollbacks cost s + 1 messages and transactions on s shards", () => {
  expect(cycles()).toHaveLength(3 * 3 * 2);
  for (const each of cycles())
    expect(each).toMatchObject({ messages: each.shardsTouched + 1, transactions: each.shardsTouched + 1 });
  expect(new Set(cycles().map(({ shardsTouched }) => shardsTouched))).toEqual(new Set([1, 4]));
});

test("a refused begin writes nothing, and costs 2 messages for a taken name, 4 for a held one", () => {
  for (const each of worksOf("begin refused, taken"))
    expect(each).toMatchObject({ messages: 2, transactions: 0, rowsWritten: 0 });
  for (const each of worksOf("begin refused, leased"))
    expect(each).toMatchObject({ messages: 4, transactions: 0, rowsWritten: 0 });
  for (const each of worksOf("begin again"))
    expect(each).toMatchObject({ messages: 1, transactions: 0, rowsWritten: 0 });
});

test("a lookup costs 1 message, 2 when it meets a hold, and reads 2 rows of a shard at most", () => {
  for (const each of worksOf("lookup")) {
    expect(each).toMatchObject({ transactions: 0, rowsWritten: 0 });
    expect(each.shardRowsRead).toBeLessThanOrEqual(2 * each.claims);
  }
  for (const each of [...worksOf("lookup, there"), ...worksOf("lookup, not there")])
    expect(each.messages).toBe(1);
  for (const each of worksOf("lookup, held")) expect(each.messages).toBe(2);
  for (const each of worksOf("lookup of many")) expect(each.messages).toBe(each.shards);
});

test("a page of leases costs 1 message and at most 2 extra rows; a page of records asks each shard", () => {
  for (const each of worksOf("list of leases")) {
    expect(each).toMatchObject({ messages: 1, transactions: 0 });
    expect(each.rowsRead).toBeGreaterThanOrEqual(PAGE_ITEMS);
    expect(each.rowsRead).toBeLessThanOrEqual(PAGE_ITEMS + 2);
  }
  for (const each of worksOf("list of records")) {
    expect(each.transactions).toBe(0);
    expect(each.messages).toBeGreaterThanOrEqual(1 + each.shards);
  }
});

test("a created claim costs at most 4 rows over its life, and a shard's transaction one", () => {
  for (const begin of cycles().filter(({ work }) => work === "begin")) {
    const { shards, claims } = begin;
    const commit = oneOf("commit", { shards, claims });
    expect(begin.shardRowsWritten + commit.shardRowsWritten).toBeLessThanOrEqual(4 * claims + 2 * shards);
    expect(begin.shardRowsWritten).toBeGreaterThanOrEqual(claims);
  }
});

test("a lease costs at most 6 rows in its ledger, until it is forgotten", () => {
  const pruned = oneOf("pulls and forgets, per lease decided before").ledgerRowsWritten;
  expect(pruned).toBeGreaterThan(0);
  for (const begin of cycles().filter(({ work }) => work === "begin")) {
    const { shards, claims } = begin;
    // A commit also marks the lease before it as applied.
    const decided = Math.max(
      ...["commit", "rollback"].map((work) => oneOf(work, { shards, claims }).ledgerRowsWritten),
    );
    expect(begin.ledgerRowsWritten + decided + pruned).toBeLessThanOrEqual(6);
  }
});

test("clean-up after decisions takes at most a tenth of a transaction per lease", () => {
  const cleanUp = oneOf("clean-up");
  expect(cleanUp.alarmRuns).toBeGreaterThan(0);
  expect(cleanUp.transactions).toBeLessThanOrEqual(0.1);
});

test("only the cron writes D1: 2 rows for a lease decided before its first pull, otherwise 4", () => {
  expect(oneOf("pulls and forgets, per lease decided before").d1RowsWritten).toBe(2);
  expect(oneOf("pulls and forgets, per lease pulled outstanding").d1RowsWritten).toBe(4);
  for (const each of worksOf(""))
    if (!/^(cron|pulls)/.test(each.work))
      expect(each, each.work).toMatchObject({ d1Calls: 0, d1RowsWritten: 0 });
});

test("warm objects send the directory nothing; only the Worker's copy and the cron read it", () => {
  // A copy is valid for 30 s, so it may be refreshed once while one operation is counted.
  for (const each of worksOf(""))
    if (!/^(cron|pulls)/.test(each.work))
      expect(each.directoryMessages * each.calls, each.work).toBeLessThanOrEqual(1);
});

test("the peer d1-only calls D1 once per call, and writes each index", () => {
  for (const each of worksOf("", "d1-only")) expect(each).toMatchObject({ d1Calls: 1, messages: 0 });
  // A lease writes its row and one index row, and a claim writes its row and two index rows.
  for (const { claims, d1RowsWritten } of worksOf("begin", "d1-only").filter(
    ({ work }) => work === "begin",
  )) {
    expect(d1RowsWritten).toBe(2 + 3 * claims);
  }
});

test("the table has a line for each operation", () => {
  const lines = tableOf(counted).split("\n");
  expect(lines).toHaveLength(counted.length + 2);
  expect(new Set(lines.map((line) => line.split("|").length)).size).toBe(1);
});
