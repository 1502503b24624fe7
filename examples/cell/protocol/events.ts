import type { Bucket, Conflict } from "leasehold/client";
import type { CrashPoint } from "./action.ts";

/** One name in a begin. */
export interface AskedName {
  change: "create" | "destroy" | "replace";
  type: Bucket["type"];
  value: string;
}

export interface Refusal {
  type: Bucket["type"];
  value: string;
  kind: Conflict["kind"];
}

/** How a call ended: with success, with a refusal, or without an answer. */
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
  /** The local transaction ended, with or without a COMMIT. */
  | { kind: "saved" | "undone"; uuid: string }
  /** The result of fencing a lease before its rollback. */
  | { kind: "fence"; uuid: string; found: "fenced" | "saved" | "in_flight" }
  | { kind: "killed"; uuid: string; at: CrashPoint }
  | { kind: "started" }
  | { kind: "notice"; text: string };

export type ProtocolEvent = EventDetails & { atMs: number };
