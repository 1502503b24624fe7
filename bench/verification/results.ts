import { ResultStore } from "../result-store.ts";
import type { VerificationReport } from "../../src/users/cell/verification/report.ts";
import type { Drift } from "./drift.ts";
import type { RuntimeMemory } from "./memory.ts";
import type { ResourceUsage } from "./program.ts";

export interface Key {
  /**
   * `compare` is a dry run, `repair` applies the repairs, and `again` is a later dry run, which must find no
   * drift.
   */
  part: "compare" | "repair" | "again" | "backfill" | "export";
  drift: Drift;
  digests: boolean;
}

/** One run of one program. */
export interface Result extends Key, ResourceUsage {
  commit: string;
  errors: number;
  /** The number of rows in the table, or of exported records. */
  rows: number;
  coordinator: { before: RuntimeMemory; after: RuntimeMemory };
  /** Processor time of the coordinator with all its processes. */
  coordinatorCpuSeconds: number;
  /** Only for a verification. */
  counts?: VerificationReport["counts"];
  /** Only for a backfill: whether its names come from a given file. */
  isGivenList?: boolean;
  /** Some items of each kind that a person has to decide on. */
  examples?: readonly string[];
}

const keyOf = ({ part, drift, digests }: Key): string => [part, drift, digests].join("|");

/** Keeps the newest result of each key. */
export class Results extends ResultStore<Key, Result> {
  constructor(path: string) {
    super(path, keyOf, false);
  }
}
