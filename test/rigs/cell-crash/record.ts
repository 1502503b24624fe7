import { openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

export const kinds = ["sign_up", "rename", "delete"] as const;
export type Kind = (typeof kinds)[number];

/** The outcome reported to a user: saved, failed, or unknown. */
export type ReportedOutcome = "saved" | "failed" | "unknown";

export type Line =
  | { line: "started"; op: string; kind: Kind }
  | { line: "reported"; op: string; outcome: ReportedOutcome; code: string }
  /** A retry of a call to the coordinator. */
  | { line: "retry"; operation: string }
  /** An event that no caller sees. A contradiction must never occur. */
  | { line: "event"; kind: string; detail: string }
  | { line: "reconciled"; counters: Record<string, number> };

/**
 * The records of one process, one per line. An operation is recorded before it starts, and its outcome before
 * anything else happens. Records survive any kill.
 */
export class Recorder {
  readonly #file: number;

  constructor(folder: string, name: string) {
    this.#file = openSync(join(folder, `${name}.ndjson`), "a");
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** Reads the records of all processes. The last line of a killed process may be incomplete and is skipped. */
export const readRecords = (folder: string): Line[] =>
  readdirSync(folder).flatMap((name) => linesOf(join(folder, name)));

function linesOf(path: string): Line[] {
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as Line);
}
