/** `npm run bench`: compares Leasehold with the systems that could be used instead, on this machine. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Bench, type BenchScale } from "./measure/bench.ts";
import { measures } from "./measure/parts.ts";
import { isOwn, readOptions, usage, type Options, type OwnPart } from "./options.ts";
import { codeVersion } from "./code-version.ts";
import { peerNames } from "./peers.ts";
import { BadOption, inFolder, runProgram } from "./program.ts";
import { errorsOf, writeReport } from "./report/report.ts";
import { Results } from "./results.ts";

const QUICK: BenchScale = { rounds: 3, seconds: 1, targetSeconds: 3, loadSeconds: 10, kneeSeconds: 4 };
const FULL: BenchScale = { rounds: 7, seconds: 5, targetSeconds: 5, loadSeconds: 600, kneeSeconds: 30 };

const KEPT = join(import.meta.dirname, "../.bench");

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function bench(options: Options): Promise<number> {
  const startedMs = performance.now();
  const code = codeVersion();
  // A full run continues an interrupted one, as long as the code is the same.
  const path = join(KEPT, options.full ? `full-${code}.jsonl` : "quick.jsonl");
  const results = new Results(
    path,
    options.fresh || (!options.full && !options.reportOnly && measuresPeers(options)),
  );
  if (!options.reportOnly) await run(options, results, code);
  const commit = options.reportOnly ? results.all.at(-1)?.commit : code;
  if (commit === undefined)
    throw new BadOption("there are no results yet; run the benchmark without --report first");
  const measured = results.all.filter((result) => result.commit === commit);
  // A report with only some of the peers or parts is not published. The refusals come last.
  const isWhole =
    options.isWhole &&
    peerNames.every((name) => measured.some(({ part, peer }) => part === "refusals" && peer === name));
  const folder = isWhole ? join(import.meta.dirname, "../docs/bench") : join(KEPT, "report");
  writeReport(commit, measured, folder);
  const errors = errorsOf(measured);
  print(`wrote ${join(folder, "results.md")}; ${errors} turns ended with an unexpected answer`);
  print(`took ${((performance.now() - startedMs) / 60_000).toFixed(1)} minutes`);
  return errors === 0 ? 0 : 1;
}

async function run(options: Options, results: Results, commit: string): Promise<void> {
  if (measuresPeers(options))
    execFileSync("sh", [join(import.meta.dirname, "install.sh")], { stdio: "inherit" });
  await inFolder("bench", async (root, atEnd) => {
    const running = new Bench(options.only, options.full ? FULL : QUICK, results, commit, root, print);
    atEnd(() => running.stop());
    atEnd(async () => void program?.kill("SIGTERM"));
    if (measuresPeers(options)) await running.start();
    for (const part of options.parts) {
      if (isOwn(part)) await runPart(part, part === "growth" && !options.full ? ["--targets"] : []);
      else await measures[part](running);
    }
  });
}

const measuresPeers = ({ parts }: Options): boolean => parts.some((part) => !isOwn(part));

let program: ChildProcess | undefined;

/**
 * Runs a part that is a program of its own. It stores its results in `.bench`, where the report reads them.
 */
async function runPart(part: OwnPart, argv: readonly string[]): Promise<void> {
  program = spawn(process.execPath, [join(import.meta.dirname, part, "main.ts"), ...argv], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = (await once(program, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${part} exited with ${code}; see its output above`);
}

await runProgram({ name: "bench", usage, readOptions, run: bench });
