import { openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

export const kinds = ["sign_up", "rename", "delete"] as const;
export type Kind = (typeof kinds)[number];

/** What a user heard: it is saved, it is not, or nobody knows. */
export type ReportedOutcome = "saved" | "failed" | "unknown";

export type Line =
  | { line: "started"; op: string; kind: Kind }
  | { line: "reported"; op: string; outcome: ReportedOutcome; code: string }
  /** Another try of a call to the coordinator. */
  | { line: "retry"; operation: string }
  /** What nobody was told. Of a contradiction there must be none, ever. */
  | { line: "event"; kind: string; detail: string }
  | { line: "reconciled"; counters: Record<string, number> };

/** What one process writes down, line by line: asked before anything is done, told before anything else is done. It outlives any kill. */
export class Recorder {
  readonly #file: number;

  constructor(folder: string, name: string) {
    this.#file = openSync(join(folder, `${name}.ndjson`), "a");
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** Everything that the processes in `folder` wrote. A last line that was cut short says nothing. */
export const readRecords = (folder: string): Line[] =>
  readdirSync(folder).flatMap((name) => linesOf(join(folder, name)));

function linesOf(path: string): Line[] {
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as Line);
}
