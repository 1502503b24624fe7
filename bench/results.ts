import { ResultStore } from "./result-store.ts";
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

const keyOf = ({ part, peer, what, clients, round }: Key): string =>
  [part, peer, what, clients, round].join("|");

export class Results extends ResultStore<Key, Result> {
  constructor(path: string, fresh: boolean) {
    super(path, keyOf, fresh);
  }
}
