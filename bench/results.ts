import { ResultStore } from "./result-store.ts";
import type { Part } from "./options.ts";
import type { PeerName } from "./peers.ts";

/** One measurement of one peer. Fields that do not apply are absent. */
export interface Result {
  /** The measured code. */
  commit: string;
  part: Part;
  peer: PeerName;
  /** The measured work, such as `1 claim`, `hits` or `begins refused`. */
  what: string;
  clients: number;
  round: number;
  turns: number;
  errors: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of the peer with all its processes. */
  cpuMs: number;
  /** Only for open loops: the latency that each share of the calls stayed within, in ascending order. */
  quantiles?: readonly (readonly [share: number, ms: number])[];
  /** The number of `fsync` and `fdatasync` calls, if they were counted. */
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
