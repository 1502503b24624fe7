/** Runs one verification, as a cell's process does. */
import { drizzle } from "drizzle-orm/node-postgres";
import { Pool } from "pg";
import { createCell } from "../../src/users/cell/cell.ts";
import { postgres } from "../../src/users/cell/postgres/index.ts";
import type { VerificationProgress } from "../../src/users/cell/verification/options.ts";
import { poolOf } from "./database.ts";
import { serveTask } from "./meter.ts";
import type { VerifyResult } from "./program.ts";
import { claimableRoutes } from "./routes.ts";

const LINES_EVERY_MS = 5_000;

serveTask(async ({ databaseFolder, digests, apply, printsProgress }, meter): Promise<VerifyResult> => {
  const pool = new Pool(poolOf(databaseFolder));
  const cell = createCell({
    client: meter.client,
    database: postgres(drizzle(pool)),
    tables: [claimableRoutes],
    // The deadlines are generous, because the machine also has other load and no user waits for these rows.
    beginDeadlineMs: 10_000,
    decideDeadlineMs: 10_000,
  });
  let printedMs = performance.now();
  const onProgress = (progress: VerificationProgress): void => {
    if (progress.rows >= progress.totalRows / 10) meter.early();
    if (!printsProgress || performance.now() - printedMs < LINES_EVERY_MS) return;
    printedMs = performance.now();
    process.stdout.write(`  ${progressLine(progress)}\n`);
  };
  const report = await cell.verify({ apply, digests, recentMs: 0, maxShare: 1, onProgress });
  const used = meter.used();
  await pool.end();
  return { ...used, report };
});

function progressLine({
  pass,
  source,
  rows,
  totalRows,
  changes,
  rowsPerSecond,
  remainingMs,
}: VerificationProgress): string {
  const left = remainingMs === undefined ? "" : `, ${Math.round(remainingMs / 1_000)} s left`;
  const rate = `${Math.round(rowsPerSecond)} rows/s`;
  return `${source}, ${pass}: ${rows} of ${totalRows} rows, ${changes} changes, ${rate}${left}`;
}
