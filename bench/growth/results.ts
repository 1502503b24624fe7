import { ResultStore } from "../result-store.ts";
import type { Axis, Variant } from "./variants.ts";
import type { Work } from "./caller.ts";

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
  /** Processor time of the coordinator with all its processes. */
  cpuMs: number;
}

export type Key = Pick<Result, "commit" | "axis" | "variant" | "work" | "round">;

/**
 * The key contains the axis, because each axis measures its own base, in the same rounds as its other
 * variants.
 */
const keyOf = ({ commit, axis, variant, work, round }: Key): string =>
  [commit, axis, variant[axis], work, round].join("|");

export class Results extends ResultStore<Key, Result> {
  constructor(path: string) {
    super(path, keyOf, false);
  }

  of(commit: string, axis: Axis): Result[] {
    return this.all.filter((result) => result.commit === commit && result.axis === axis);
  }
}
