/** `npm run crash`: kills the coordinator repeatedly, and checks its state and the cells' state each time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { renderTable } from "../../../demo/table.ts";
import { BadOption, parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { describeRound, matrix, drawRoundSettings } from "./round-settings.ts";
import { hostNamed, type HostKind } from "./server.ts";
import { makeTemplate, runRound, type RoundResult, type RoundSettings } from "./round.ts";

const usage = `npm run crash -- [options]

  --rounds N      rounds that kill at random moments (30), after one for each failpoint
  --seed N        seed of all rounds (the time)
  --round N       runs only this round, counted from 1
  --only KIND     failpoints or random: runs only these rounds
  --host HOST     start (by default) or standalone: the server of npm start or of npm run standalone
  --help          prints this text`;

interface Options {
  host: HostKind;
  seed: number;
  numbers: number[];
}

function readOptions(): Options {
  const { values } = parsed(() =>
    parseArgs({
      options: {
        rounds: { type: "string" },
        seed: { type: "string" },
        round: { type: "string" },
        only: { type: "string" },
        host: { type: "string" },
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  const { only } = values;
  if (only !== undefined && only !== "failpoints" && only !== "random") {
    throw new BadOption(`--only must be failpoints or random, not ${JSON.stringify(only)}`);
  }
  const host = hostNamed(values.host);
  const seed = wholeNumber("seed", values.seed, Math.floor(Date.now() / 1_000));
  const rounds = wholeNumber("rounds", values.rounds, 30);
  if (values.round !== undefined) return { host, seed, numbers: [wholeNumber("round", values.round, 1, 1)] };
  const upTo = matrix.length + rounds;
  const all = Array.from({ length: upTo }, (_, index) => index + 1);
  if (only === "failpoints") return { host, seed, numbers: all.slice(0, matrix.length) };
  if (only === "random") return { host, seed, numbers: all.slice(matrix.length) };
  return { host, seed, numbers: all };
}

const rowOf = ({
  settings,
  kills,
  clientKills,
  begins,
  commits,
  rollbacks,
  unknown,
  replays,
  ordered,
  complaints,
}: RoundResult): (string | number)[] => {
  const { kill, moment } = describeRound(settings);
  return [
    String(settings.number),
    kill,
    moment,
    settings.clientsSurvive ? "continue" : "killed",
    kills,
    clientKills,
    begins,
    commits,
    rollbacks,
    unknown,
    replays,
    ordered,
    complaints.length > 0 ? "FAILED" : "ok",
  ];
};

async function tryRound(settings: RoundSettings, folder: string, template: string): Promise<RoundResult> {
  try {
    return await runRound(settings, folder, template);
  } catch (error) {
    const complaints = [
      `the round was aborted: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    ];
    return {
      settings,
      kills: 0,
      clientKills: 0,
      begins: 0,
      commits: 0,
      rollbacks: 0,
      unknown: 0,
      replays: 0,
      ordered: 0,
      complaints,
    };
  }
}

async function main(): Promise<boolean> {
  const { host, seed, numbers } = readOptions();
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  const template = join(folder, "template");
  process.stdout.write(`seed ${seed}, ${numbers.length} rounds, in ${folder}\n`);
  await makeTemplate(template, host);
  const outcomes: RoundResult[] = [];
  const failed: string[] = [];
  for (const number of numbers) {
    const settings = drawRoundSettings(seed, number, host);
    const roundFolder = join(folder, `round-${number}`);
    const outcome = await tryRound(settings, roundFolder, template);
    outcomes.push(outcome);
    const { kill, moment } = describeRound(settings);
    process.stdout.write(
      `round ${number}: ${kill} at ${moment}: ${outcome.complaints.length === 0 ? "ok" : "FAILED"}\n`,
    );
    if (outcome.complaints.length === 0) {
      rmSync(roundFolder, { recursive: true, force: true });
      continue;
    }
    failed.push(`round ${number} of seed ${seed} failed; its state, records and logs are in ${roundFolder}`);
    for (const complaint of outcome.complaints.slice(0, 20)) process.stdout.write(`  ${complaint}\n`);
  }
  const head = [
    "killed",
    "moment",
    "clients",
    "kills",
    "of clients",
    "begins",
    "commits",
    "rollbacks",
    "unknown",
    "replays",
    "in order",
    "verdict",
  ];
  process.stdout.write(
    `\n${renderTable({ title: "round", head, rows: outcomes.map(rowOf) }).join("\n")}\n\n`,
  );
  for (const line of failed)
    process.stdout.write(
      `${line}; to repeat: npm run crash -- --host ${host} --seed ${seed} --round ${line.split(" ")[1]}\n`,
    );
  if (failed.length === 0) rmSync(folder, { recursive: true, force: true });
  process.stdout.write(`${outcomes.length - failed.length} passed, ${failed.length} failed\n`);
  return failed.length === 0;
}

runProgram(usage, main);
