/** Runs one search of the model with Spin. */
import { execFile, spawn } from "node:child_process";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { systemPrograms } from "../../support/setup/programs.ts";
import { CYCLE, type ModelRun, type VariantRun, type Violation } from "./runs.ts";

const call = promisify(execFile);

const MEMORY_MB = 6_000;
/**
 * The search depth, far deeper than any behaviour within the bounds. A search that reaches it is incomplete
 * and says so.
 */
const DEPTH = 1_000_000;

export interface Found {
  /** Undefined if nothing was found. */
  violation: Violation | undefined;
  /** Whether the search saw every state within the bounds. */
  complete: boolean;
  states: number;
  seconds: number;
  memoryMb: number;
  /** The verifier's message that explains an incomplete search. */
  complaint: string;
}

/** Throws if Spin or a C compiler is missing, with the command that installs it. */
export function requireTools(): void {
  const missing = systemPrograms.filter(
    ({ neededBy, isInstalled }) => neededBy.includes("npm run model") && !isInstalled(),
  );
  if (missing.length > 0)
    throw new Error(`${missing.map(({ name }) => name).join(" and ")} missing: npm run setup installs them`);
}

export const isVariant = (run: ModelRun): run is VariantRun => "off" in run;

const definitionsOf = (run: ModelRun): string[] =>
  [...run.bounds, ...(isVariant(run) ? [run.off] : [])].map((name) => `-D${name}`);

export interface Limits {
  ms: number;
  end: AbortSignal;
  /**
   * Searches in breadth, so that a counterexample is as short as possible. For a base run this needs more
   * memory. Variants are always searched in breadth.
   */
  shortest?: boolean;
}

const isBroad = (run: ModelRun, { shortest }: Limits): boolean =>
  run.search === "states" && (shortest === true || isVariant(run));

function compilerFlags(run: ModelRun, broad: boolean): string[] {
  const flags = ["-w", `-DMEMLIM=${MEMORY_MB}`];
  // A variant ends after some thousand states, so optimizing it would take longer than running it.
  if (broad) return [...flags, isVariant(run) ? "-O0" : "-O2", "-DSAFETY", "-DBFS"];
  return run.search === "states" ? [...flags, "-O2", "-DSAFETY"] : [...flags, "-O2", "-DNP", "-DNFAIR=3"];
}

function searchFlags(run: ModelRun, broad: boolean): string[] {
  if (broad) return isVariant(run) ? [] : ["-w26"];
  const flags = [`-m${DEPTH}`, run.model === "lease.pml" ? "-w26" : "-w20"];
  if (run.search === "states") return flags;
  // Contending begins are processes. Without fairness, a process that never runs would count as a cycle.
  return run.model === "contend.pml" ? [...flags, "-l", "-f"] : [...flags, "-l"];
}

/** Generates and compiles the verifier of one run in its own folder. */
async function build(run: ModelRun, folder: string, limits: Limits): Promise<void> {
  await mkdir(folder, { recursive: true });
  await copyFile(join(import.meta.dirname, run.model), join(folder, run.model));
  const generated = await call("spin", ["-a", ...definitionsOf(run), run.model], {
    cwd: folder,
    signal: limits.end,
  });
  if (/error/i.test(generated.stdout)) throw new Error(`${run.name}: ${generated.stdout}`);
  await call("gcc", [...compilerFlags(run, isBroad(run, limits)), "-o", "pan", "pan.c"], {
    cwd: folder,
    signal: limits.end,
  });
}

/**
 * Runs the verifier and returns its output. Reaching the time limit is no error here; the search is then
 * incomplete.
 */
function output(folder: string, flags: string[], { ms, end }: Limits): Promise<string> {
  return new Promise((resolve, reject) => {
    const pan = spawn("./pan", flags, { cwd: folder, timeout: ms, killSignal: "SIGKILL", signal: end });
    let text = "";
    pan.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    pan.stderr.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    pan.once("error", reject);
    pan.once("close", (_code, signal) => {
      resolve(signal === null ? text : `${text}\npan: ended by ${signal} after at most ${ms / 1_000} s\n`);
    });
  });
}

/** The names of the properties by their numbers, from the model's list. */
export async function propertyNames(model: ModelRun["model"]): Promise<Map<string, string>> {
  const text = await readFile(join(import.meta.dirname, model), "utf8");
  return new Map(
    [...text.matchAll(/^#define ([a-z_]+) +(\d+) \/\*/gm)].map(([, name = "", number = ""]) => [
      number,
      name,
    ]),
  );
}

function violationIn(text: string, names: ReadonlyMap<string, string>): Violation | undefined {
  if (text.includes("non-progress cycle (at")) return CYCLE;
  const said = /pan:\d+: (.*)/.exec(text)?.[1];
  if (said === undefined) return undefined;
  const number = /\((\d+)==0\)\)? \(at depth/.exec(said)?.[1];
  return (number === undefined ? undefined : names.get(number)) ?? said.slice(0, 60);
}

const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0);

/** The verifier's messages about an incomplete search. */
const INCOMPLETE = new RegExp(
  `(${[
    "ended by|out of memory|reached -DMEMLIM|depth too small|hash-compact|Bit statespace",
    "not completed|usage:|error:",
  ].join("|")}).*`,
  "i",
);

/** Builds and runs one search. */
export async function search(run: ModelRun, folder: string, limits: Limits): Promise<Found> {
  const names = await propertyNames(run.model);
  await build(run, folder, limits);
  const text = await output(folder, searchFlags(run, isBroad(run, limits)), limits);
  const complaint = INCOMPLETE.exec(text)?.[0] ?? "";
  return {
    violation: violationIn(text, names),
    complete: text.includes("Full statespace search for:") && text.includes("errors: 0") && complaint === "",
    states: numberIn(text, /(\d+) states, stored/),
    seconds: numberIn(text, /elapsed time ([\d.e+]+) seconds/),
    memoryMb: numberIn(text, /([\d.]+)\s+total actual memory usage/),
    complaint,
  };
}

/** The counterexample of a run, one step a line, as the model prints it. */
export async function steps(run: ModelRun, folder: string): Promise<string[]> {
  const { stdout } = await call("spin", ["-t", ...definitionsOf(run), run.model], {
    cwd: folder,
    maxBuffer: 2 ** 26,
  });
  const lines = stdout.split("\n").map((line) => line.trim());
  const end = lines.findIndex((line) => line.startsWith("spin: trail ends"));
  return lines
    .slice(0, end === -1 ? undefined : end)
    .filter((line) => line !== "" && !line.startsWith("spin:"));
}
