/**
 * `npm run soak`: runs mixed load with kills and restarts for minutes or hours, and reports whether memory,
 * files and latencies stay flat.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BadOption, parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { hostNamed } from "../crash/server.ts";
import { report } from "./report.ts";
import { Soak } from "./soak.ts";

const usage = `npm run soak -- [options]

  --minutes N     duration (30, at least 1): kills and restarts in the first half, none in the second
  --seed N        seed of all random choices (the time)
  --host HOST     start (by default) or standalone: the server of npm start or of npm run standalone
  --help          prints this text`;

async function main(): Promise<boolean> {
  const { values } = parsed(() =>
    parseArgs({
      options: {
        minutes: { type: "string" },
        seed: { type: "string" },
        host: { type: "string" },
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) {
    process.stdout.write(`${usage}\n`);
    return true;
  }
  const minutes = Number(values.minutes ?? 30);
  if (!Number.isFinite(minutes) || minutes < 1)
    throw new BadOption(`--minutes must be a number of at least 1, not ${JSON.stringify(values.minutes)}`);
  const host = hostNamed(values.host);
  const seed = wholeNumber("seed", values.seed, Math.floor(Date.now() / 1_000));
  const folder = mkdtempSync(join(tmpdir(), "crash-soak-"));
  process.stdout.write(`seed ${seed}, ${minutes} minutes, in ${folder}\n`);
  const soak = new Soak({ host, minutes, seed, folder, log: (line) => process.stdout.write(`${line}\n`) });
  try {
    await soak.run();
  } finally {
    await soak.close();
  }
  process.stdout.write(`\n${report(soak).join("\n")}\n`);
  const isSafe = soak.complaints.length === 0;
  if (isSafe) rmSync(folder, { recursive: true, force: true });
  else
    process.stdout.write(
      `state, records and logs: ${folder}; to repeat it: npm run ` +
        `soak -- --host ${host} --minutes ${minutes} --seed ${seed}\n`,
    );
  return isSafe;
}

runProgram(usage, main);
