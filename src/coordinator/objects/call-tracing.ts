import type { Envelope } from "../kernel/messages.ts";
import { errorCodes } from "../kernel/refusal.ts";
import type { Answer, Call, Interceptor } from "./interceptor.ts";
import type { Attributes, SpanKind } from "../tracing/span.ts";
import type { Tracer, Work } from "../tracing/tracer.ts";

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
