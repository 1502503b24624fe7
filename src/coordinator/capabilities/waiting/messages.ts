import type { WaitResult } from "../../kernel/ledger/waiter.ts";
import type { BucketKey, Envelope } from "../../kernel/messages.ts";
import type { Durations } from "../../kernel/metrics/histogram.ts";

/** A begin in the queue of a name (B11). */
export interface Waiting {
  cell: string;
  lease: string;
}

/**
 * Waits in the queue of a name. The first message takes the last place, and later ones keep it. The shard
 * answers when it offers the name to the begin, or after `exchangeTimeoutMs`.
 */
export interface WaitForName extends Envelope, Waiting {
  key: BucketKey;
}

/** `full`: the queue has no room, and the begin has no place in it. */
export type WaitState = "offered" | "waiting" | "full";

export interface WaitAnswer {
  state: WaitState;
}

/** Gives up a place, or an offer that was not taken. */
export interface LeaveQueue extends Envelope, Waiting {
  key: BucketKey;
}

declare module "../../kernel/messages.ts" {
  interface BeginRequest {
    /** How long the begin may wait for leased names (B11). Absent: not at all. */
    waitMs?: number;
  }
}

declare module "../../kernel/metrics/messages.ts" {
  interface LedgerMetrics {
    /** The running begins that wait for a leased name (B11). */
    waitingBegins: number;
    /** How begins waited for a name ended, each time that they did. */
    waits: { result: WaitResult; count: number }[];
    /** From the first message about a name to the offer, or to the end of the wait. */
    waitDurations: Durations;
  }
  interface ShardMetrics {
    /** Messages of begins that wait for a name (B11). */
    waits: number;
    /** The begins that wait for names of this shard. */
    waitingBegins: number;
    /** The offers that nobody took within `offerMs`. */
    missedOffers: number;
    /** The messages that found no room in a queue. */
    refusedWaits: number;
  }
}
