/**
 * Tests the verification benchmark: it finds and repairs exactly the drift that it plants, and its report
 * shows what was measured.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { readCost } from "../../bench/verification/cost.ts";
import type { CallCounts } from "../../bench/verification/count-reads.ts";
import { Measurement } from "../../bench/verification/measurement.ts";
import { namesToFill } from "../../bench/verification/names.ts";
import { BadOption } from "../../bench/program.ts";
import { readOptions, type Options } from "../../bench/verification/options.ts";
import { writeReport } from "../../bench/verification/report.ts";
import { Results, type Result } from "../../bench/verification/results.ts";
import { isSkipped } from "../support/databases/available.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-verification-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

const ROWS = 500;

describe.skipIf(isSkipped("PostgreSQL"))("with PostgreSQL", () => {
  test(
    "finds the planted drift with and without digests, repairs it, and finds none afterwards",
    { timeout: 300_000 },
    async () => {
      const folder = newFolder();
      const namesFile = join(folder, "names.txt");
      // `Ada` and `ada` are the same name. A path with a `..` segment is refused as a name.
      writeFileSync(namesFile, "Ada\nada\ngroup/../project\ngroup\n");
      const options: Options = { ...(readOptions(["--rows", String(ROWS)]) as Options), namesFile };
      const results = new Results(join(folder, "results.jsonl"));
      let counted: readonly CallCounts[] = [];
      const measurement = new Measurement(
        options,
        { results, keepCounts: (counts) => (counted = counts) },
        "abc",
        folder,
        () => {},
      );
      onTestFinished(() => measurement.stop());
      await measurement.run();

      const of = (part: Result["part"], drift: Result["drift"], digests: boolean): Partial<Result> =>
        results.get({ part, drift, digests }) ?? {};
      expect(of("export", 0, false)).toMatchObject({ rows: ROWS, calls: { exportRecords: 1 } });
      expect(of("compare", 0, true)).toMatchObject({
        rows: ROWS,
        counts: { records: 0 },
        calls: { digestRecords: 1 },
      });
      expect(of("compare", 0, false)).toMatchObject({
        rows: ROWS,
        counts: { records: ROWS },
        calls: { listRecords: 1 },
      });
      for (const digests of [true, false]) {
        expect(of("compare", 10, digests)).toMatchObject({
          counts: { different: 33, extra: 17, records: ROWS },
        });
        expect(of("again", 10, digests)).toMatchObject({ counts: { missing: 0, different: 0, extra: 0 } });
      }
      expect(of("repair", 10, true)).toMatchObject({
        counts: { created: 16, replaced: 17, destroyed: 33 },
        calls: { beginLease: 2, commitLease: 2 },
      });
      expect(of("backfill", 0, true)).toMatchObject({
        rows: 4,
        counts: { created: 2, duplicates: 1, unnameable: 1 },
      });
      expect(counted.find(({ call }) => call === "digests")).toMatchObject({
        claims: 16_384,
        // To the ledger when the read begins and when it ends, and to 16 shards.
        messages: 18,
        rowsWritten: 0,
      });

      const path = join(folder, "report.md");
      writeReport(results.all, counted, path);
      const report = readFileSync(path, "utf8");
      expect(report.match(/^## .*/gm)).toEqual(
        ["Comparison", "Repair", "Memory", "Backfill", "Export", "Costs"].map((title) => `## ${title}`),
      );
      expect(report).not.toMatch(/NaN|undefined/);
      expect(report).toContain("duplicate: ");
      expect(report).not.toContain(folder);
    },
  );
});

test("reads the names from a plain or gzipped file unchanged, or generates the requested number", () => {
  const folder = newFolder();
  const [plain, zipped] = [join(folder, "names"), join(folder, "names.gz")];
  writeFileSync(plain, "one\r\ntwo\n");
  writeFileSync(zipped, gzipSync("one\ntwo\n"));
  expect(namesToFill(plain, 9)).toEqual(["one", "two"]);
  expect(namesToFill(zipped, 9)).toEqual(["one", "two"]);
  expect(new Set(namesToFill(undefined, 25_000)).size).toBe(25_000);
});

test("the cost of a run is its calls, their messages and the rows that they read", () => {
  const counted: CallCounts[] = [
    { call: "digests", claims: 10, messages: 3, rowsRead: 20, rowsWritten: 0 },
    { call: "list", claims: 10, messages: 2, rowsRead: 15, rowsWritten: 0 },
  ];
  const calls = { takeVerificationSlot: 1, digestRecords: 10, listRecords: 4 };
  const run = {
    part: "compare",
    calls,
    rows: 100,
    counts: { records: 20 },
    coordinatorCpuSeconds: 0,
  } as unknown as Result;
  expect(readCost(run, counted)).toMatchObject({ workerRequests: 15, objectRequests: 38, rowsRead: 230 });
  expect(readCost(run, [])).toBeUndefined();
});

test("a wrong option is refused with an error that names it", () => {
  expect(readOptions(["--small"])).toMatchObject({ rows: 20_000, isWhole: false });
  expect(readOptions([])).toMatchObject({
    rows: 1_000_000,
    isWhole: true,
    parts: ["counts", "verify", "backfill"],
  });
  expect(readOptions(["--help"])).toBeUndefined();
  expect(() => readOptions(["--rows", "none"])).toThrow(BadOption);
  expect(() => readOptions(["--parts", "verify,all"])).toThrow("--parts takes counts, verify, backfill");
});
