/** `npm run cell-crash`: two cells under load while their processes, their database and the coordinator are killed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { run, type Outcome, type RunOptions } from "./run.ts";

const CALM_MS = 6_000;

const usage = `npm run cell-crash -- [options]

  --sign-ups N    sign-ups that come to an end (10000)
  --names N       names that they are over (40)
  --seed N        what it all follows from (now)
  --minutes N     ends then, however many there were (30)
  --help          this`;

function readOptions(): Pick<RunOptions, "seed" | "signUps" | "names" | "minutes"> {
  const text = { type: "string" } as const;
  const options = {
    "sign-ups": text,
    names: text,
    seed: text,
    minutes: text,
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
    minutes: wholeNumber("minutes", values.minutes, 30, 1),
  };
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

function report({ kills, seconds, figures, complaints }: Outcome): void {
  say(`\n${figures.signUps} sign-ups in ${seconds} s`);
  const tables = {
    kills,
    told: figures.told,
    retries: figures.retries,
    events: figures.events,
    reconciled: figures.reconciled,
  };
  for (const [name, counts] of Object.entries(tables)) {
    say(`${name}:`);
    for (const [what, count] of Object.entries(counts).toSorted(([one], [other]) => one.localeCompare(other)))
      say(`  ${String(count).padStart(7)}  ${what}`);
  }
  say(`killed before anybody was told: ${figures.untold}`);
  for (const complaint of complaints.slice(0, 50)) say(`  ${complaint}`);
  say(complaints.length === 0 ? "ok" : `FAILED: ${complaints.length} complaints`);
}

async function main(): Promise<boolean> {
  const options = readOptions();
  const folder = mkdtempSync(join(tmpdir(), "cell-crash-"));
  say(`seed ${options.seed}, in ${folder}`);
  const outcome = await run({ ...options, calmMs: CALM_MS, folder, log: say });
  report(outcome);
  if (outcome.complaints.length > 0) {
    say(
      `its records and logs are in ${folder}; again: npm run cell-crash -- --seed ${options.seed} --sign-ups ${options.signUps} --names ${options.names}`,
    );
    return false;
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  return true;
}

runProgram(usage, main);
