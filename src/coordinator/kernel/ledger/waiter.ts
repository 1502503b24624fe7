import type { BeginRequest, BucketKey } from "../messages.ts";

/** A name that is in the way of a begin. */
export interface Awaited {
  shard: number;
  key: BucketKey;
}

/** How long one begin may wait, all its waits together. */
export interface WaitTime {
  readonly isOver: boolean;
  /** Resolves when the time is over, or when the begin must not wait any more. */
  readonly over: Promise<void>;
  end(): void;
}

/** A begin that may wait. */
export interface WaitingBegin {
  readonly request: BeginRequest;
  /** The stored size of its payload, which stays in memory meanwhile. */
  readonly bytes: number;
  /** Undefined: it may not wait. */
  readonly waitTime: WaitTime | undefined;
}

/**
 * `offered`: the name got free. `ended`: the time was over, or the begin ended. `refused`: the cell or the
 * queue had no room for another begin that waits.
 */
export type WaitResult = "offered" | "ended" | "refused";

/** What a begin does when a granted lease is in its way. */
export interface Waiter {
  timeFor(request: BeginRequest): WaitTime | undefined;
  /**
   * Waits until a leased name is free and offered to the begin. It waits for one name at a time and holds
   * nothing meanwhile, so begins that wait never wait for each other in a circle. Undefined: it may not wait.
   */
  wait(begin: WaitingBegin, awaited: Awaited): Promise<WaitResult | undefined>;
  /** Gives up an offer that was not taken. */
  leave(request: BeginRequest, offer: Awaited): void;
}

/** Without a capability, the begin is refused. */
export const neverWaits: Waiter = {
  timeFor: () => undefined,
  wait: () => Promise.resolve(undefined),
  leave: () => {},
};
