import type { Result } from "../kernel/refusal.ts";
import type { Envelope, Told } from "../kernel/messages.ts";
import type { Level } from "../kernel/method.ts";

/** One call of an object. */
export interface Call<Name extends string = string> {
  readonly kind: "ledger" | "shard" | "directory";
  /** The name of the object: `cell-7`, `shard-3` or `directory`. */
  readonly part: string;
  readonly method: Name;
  readonly level: Level;
  /** As the caller made it. */
  readonly message: Envelope;
}

export type Answer = Result<unknown> & Told;

/** An object, or a stub of it. */
export type Target<Name extends string = string> = Readonly<
  Record<Name, (message: Envelope) => Promise<Answer>>
>;

/** What is done before and after each call. */
export interface Interceptor {
  /** Returns the message to send instead of `message`. */
  before?(call: Call, message: Envelope): Envelope;
  /**
   * @param answer undefined if the call failed
   * @param sent the message as it was sent
   */
  after?(call: Call, answer: Answer | undefined, sent: Envelope): void;
}

/** Makes a call. The interceptors run in their order before it, and in reverse order after it. */
export async function intercept<Name extends string>(
  interceptors: readonly Interceptor[],
  call: Call<Name>,
  target: Target<Name>,
): Promise<Answer> {
  if (interceptors.length === 0) return target[call.method](call.message);
  let sent = call.message;
  for (const each of interceptors) sent = each.before?.(call, sent) ?? sent;
  let answer: Answer | undefined;
  try {
    // On the stub itself: a stub takes `.call` for the name of a remote method.
    answer = await target[call.method](sent);
    return answer;
  } finally {
    for (const each of interceptors.toReversed()) each.after?.(call, answer, sent);
  }
}
