/**
 * `npm run routing`: requests through the router's Worker in front of two cells, while its coordinator is
 * killed and started again.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BadOption, parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { hostNamed } from "../crash/server.ts";
import { failures, OutageRun } from "./outage.ts";
import { outageReport } from "./report.ts";
import { Stage } from "./stage.ts";

const usage = `npm run routing -- [options]

  --host HOST     start or standalone: the coordinator of npm start (by default) or of npm run standalone
  --rounds N      outages (20), in turn a kill -9 and a coordinator that hangs
  --failure NAME  only ${failures.join(" or ")}
  --rate N        requests per second (500)
  --seed N        seed of all random choices (the time)
  --help          prints this text`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(): Promise<boolean> {
  const { values } = parsed(() =>
    parseArgs({
      options: {
        host: { type: "string" },
        rounds: { type: "string" },
        failure: { type: "string" },
        rate: { type: "string" },
        seed: { type: "string" },
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) return (print(usage), true);
  const chosen = failures.filter((failure) => failure === (values.failure ?? failure));
  if (chosen.length === 0)
    throw new BadOption(`--failure must be ${failures.join(" or ")}, not ${JSON.stringify(values.failure)}`);
  const options = {
    failures: chosen,
    rounds: wholeNumber("rounds", values.rounds, 20, 1),
    perSecond: wholeNumber("rate", values.rate, 500, 1),
    seed: wholeNumber("seed", values.seed, Math.floor(Date.now() / 1_000)),
    log: print,
  };
  const host = hostNamed(values.host);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-routing-"));
  print(`seed ${options.seed}, in ${folder}`);
  const stage = new Stage({ host, folder });
  try {
    await stage.start();
    const run = new OutageRun({ ...options, stage, router: await stage.startRouter() });
    await run.run();
    for (const line of outageReport(run)) print(line);
    const isRight = run.judge.complaints.length === 0;
    if (isRight) rmSync(folder, { recursive: true, force: true });
    return isRight;
  } finally {
    await stage.stop();
  }
}

runProgram(usage, main);
