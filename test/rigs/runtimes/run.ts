import { execFile } from "node:child_process";

/** Runs a program and returns its output. Rejects with the end of the output if it fails. */
export type Run = (
  program: string,
  args: readonly string[],
  options: { cwd: string; env?: Readonly<Record<string, string>> },
) => Promise<string>;

const MAX_OUTPUT_BYTES = 2 ** 26;
/** A program that takes longer hangs. */
const HANG_MS = 15 * 60_000;
const LAST_LINES = 120;

/** Settings that npm and the tests of this repository make for their own processes. */
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(NODE_(ENV|OPTIONS|TEST_CONTEXT|V8_COVERAGE)$|VITEST|npm_(package|lifecycle)_)/.test(name),
  ),
);

/** `signal` ends the program. */
export const runUntil =
  (signal: AbortSignal): Run =>
  (program, args, { cwd, env = {} }) =>
    new Promise((resolve, reject) => {
      const options = {
        cwd,
        env: { ...inherited, NO_COLOR: "1", ...env },
        signal,
        timeout: HANG_MS,
        maxBuffer: MAX_OUTPUT_BYTES,
      };
      execFile(program, args, options, (error, stdout, stderr) => {
        if (error === null) return resolve(stdout);
        const lines = `${stdout}${stderr}`.trimEnd().split("\n").slice(-LAST_LINES);
        reject(new Error(`${program} ${args.join(" ")}: ${lines.join("\n")}`, { cause: error }));
      });
    });
