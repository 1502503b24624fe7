/** The input, the costs and the options of the verification benchmark. verification.deep.test.ts runs it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { readCost } from "../../bench/verification/cost.ts";
import type { CallCounts } from "../../bench/verification/count-reads.ts";
import { namesToFill } from "../../bench/verification/names.ts";
import { BadOption } from "../../bench/program.ts";
import { readOptions } from "../../bench/verification/options.ts";
import type { Result } from "../../bench/verification/results.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-verification-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

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
