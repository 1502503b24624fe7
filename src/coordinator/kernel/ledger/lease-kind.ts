import type { BeginRequest, Decision, GrantedPrepare, HeldKey, Prepare } from "../messages.ts";
import { refused, type Refusal, type Result } from "../refusal.ts";
import type { LeaseRow } from "./lease-table.ts";

/** Leases that hold something else than names. One is decided only by its capability. */
export interface LeaseKind {
  /** What a begin of such a lease asks for. Undefined: it asks for names. */
  of(request: BeginRequest): KindBegin | undefined;
  /** Whether a hold of such a lease is in the way of a name. */
  holds(key: HeldKey): boolean;
  /** The number of such leases that are granted. */
  countOpen(): number;
  /** What the decision of such a lease tells shards besides its outcome. */
  told(stored: string): Partial<Decision>;
  /** Refuses a decision of such a lease by a call that decides leases of names, or the other way round. */
  readonly decidedElsewhere: Result<never>;
}

/** A begin that asks all shards for something else than names. */
export interface KindBegin {
  /** What the lease's row stores of it. */
  readonly stored: string;
  /** The cell that asks for it, and how many such begins of it may run. */
  readonly asker: string;
  readonly mostAtOnce: number;
  tooMany(): Refusal;
  /** Another ledger has checked the caller's key. */
  readonly isForeign: boolean;
  prepareOn(shard: number): Partial<Prepare>;
  /** What shards are told of an attempt that is released. */
  readonly released: Partial<Decision>;
  refuseGrant(answers: KindAnswers): Refusal | undefined;
  /** Runs in the transaction that grants the lease. */
  granted(request: BeginRequest, row: LeaseRow, answers: KindAnswers): void;
}

/** What the shards have granted. */
export type KindAnswers = readonly (GrantedPrepare & { shard: number })[];

export const onlyNames: LeaseKind = {
  of: () => undefined,
  holds: () => false,
  countOpen: () => 0,
  told: () => ({}),
  decidedElsewhere: refused("FAILED_PRECONDITION", "the lease holds no names, so it is not decided this way"),
};
