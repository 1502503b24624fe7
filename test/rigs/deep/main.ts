/** `npm run test:deep`: runs everything that searches for unknown bugs. */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import { BadOption, parsed, runProgram } from "../../support/options.ts";
import { steps, type Step } from "./steps.ts";

const USAGE = `npm run test:deep -- [options]

  --only NAME   runs one step; may be given several times
  --list        lists the names of the steps
  --help        prints this text

Steps run one after the other. A failed step does not stop the others, but the exit code is 1.

${steps.map(({ name, description }) => `  ${name.padEnd(16)}  ${description}`).join("\n")}
`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

let running: ReturnType<typeof spawn> | undefined;
let isInterrupted = false;
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    isInterrupted = true;
    running?.kill(signal);
  });

function runStep({ command: [program, ...options], env }: Step): Promise<boolean> {
  return new Promise((resolve) => {
    running = spawn(program, options, { stdio: "inherit", env: { ...process.env, ...env } });
    running.once("error", (error) => {
      print(`${program} did not start: ${error.message}`);
      resolve(false);
    });
    running.once("close", (code) => resolve(code === 0));
  });
}

function chosenSteps(names: readonly string[] | undefined): readonly Step[] {
  if (names === undefined) return steps;
  return names.map((name) => {
    const step = steps.find((one) => one.name === name);
    if (step === undefined)
      throw new BadOption(`--only must name a step: ${steps.map((one) => one.name).join(", ")}`);
    return step;
  });
}

async function main(): Promise<boolean> {
  const { values } = parsed(() =>
    parseArgs({
      options: {
        only: { type: "string", multiple: true },
        list: { type: "boolean" },
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) return (print(USAGE), true);
  if (values.list === true) return (print(steps.map(({ name }) => name).join("\n")), true);
  const results: { name: string; isPassed: boolean; minutes: number }[] = [];
  for (const step of chosenSteps(values.only)) {
    if (isInterrupted) break;
    print(`--- ${step.name}: ${step.description}`);
    const startedMs = performance.now();
    const isPassed = await runStep(step);
    results.push({ name: step.name, isPassed, minutes: (performance.now() - startedMs) / 60_000 });
  }
  print("---");
  for (const { name, isPassed, minutes } of results)
    print(`${name.padEnd(16)}  ${isPassed ? "passed" : "FAILED"}  ${minutes.toFixed(1)} min`);
  const failed = results.filter(({ isPassed }) => !isPassed).length;
  print(`${results.length - failed} steps passed, ${failed} failed${isInterrupted ? ", interrupted" : ""}`);
  return failed === 0 && !isInterrupted;
}

runProgram(USAGE, main);
