import { errorCodes, type Result } from "../kernel/refusal.ts";
import type { Envelope, Told } from "../kernel/messages.ts";
import type { Level } from "../kernel/method.ts";
import type { Attributes, SpanKind } from "../tracing/exporter.ts";
import type { Tracer, Work } from "../tracing/tracer.ts";

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

/** The lists of messages whose lengths a span has. They say how many calls share a message. */
const COUNTED = ["ops", "prepares", "decisions", "keys", "questions"] as const;

/**
 * Records a span of each call in every trace of its message, for the object that sends it (`client`) or the
 * one that serves it. The message passes the new spans on.
 */
export class CallTracing implements Interceptor {
  readonly #tracer: Tracer;
  readonly #kind: SpanKind;
  readonly #works = new WeakMap<Call, Work>();

  constructor(tracer: Tracer, kind: SpanKind) {
    this.#tracer = tracer;
    this.#kind = kind;
  }

  before(call: Call, message: Envelope): Envelope {
    const { traces } = message;
    if (traces === undefined) return message;
    const attributes = { "leasehold.part": call.part, ...countsOf(message) };
    const work = this.#tracer.begin(traces, `${call.kind}.${call.method}`, this.#kind, attributes);
    this.#works.set(call, work);
    return { ...message, traces: work.traces };
  }

  after(call: Call, answer: Answer | undefined): void {
    const isError = answer === undefined || (!answer.ok && errorCodes[answer.refusal.code].status >= 500);
    this.#works.get(call)?.end(attributesOf(answer), isError);
  }
}

function attributesOf(answer: Answer | undefined): Attributes {
  if (answer === undefined) return { "leasehold.code": "none" };
  if (answer.ok) return { "leasehold.code": "OK" };
  const { code, reason } = answer.refusal;
  return { "leasehold.code": code, ...(reason === undefined ? {} : { "leasehold.reason": reason }) };
}

function countsOf(message: Envelope): Attributes {
  const counts: Record<string, number> = {};
  for (const list of COUNTED) {
    const value = (message as unknown as Record<string, unknown>)[list];
    if (Array.isArray(value)) counts[`leasehold.${list}`] = value.length;
  }
  return counts;
}
