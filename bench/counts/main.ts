/**
 * `node bench/counts/main.ts`: counts the messages, transactions and rows of each operation. They are the
 * same on every machine.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeVersion } from "../code-version.ts";
import { countAll } from "./count-all.ts";
import { tableOf } from "./table.ts";
import type { StoredCounts } from "./work-counts.ts";

const results = join(import.meta.dirname, "../../.bench");
const folder = mkdtempSync(join(tmpdir(), "leasehold-counts-"));
try {
  const counted = await countAll(folder);
  mkdirSync(results, { recursive: true });
  const stored: StoredCounts = { commit: codeVersion(), counted };
  writeFileSync(join(results, "counts.json"), `${JSON.stringify(stored, null, 2)}\n`);
  process.stdout.write(`${tableOf(counted)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
