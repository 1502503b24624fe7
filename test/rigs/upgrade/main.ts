/** `npm run upgrade`: an upgrade to a made-up next version under load, the way back, and the finish. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { renderTable } from "../../../demo/table.ts";
import { BadOption, parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { percentile } from "../soak/samples.ts";
import type { Load } from "./load.ts";
import { bugs } from "./pieces.ts";
import { runUpgrade } from "./run.ts";
import { takeTurns } from "./standalone.ts";

const usage = `npm run upgrade -- [options]

  --seconds N      duration of each phase (30)
  --rate N         cycles per second of all cells (100)
  --host HOST      mixed: both versions side by side in one workerd; standalone: the standalone servers of
                   both in turn; both by default
  --kill-every N   kills workerd and its host every N seconds (never)
  --bug NAME       gives the next version a bug, with which a run of \`mixed\` must fail:
                   ${Object.keys(bugs).join(", ")}
  --seed N         seed of all random choices (the time)
  --help           prints this text`;

const hosts = ["mixed", "standalone"] as const;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(): Promise<boolean> {
  const text = { type: "string" } as const;
  const { values } = parsed(() =>
    parseArgs({
      options: {
        seconds: text,
        rate: text,
        host: text,
        "kill-every": text,
        bug: text,
        seed: text,
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) return (print(usage), true);
  const phaseMs = 1_000 * wholeNumber("seconds", values.seconds, 30, 1);
  const perSecond = wholeNumber("rate", values.rate, 100, 1);
  const killEveryS = wholeNumber("kill-every", values["kill-every"], 0);
  const seed = wholeNumber("seed", values.seed, Math.floor(Date.now() / 1_000));
  const { bug } = values;
  if (bug !== undefined && !Object.hasOwn(bugs, bug))
    throw new BadOption(`--bug must be one of ${Object.keys(bugs).join(", ")}`);
  const chosen = hosts.filter((host) => values.host === undefined || values.host === host);
  if (chosen.length === 0) throw new BadOption(`--host must be ${hosts.join(" or ")}`);
  let isGood = true;
  for (const host of chosen) {
    const folder = mkdtempSync(join(tmpdir(), `upgrade-${host}-`));
    print(`${host}: seed ${seed}, ${perSecond} cycles per second, in ${folder}`);
    const shared = { folder, seed, pace: { perSecond }, log: print };
    const planted = bug === undefined ? {} : { bug };
    const killing = killEveryS === 0 ? {} : { killEveryMs: killEveryS * 1_000 };
    const { load, complaints, kills } =
      host === "mixed"
        ? await runUpgrade({ ...shared, phaseMs, ...killing, ...planted })
        : await takeTurns({ ...shared, turnMs: phaseMs });
    print(`\n${figuresOf(load).join("\n")}\n`);
    for (const complaint of complaints.slice(0, 50)) print(complaint);
    const calls = load.phases.reduce((sum, phase) => sum + phase.calls, 0);
    print(
      `${host}: ${calls} calls, ${load.leases} leases decided, ${kills} kills, ` +
        `${load.failures.length} calls failed, ${complaints.length} complaints`,
    );
    if (complaints.length === 0) rmSync(folder, { recursive: true, force: true });
    isGood &&= complaints.length === 0;
  }
  return isGood;
}

/** The figures of each phase. No bar depends on them, because another program is enough to move them. */
function figuresOf({ phases }: Load): string[] {
  const quietMs = percentile(phases[0]?.beginsMs ?? [], 0.99);
  return renderTable({
    title: "phase",
    head: ["calls", "retries", "skipped", "begins", "p50 ms", "p99 ms", "p99 to quiet"],
    rows: phases.map(({ name, calls, retries, skipped, beginsMs }) => {
      const p99 = percentile(beginsMs, 0.99);
      const times = [percentile(beginsMs, 0.5), p99].map((ms) => ms.toFixed(1));
      return [name, calls, retries, skipped, beginsMs.length, ...times, (p99 / quietMs).toFixed(2)];
    }),
  });
}

runProgram(usage, main);
