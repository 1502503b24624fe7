/**
 * `npm run cell-crash`: runs two cells under load while their processes, their database and the coordinator
 * are killed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { runLoad, type LoadResult, type LoadOptions } from "./load.ts";

const SIGN_UPS_PER_KILL = 40;

const usage = `npm run cell-crash -- [options]

  --sign-ups N    sign-ups to finish (10000)
  --names N       number of different names (40)
  --seed N        seed of all random choices (the time)
  --help          prints this text`;

function readOptions(): Pick<LoadOptions, "seed" | "signUps" | "names"> {
  const text = { type: "string" } as const;
  const options = {
    "sign-ups": text,
    names: text,
    seed: text,
    help: { type: "boolean" },
  } as const;
  const { values } = parsed(() => parseArgs({ options }));
  if (values.help === true) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  return {
    signUps: wholeNumber("sign-ups", values["sign-ups"], 10_000, 1),
    names: wholeNumber("names", values.names, 40, 1),
    seed: wholeNumber("seed", values.seed, Math.floor(Date.now() / 1_000)),
  };
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function report({ kills, seconds, figures, complaints }: LoadResult): void {
  print(`\n${figures.signUps} sign-ups in ${seconds} s`);
  const tables = {
    kills,
    reported: figures.reported,
    retries: figures.retries,
    events: figures.events,
    reconciled: figures.reconciled,
  };
  for (const [name, counts] of Object.entries(tables)) {
    print(`${name}:`);
    for (const [what, count] of Object.entries(counts).toSorted(([one], [other]) => one.localeCompare(other)))
      print(`  ${String(count).padStart(7)}  ${what}`);
  }
  print(`killed before the outcome was reported: ${figures.unreported}`);
  for (const complaint of complaints.slice(0, 50)) print(`  ${complaint}`);
  print(complaints.length === 0 ? "ok" : `FAILED: ${complaints.length} complaints`);
}

async function main(): Promise<boolean> {
  const options = readOptions();
  const folder = mkdtempSync(join(tmpdir(), "cell-crash-"));
  print(`seed ${options.seed}, in ${folder}`);
  const outcome = await runLoad({ ...options, signUpsPerKill: SIGN_UPS_PER_KILL, folder, log: print });
  report(outcome);
  if (outcome.complaints.length > 0) {
    print(
      `records and logs: ${folder}; to repeat it: npm run cell-crash -- --seed ` +
        `${options.seed} --sign-ups ${options.signUps} --names ${options.names}`,
    );
    return false;
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  return true;
}

runProgram(usage, main);
