import type { HookLists } from "../half.ts";
import type { BucketKey, PingShard, ShardWork, Told } from "../messages.ts";
import type { ShardMetrics } from "../metrics/messages.ts";
import type { SqlValue } from "../ports.ts";
import type { HoldRow } from "./rows.ts";

/** Claims that get another cell. */
export interface MovingClaims {
  /** The condition on their rows in SQL, and its values. */
  readonly where: string;
  readonly values: readonly SqlValue[];
  /** The lease that moves them, and when. */
  readonly lease: string;
  readonly atMs: number | null;
}

/** The rows about ended claims up to this one were read. */
export type KeptCursor = readonly [segment: number, type: number, canonical: string, epoch: number];

/** What capabilities do in a shard besides their methods. */
export interface ShardHooks {
  /** Adds fields to all answers that tell more than their content. */
  tell?(): Partial<Told>;
  /** Adds fields to what the cron is told. */
  pinged?(message: PingShard): Partial<ShardWork>;
  metrics?(): Partial<ShardMetrics>;
  /** A hold of a cell is made or ends. Null: the claims of many cells come or go without holds. */
  touched?(cell: string | null): void;
  /** A hold on the name is made or ends, in the same transaction. */
  holdChanged?(key: BucketKey, isHeld: boolean): void;
  /** Committed destroys and replaces are about to end claims, in the same transaction. */
  claimsEnding?(holds: readonly HoldRow[], nowMs: number): void;
  /** Claims are about to get another cell, in the same transaction. */
  claimsMoving?(claims: MovingClaims, nowMs: number): void;
  /** What ended before now may be missing: something was lost, or names have come from another shard. */
  incomplete?(nowMs: number): void;
  /**
   * Deletes what the shard keeps of names that have moved away, among the next `limit` rows. Returns where to
   * continue. Null: there are no more. At most one capability has this hook, because only that can continue.
   */
  moved?(behind: KeptCursor, limit: number, hasMoved: (key: BucketKey) => boolean): KeptCursor | null;
  /** Whether rows were changed since the last call. Then the transaction gets a row of the log. */
  takeChanged?(): boolean;
  alarm?: ShardAlarm;
}

/** Work that the alarm of a shard does. */
export interface ShardAlarm {
  /** Names are unavailable until it is done, so it does not wait for the next sweep. */
  readonly isUrgent?: true;
  /** When it is due. Infinity: there is none. */
  dueMs(nowMs: number): number;
  run(): Promise<void>;
}

export const noShardHooks = (): HookLists<ShardHooks> => ({
  tell: [],
  pinged: [],
  metrics: [],
  touched: [],
  holdChanged: [],
  claimsEnding: [],
  claimsMoving: [],
  incomplete: [],
  moved: [],
  takeChanged: [],
  alarm: [],
});
