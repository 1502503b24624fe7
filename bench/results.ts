import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Part } from "./options.ts";
import type { PeerName } from "./peers.ts";

/** One measurement of one peer. What does not apply is left out. */
export interface Result {
  part: Part;
  peer: PeerName;
  /** What was done: `1 claim`, `hits`, `begins` ... */
  what: string;
  clients: number;
  round: number;
  turns: number;
  errors: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of the peer and all its processes. */
  cpuMs: number;
  /** Open loop only: which share of the calls took no longer than this, in ascending order. */
  quantiles?: readonly (readonly [share: number, ms: number])[];
  /** `fsync` and `fdatasync`, where they were counted. */
  fsyncs?: number;
}

type Key = Pick<Result, "part" | "peer" | "what" | "clients" | "round">;

const keyOf = ({ part, peer, what, clients, round }: Key): string => [part, peer, what, clients, round].join("|");

/** On disk line by line, so that a run which was stopped goes on where it was. */
export class Results {
  readonly #path: string;
  readonly #byKey = new Map<string, Result>();

  constructor(path: string, fresh: boolean) {
    this.#path = path;
    mkdirSync(dirname(path), { recursive: true });
    if (fresh) rmSync(path, { force: true });
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
    for (const result of lines.map((line) => JSON.parse(line) as Result)) this.#byKey.set(keyOf(result), result);
  }

  /** Whether it is done: what went wrong is measured again. */
  has(key: Key): boolean {
    return this.#byKey.get(keyOf(key))?.errors === 0;
  }

  get(key: Key): Result | undefined {
    return this.#byKey.get(keyOf(key));
  }

  add(result: Result): void {
    this.#byKey.set(keyOf(result), result);
    appendFileSync(this.#path, `${JSON.stringify(result)}\n`);
  }

  get all(): readonly Result[] {
    return [...this.#byKey.values()];
  }
}
