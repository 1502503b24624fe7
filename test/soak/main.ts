/** `npm run soak`: hours or minutes of mixed load with kills and restarts; says whether memory, files and latencies stay flat. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { report } from "./report.ts";
import { Soak } from "./soak.ts";

const usage = `npm run soak -- [options]

  --minutes N     how long (30): kills and restarts for the first half, one undisturbed life of the coordinator after that
  --seed N        what it follows from (now)`;

async function main(): Promise<boolean> {
  const { values } = parseArgs({ options: { minutes: { type: "string" }, seed: { type: "string" }, help: { type: "boolean" } } });
  if (values.help === true) {
    process.stdout.write(`${usage}\n`);
    return true;
  }
  const minutes = Number(values.minutes ?? 30);
  const seed = Number(values.seed ?? Math.floor(Date.now() / 1_000));
  if (!(minutes >= 1) || !Number.isSafeInteger(seed)) throw new Error(usage);
  const folder = mkdtempSync(join(tmpdir(), "crash-soak-"));
  process.stdout.write(`seed ${seed}, ${minutes} minutes, in ${folder}\n`);
  const soak = new Soak({ minutes, seed, folder, say: (line) => process.stdout.write(`${line}\n`) });
  try {
    await soak.run();
  } finally {
    await soak.close();
  }
  process.stdout.write(`\n${report(soak).join("\n")}\n`);
  const isSafe = soak.complaints.length === 0;
  if (isSafe) rmSync(folder, { recursive: true, force: true });
  else process.stdout.write(`state, records and logs are in ${folder}; again: npm run soak -- --minutes ${minutes} --seed ${seed}\n`);
  return isSafe;
}

main().then(
  (isGood) => process.exit(isGood ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
