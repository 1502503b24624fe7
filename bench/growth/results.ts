import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Axis, Variant } from "./variants.ts";
import type { Work } from "./works.ts";

/** One measurement of one variant. */
export interface Result {
  commit: string;
  axis: Axis;
  variant: Variant;
  work: Work;
  round: number;
  turns: number;
  errors: number;
  seconds: number;
  p50Ms: number;
  /** Processor time of the coordinator and all its processes. */
  cpuMs: number;
}

export type Key = Pick<Result, "commit" | "axis" | "variant" | "work" | "round">;

/** The axis too: a base is measured beside each axis's own variants, in the same rounds. */
const keyOf = ({ commit, axis, variant, work, round }: Key): string => [commit, axis, variant[axis], work, round].join("|");

/** On disk line by line, so that a run which was stopped goes on where it was. */
export class Results {
  readonly #path: string;
  readonly #byKey = new Map<string, Result>();

  constructor(path: string) {
    this.#path = path;
    mkdirSync(dirname(path), { recursive: true });
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
    for (const result of lines.map((line) => JSON.parse(line) as Result)) this.#byKey.set(keyOf(result), result);
  }

  /** Whether it is done: what went wrong is measured again. */
  has(key: Key): boolean {
    return this.#byKey.get(keyOf(key))?.errors === 0;
  }

  add(result: Result): void {
    this.#byKey.set(keyOf(result), result);
    appendFileSync(this.#path, `${JSON.stringify(result)}\n`);
  }

  of(commit: string, axis: Axis): Result[] {
    return [...this.#byKey.values()].filter((result) => result.commit === commit && result.axis === axis);
  }
}
