import type { Result } from "./refusal.ts";
import type { Envelope, Told } from "./messages.ts";

/**
 * What an object checks before it carries out a message, and again before it answers. Every level checks the
 * version of the message (M5).
 *
 * - `unplaced`: also that the object has all that the sender has seen of it (H4). The placement may differ.
 * - `always`: also the placement (P1). An object that has gone back in time answers it, too.
 * - `peer`: also that the object has all that the sender has seen of it.
 * - `call`: as `peer`, and before that the key of the cell that calls (A1).
 * - `read`: as `peer`, and once more when the rows that were read are durable. Methods of a ledger wait for
 *   that themselves, whatever their level is.
 * - `whole`: as `read`, and that the shard has exactly the names that it serves (G8).
 */
export type Level = "unplaced" | "always" | "peer" | "call" | "read" | "whole";

/** A method of an object, as its list declares it. */
export interface Method<Message extends Envelope, Value> extends Checks<Message> {
  readonly level: Level;
  /** Whether its answers also tell how far the object has got in its history (H2). */
  readonly tells: boolean;
  /** Only for the types of `Calls`. */
  readonly types?: { message: Message; value: Value };
}

/** What else the checks of a method need to know. */
interface Checks<Message extends Envelope> {
  /** Names the sender of a message, for the log of a loss that it shows (H4). */
  sender?(message: Message): string;
  /** Whether a call of the level `call` has a key of the ledger's own cell. Undefined: always. */
  isOfOwnCell?(message: Message): boolean;
  /**
   * The method makes the checks of its level itself, because a message may have another placement than the
   * object.
   */
  readonly admits?: true;
}

/** The methods of an object, by name. What an instance has besides them cannot be called. */
export type MethodList = Readonly<Record<string, Method<Envelope, unknown>>>;

/** Declares a method that the Worker or the cron calls. */
export const method = <Message extends Envelope, Value>(
  level: Level,
  checks: Checks<Message> = {},
): Method<Message, Value> => ({ level, tells: true, ...checks });

/**
 * Declares a method that only other objects call. Their messages carry points themselves, if they compare
 * any (H5).
 */
export const peerMethod = <Message extends Envelope, Value>(
  level: Level,
  checks: Checks<Message> = {},
): Method<Message, Value> => ({ level, tells: false, ...checks });

/** The calls of an object, one for each method in its list. */
export type Calls<List extends MethodList> = {
  [Name in keyof List]: List[Name] extends Method<infer Message, infer Value>
    ? (message: Message) => Promise<Result<Value> & Told>
    : never;
};

/** What carries out the methods of a list, after their checks. */
export type Handlers<List extends MethodList> = {
  readonly [Name in keyof List]: List[Name] extends Method<infer Message, infer Value>
    ? Handler<Message, Value>
    : never;
};

/**
 * The compiler compares the parameters of methods both ways, so that a half of certain messages is a `Half`.
 */
type Handler<Message, Value> = {
  carryOut(message: Message): Result<Value> | Promise<Result<Value>>;
}["carryOut"];

/** Defines the methods of a list on a prototype. Workers RPC serves nothing that only an instance has. */
export function defineMethods<T extends object>(
  prototype: T,
  methods: MethodList,
  call: (self: T, name: string, message: Envelope, level: Level) => Promise<unknown>,
): void {
  for (const [name, { level }] of Object.entries(methods))
    Object.defineProperty(prototype, name, {
      value: function (this: T, message: Envelope) {
        return call(this, name, message, level);
      },
    });
}
