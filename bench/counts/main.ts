/**
 * `node bench/counts/main.ts`: counts the messages, transactions and rows of each operation. They are the
 * same on every machine.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countAll } from "./count-all.ts";
import { tableOf } from "./table.ts";

const results = join(import.meta.dirname, "../../.bench");
const folder = mkdtempSync(join(tmpdir(), "leasehold-counts-"));
try {
  const counted = await countAll(folder);
  mkdirSync(results, { recursive: true });
  writeFileSync(join(results, "counts.json"), `${JSON.stringify(counted, null, 2)}\n`);
  process.stdout.write(`${tableOf(counted)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
