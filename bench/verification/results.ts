import { ResultStore } from "../result-store.ts";
import type { VerificationReport } from "../../src/cell/verification/report.ts";
import type { Drift } from "./drift.ts";
import type { RuntimeMemory } from "./memory.ts";
import type { ResourceUsage } from "./program.ts";

export interface Key {
  /** `compare`: a dry run. `mend`: an applied one. `again`: a dry one after it, which must find nothing. */
  part: "compare" | "repair" | "again" | "backfill" | "export";
  drift: Drift;
  digests: boolean;
}

/** One run of one program. */
export interface Result extends Key, ResourceUsage {
  commit: string;
  errors: number;
  /** In the table, or records that were exported. */
  rows: number;
  coordinator: { before: RuntimeMemory; after: RuntimeMemory };
  /** Of the coordinator with all its processes. */
  coordinatorCpuSeconds: number;
  /** Of a verification. */
  counts?: VerificationReport["counts"];
  /** Of a backfill with names of a list that was given. */
  isGivenList?: boolean;
  /** Items that a person has to decide on, some of each kind. */
  examples?: readonly string[];
}

const keyOf = ({ part, drift, digests }: Key): string => [part, drift, digests].join("|");

/** The newest of each kind: a run replaces what it was. */
export class Results extends ResultStore<Key, Result> {
  constructor(path: string) {
    super(path, keyOf, false);
  }
}
