import type { Bucket, Conflict } from "leasehold/client";
import type { CrashPoint } from "./action.ts";

/** What a begin asks for. */
export interface AskedName {
  change: "claim" | "give up" | "respell";
  type: Bucket["type"];
  value: string;
}

export interface Refusal {
  type: Bucket["type"];
  value: string;
  kind: Conflict["kind"];
}

/** How a call ended: as asked, with a no, or without an answer. */
export type Outcome = "ok" | "refused" | "unknown";

export type EventDetails =
  | {
      kind: "begin";
      uuid: string;
      what: string;
      names: AskedName[];
      outcome: Outcome;
      refusals: Refusal[];
      durationMs: number;
    }
  | {
      kind: "commit" | "rollback";
      uuid: string;
      outcome: Outcome;
      isReconciliation: boolean;
      durationMs: number;
    }
  /** The local transaction: its COMMIT, or its end without one. */
  | { kind: "saved" | "undone"; uuid: string }
  /** What was written in the place of a lease that is given up, or was found there. */
  | { kind: "fence"; uuid: string; found: "fenced" | "saved" | "in_flight" }
  | { kind: "killed"; uuid: string; at: CrashPoint }
  | { kind: "started" }
  | { kind: "notice"; text: string };

export type ProtocolEvent = EventDetails & { atMs: number };
