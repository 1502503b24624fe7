/** What the protocol needs from the world. Each port has two implementations: a Durable Object's and a Node one for tests and simulation. */

import type { Refusal } from "./refusal.ts";
import type { WritePoint } from "./write-points.ts";

export type SqlValue = string | number | null;

/** A promise does not fit: an `await` inside a transaction would commit it half done. */
export type Synchronous<T> = T extends PromiseLike<unknown> ? never : T;

/** One object's own SQLite database. Reads and writes are synchronous. */
export interface Sql {
  /** Runs one statement and returns its rows. */
  all<Row>(statement: string, ...bindings: SqlValue[]): Row[];
  /** Runs `work` in one transaction; a throw rolls it back and is thrown on. `points` says what it writes, for faults to be put there. */
  transaction<T>(points: readonly WritePoint[], work: () => Synchronous<T>): T;
  /** Resolves when everything written so far is durable; rejects when that is not known. */
  flush(): Promise<void>;
}

export interface Clock {
  /** Milliseconds since 1970. For ages and backoff only, never for order or safety (rule M4). */
  now(): number;
  /** Calls `then` after `delayMs`; the returned function cancels. */
  after(delayMs: number, then: () => void): () => void;
  /** Resolves once the events that have already arrived were handled, so that they can share a transaction (rule N1). */
  turn(): Promise<void>;
}

export interface Randomness {
  /** A new random UUID in lower case. */
  uuid(): string;
  /** In [0, 1). For jitter only. */
  fraction(): number;
}

/** The one wake-up call an object has. Only the latest time counts. */
export interface Alarm {
  /** When it will ring; null when none is set. */
  get(): Promise<number | null>;
  set(atMs: number): void;
}

/** Ends this instance. Nothing may be sent after it; what is durable decides (rule B5). */
export type Halt = (reason: unknown) => void;

/** One line of structured log. Never carries a name, a key or a token. */
type Log = (event: string, fields: Record<string, string | number | boolean>) => void;

/** What every object is given. */
export interface Ports {
  sql: Sql;
  clock: Clock;
  randomness: Randomness;
  alarm: Alarm;
  halt: Halt;
  log: Log;
}

/** What is known of a peer's answer: rule M2. `unknown` means it may or may not have happened. */
export type Answer<T> =
  | { kind: "ok"; value: T }
  | { kind: "refused"; refusal: Refusal }
  /** `timedOut`: nothing was heard in time; otherwise it is known to have failed, though not when. */
  | { kind: "unknown"; cause: string; timedOut?: true };
