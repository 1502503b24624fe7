import type { BucketKey, Decision } from "../messages.ts";
import type { Change } from "../placement-guard.ts";
import type { Sql } from "../ports.ts";
import { refused, type Refusal } from "../refusal.ts";

/** Which names are here, if names move between shards. */
export interface Residence {
  /** Whether this shard decides about the name. */
  serves(key: BucketKey): boolean;
  /** Whether the rows here are exactly the names that this shard serves (G8). */
  readonly isWhole: boolean;
  /** Whether names are moving, or may begin to move before a lease that begins now has ended. */
  readonly isChanging: boolean;
  /** Whether other shards have names left that this shard will serve. */
  readonly awaitsNames: boolean;
  /** The shards that get names from this one since its placement has changed. */
  readonly newShards: readonly number[];
  /** Whether this shard has all holds that a decision may end. Others may still hand over some. */
  hasAllOf(decision: Decision): boolean;
  /** Why a name that is not here is refused. The refusal can be retried. */
  notHere(): Refusal;
  /** Asks the shards that have names left to hand them over. */
  askForNames(): void;
  /** Hands over the names that this shard does not serve any more. */
  handOver(): void;
  /** Must be called in the transaction that accepts a loss. */
  lossAccepted(): void;
  /** Stores a placement that the directory has confirmed. */
  readonly changePlacement: Change;
}

/** Without a capability, every name is here, and the placement never changes. */
export const allHere = (sql: Pick<Sql, "transaction">): Residence => ({
  serves: () => true,
  isWhole: true,
  isChanging: false,
  awaitsNames: false,
  newShards: [],
  hasAllOf: () => true,
  notHere: () => refused("UNAVAILABLE", "the name is on another shard; retry the call").refusal,
  askForNames: () => {},
  handOver: () => {},
  lossAccepted: () => {},
  changePlacement: (_, adopt) => {
    sql.transaction(["confirm_placement"], adopt);
  },
});
