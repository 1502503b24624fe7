import { closeSync, existsSync, openSync, readFileSync, readdirSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Batch, Bucket, Conflict } from "../../../src/users/client/index.ts";

/**
 * The records of a client: one line before each call and one after its answer, so that a killed client still
 * leaves the call.
 */

export type Kind = "begin" | "commit" | "rollback" | "lookup";

interface Found {
  cell: string;
  status: string;
  lease: string | undefined;
}

export interface Answered {
  kind: "ok" | "refused" | "unknown";
  state?: string;
  code?: string;
  reason?: string;
  conflicts?: readonly Conflict[];
  /** The result of a lookup: one entry per bucket, null if it has no owner. */
  found?: (Found | null)[];
  error?: string;
}

export interface Called {
  client: string;
  cell: string;
  kind: Kind;
  lease?: string;
  batch?: Batch;
  buckets?: Bucket[];
}

type Line =
  | (Called & { line: "call"; id: string; atMs: number })
  | { line: "return"; id: string; atMs: number; tries: number; answer: Answered }
  /** A problem that must never occur. */
  | { line: "problem"; client: string; text: string };

/**
 * One call as the verifier sees it. Its `answer` is unknown if the client died or did not learn the outcome.
 */
export interface Call extends Called {
  id: string;
  calledAtMs: number;
  returnedAtMs: number | undefined;
  tries: number;
  answer: Answered;
}

/**
 * The monotonic clock that all processes of this machine share. Times from `performance.timeOrigin` are not
 * the same in all of them: on a busy machine, one was 14 ms ahead.
 */
export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

export class Recorder {
  readonly #file: number;
  readonly #client: string;
  #count = 0;

  constructor(folder: string, client: string) {
    this.#file = openSync(join(folder, `${client}.ndjson`), "a");
    this.#client = client;
  }

  async call(
    called: Omit<Called, "client">,
    work: () => Promise<{ tries: number; answer: Answered }>,
  ): Promise<Answered> {
    const id = `${this.#client}/${process.pid}/${(this.#count += 1)}`;
    this.#write({ line: "call", id, client: this.#client, ...called, atMs: nowMs() });
    const { tries, answer } = await work();
    this.#write({ line: "return", id, atMs: nowMs(), tries, answer });
    return answer;
  }

  problem(text: string): void {
    this.#write({ line: "problem", client: this.#client, text });
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

export interface Records {
  calls: Call[];
  problems: string[];
}

/** Reads the records of all clients in a folder, in the order of the calls. */
export function readRecords(folder: string): Records {
  const calls = new Map<string, Call>();
  const problems: string[] = [];
  // A server that dies while it starts is never called.
  const names = existsSync(folder) ? readdirSync(folder) : [];
  for (const name of names.filter((file) => file.endsWith(".ndjson"))) {
    for (const line of linesOf(readFileSync(join(folder, name), "utf8"))) {
      if (line.line === "problem") problems.push(`${line.client}: ${line.text}`);
      else if (line.line === "call") calls.set(line.id, callOf(line));
      else {
        const call = calls.get(line.id);
        if (call !== undefined)
          Object.assign(call, { returnedAtMs: line.atMs, tries: line.tries, answer: line.answer });
      }
    }
  }
  return { calls: [...calls.values()].toSorted((a, b) => a.calledAtMs - b.calledAtMs), problems };
}

function callOf({ line: _line, atMs, ...called }: Extract<Line, { line: "call" }>): Call {
  return {
    ...called,
    calledAtMs: atMs,
    returnedAtMs: undefined,
    tries: 1,
    answer: { kind: "unknown", error: "the client died" },
  };
}

/** The last line of a killed client may be incomplete and is skipped. */
const linesOf = (text: string): Line[] =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
