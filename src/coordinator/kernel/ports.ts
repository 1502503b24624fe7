/**
 * The ports of the protocol: everything that it needs from outside. Each port has two implementations: one
 * for a Durable Object, and one in Node for tests and simulation.
 */

import type { Refusal } from "./refusal.ts";
import type { WritePoint } from "./write-points.ts";

export type SqlValue = string | number | null;

/** Excludes promises: an `await` inside a transaction would commit it half done. */
export type Synchronous<T> = T extends PromiseLike<unknown> ? never : T;

/** The SQLite database of one object. Reads and writes are synchronous. */
export interface Sql {
  /** Runs one statement and returns its rows. */
  all<Row>(statement: string, ...bindings: SqlValue[]): Row[];
  /**
   * Runs `work` in one transaction. If `work` throws, the transaction is rolled back and the error is
   * rethrown. `points` names the writes, so that tests can inject faults there.
   */
  transaction<T>(points: readonly WritePoint[], work: () => Synchronous<T>): T;
  /** Resolves when everything written so far is durable. Rejects if that is uncertain. */
  flush(): Promise<void>;
  /** The size of the database in bytes, without free pages. */
  sizeBytes(): number;
}

export interface Clock {
  /** The time in milliseconds since 1970. Used for ages and backoff only, never for order or safety (M4). */
  now(): number;
  /** Calls `then` after `delayMs`. The returned function cancels the call. */
  after(delayMs: number, then: () => void): () => void;
  /**
   * Resolves when all events that have already arrived are handled, so that they can share a transaction
   * (N1).
   */
  turn(): Promise<void>;
}

export interface Randomness {
  /** Returns a new random UUID in lower case. */
  uuid(): string;
  /** Returns a number in [0, 1). For jitter only. */
  fraction(): number;
}

/** The alarm of an object. It has at most one; setting it replaces the previous time. */
export interface Alarm {
  /** When the alarm will ring, in milliseconds since 1970; null if none is set. */
  get(): Promise<number | null>;
  set(atMs: number): void;
}

/** Ends this instance, which must send nothing afterwards. Only what is durable counts (B5). */
type Halt = (reason: unknown) => void;

/** Writes one line of the structured log. It must never contain a name, a key or a token. */
export type Log = (event: string, fields: Record<string, string | number | boolean>) => void;

/** The ports that every object gets. */
export interface Ports {
  sql: Sql;
  clock: Clock;
  randomness: Randomness;
  alarm: Alarm;
  halt: Halt;
  log: Log;
  /** The newest format that the object's code speaks. Only tests set it. */
  speaks?: number;
}

/**
 * The outcome of a call to a peer (M2). `unknown` means that the call may or may not have been carried out.
 */
export type Answer<T> =
  | { kind: "ok"; value: T }
  | { kind: "refused"; refusal: Refusal }
  /**
   * `timedOut`: the answer did not arrive in time. Without it, the call failed. `cause` is for logs and
   * tests.
   */
  | { kind: "unknown"; cause: string; timedOut?: true };
