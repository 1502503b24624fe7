/**
 * `npm run routing`: requests through the router's Worker in front of two cells, while its coordinator is
 * killed and started again, and while names move between the cells.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Random } from "../../../demo/random.ts";
import { BadOption, parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { hostNamed } from "../crash/server.ts";
import { Churn, Readers, type RouterSetup } from "./churn.ts";
import { failures, OutageRun, type Failure } from "./outage.ts";
import { churnReport, outageReport } from "./report.ts";
import { Stage } from "./stage.ts";

const usage = `npm run routing -- [options]

  --host HOST     start or standalone: the coordinator of npm start (by default) or of npm run standalone
  --only RUN      outage or churn (both)
  --rounds N      outages (20), in turn a kill -9 and a coordinator that hangs
  --failure NAME  only ${failures.join(" or ")}
  --seconds N     how long names change their owners (300)
  --kills N       kills of the coordinator meanwhile (10)
  --rate N        requests per second (500); while names change, for each of two routers
  --seed N        seed of all random choices (the time)
  --help          prints this text`;

const runs = ["outage", "churn"] as const;

/** How old answers of a router may be, with its defaults. */
const setups: readonly RouterSetup[] = [
  { name: "with reports", variables: {}, bounds: { foundMs: 2_000, noneMs: 2_000 } },
  { name: "by age", variables: { ROUTER_REPORTS: "off" }, bounds: { foundMs: 5_000, noneMs: 1_000 } },
];

const print = (line: string): void => void process.stdout.write(`${line}\n`);

interface Load {
  stage: Stage;
  seed: number;
  perSecond: number;
}

async function outages(load: Load, rounds: number, chosen: readonly Failure[]): Promise<boolean> {
  const router = await load.stage.startRouter();
  const run = new OutageRun({ ...load, rounds, failures: chosen, router, log: print });
  await run.run();
  for (const line of outageReport(run)) print(line);
  return run.judge.complaints.length === 0 && !run.requests.isTooSlow;
}

async function churning({ stage, seed, perSecond }: Load, seconds: number, kills: number): Promise<boolean> {
  const churn = new Churn(stage, seed);
  const readers: [RouterSetup, Readers][] = [];
  for (const setup of setups)
    readers.push([setup, new Readers(await stage.startRouter(setup.variables), churn.names, seed)]);
  const signal = AbortSignal.timeout(seconds * 1_000);
  await Promise.all([
    churn.run(signal),
    killing(stage, kills, seconds),
    ...readers.map(([, each]) => each.run(perSecond, signal)),
  ]);
  let isRight = true;
  print(`${churn.changes} changes`);
  for (const [setup, each] of readers) {
    const complaints = each.judge(churn.owners, setup.bounds);
    for (const line of churnReport(setup, each, churn.owners, complaints)) print(line);
    isRight = isRight && complaints.length === 0 && !each.requests.isTooSlow;
  }
  return isRight;
}

async function main(): Promise<boolean> {
  const { values } = parsed(() =>
    parseArgs({
      options: {
        host: { type: "string" },
        only: { type: "string" },
        rounds: { type: "string" },
        failure: { type: "string" },
        seconds: { type: "string" },
        kills: { type: "string" },
        rate: { type: "string" },
        seed: { type: "string" },
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) return (print(usage), true);
  const chosen = oneOf("only", runs, values.only);
  const chosenFailures = oneOf("failure", failures, values.failure);
  const rounds = wholeNumber("rounds", values.rounds, 20, 1);
  const seconds = wholeNumber("seconds", values.seconds, 300, 1);
  const kills = wholeNumber("kills", values.kills, 10);
  const perSecond = wholeNumber("rate", values.rate, 500, 1);
  const seed = wholeNumber("seed", values.seed, Math.floor(Date.now() / 1_000));
  const host = hostNamed(values.host);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-routing-"));
  print(`seed ${seed}, in ${folder}`);
  const stage = new Stage({ host, folder });
  let isRight = false;
  try {
    await stage.start();
    const load = { stage, seed, perSecond };
    const results: boolean[] = [];
    if (chosen.includes("outage")) results.push(await outages(load, rounds, chosenFailures));
    if (chosen.includes("churn")) results.push(await churning(load, seconds, kills));
    isRight = results.every(Boolean);
    return isRight;
  } finally {
    await stage.stop();
    if (isRight) rmSync(folder, { recursive: true, force: true });
    else print(`state and logs: ${folder}`);
  }
}

/** Kills the coordinator at intervals, and starts it again after some seconds. */
async function killing(stage: Stage, kills: number, seconds: number): Promise<void> {
  const random = new Random("kills");
  const intervalMs = (seconds * 1_000) / (kills + 1);
  for (let kill = 0; kill < kills; kill += 1) {
    await sleep(intervalMs);
    await stage.server.kill("group");
    await sleep(random.between(0, 4_000));
    await stage.startCoordinator();
  }
}

/** Reads an option that chooses one of several, or all of them. */
function oneOf<Name extends string>(option: string, names: readonly Name[], given?: string): readonly Name[] {
  const chosen = names.filter((name) => name === (given ?? name));
  if (chosen.length > 0) return chosen;
  throw new BadOption(`--${option} must be ${names.join(" or ")}, not ${JSON.stringify(given)}`);
}

runProgram(usage, main);
