/**
 * Tests the verification benchmark: it finds and repairs exactly the drift that it plants, and its report
 * shows what was measured.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { CallCounts } from "../../bench/verification/count-reads.ts";
import { Measurement } from "../../bench/verification/measurement.ts";
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
