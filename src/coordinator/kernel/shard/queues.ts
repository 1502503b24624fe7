import type { BucketKey, Holder, Prepare } from "../messages.ts";

/** A begin that waits for a name. */
type Waiting = Pick<Holder, "cell" | "lease">;

/** The order in which begins get names that they wait for. */
export interface Queues {
  /** Returns the begin for which a free name is kept, if it is another one than the given begin. */
  firstBefore(key: BucketKey, begin: Waiting): Waiting | undefined;
  /** Returns whether a free name is kept for a begin. */
  isAwaited(key: BucketKey): boolean;
  /** Sends away the begins that wait for names which other shards have now. */
  sendAway(hasMoved: (key: BucketKey) => boolean): void;
  /** Called in the transaction that carries out a prepare. */
  prepared(request: Prepare, isGranted: boolean): void;
  /** Called when a transaction is durable. */
  committed(): void;
}

/** Without a capability, a free name goes to the next begin that asks for it. */
export const noQueues: Queues = {
  firstBefore: () => undefined,
  isAwaited: () => false,
  sendAway: () => {},
  prepared: () => {},
  committed: () => {},
};
