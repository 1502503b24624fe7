import type { Envelope, Reply } from "../core/messages.ts";
import { errorCodes } from "../core/refusal.ts";
import type { Attributes, SpanKind } from "./span.ts";
import type { Tracer, Work } from "./tracer.ts";

type Method = (message: Envelope) => Promise<Reply<unknown>>;

/** The lists of messages whose lengths a span has. They say how many calls share a message. */
const COUNTED = ["ops", "prepares", "decisions", "keys", "questions"] as const;

/**
 * Returns the same object of another part, whose calls get a span in every trace of their message. The object
 * is told the new spans.
 *
 * @param part the part that is called
 */
export function callsOf<Calls extends object>(calls: Calls, part: string, tracer: Tracer | undefined): Calls {
  if (tracer === undefined) return calls;
  return new Proxy(calls, {
    get: (target, method) => (message: Envelope) => {
      // Called on the stub itself: a stub takes `.call` for the name of a remote method.
      const methods = target as Record<PropertyKey, Method>;
      const call: Method = (sent) => methods[method]?.(sent) as ReturnType<Method>;
      return traced(tracer, part, method, "client", message, call);
    },
  });
}

/**
 * Returns the same object of the core, which records what it does for messages with traces.
 *
 * @param part the name of the object
 */
export function servedBy<Core extends object>(core: Core, part: string, tracer: Tracer | undefined): Core {
  if (tracer === undefined) return core;
  return new Proxy(core, {
    get: (target, method) => {
      const value = Reflect.get(target, method, target) as unknown;
      if (typeof value !== "function") return value;
      // Other methods than those that take a message have no argument.
      return (message?: Envelope) => {
        if (message === undefined) return Reflect.apply(value, target, []) as unknown;
        const call: Method = (sent) => Reflect.apply(value, target, [sent]) as ReturnType<Method>;
        return traced(tracer, part, method, "server", message, call);
      };
    },
  });
}

function traced(
  tracer: Tracer,
  part: string,
  method: PropertyKey,
  kind: SpanKind,
  message: Envelope,
  call: Method,
): ReturnType<Method> {
  const { traces } = message;
  if (traces === undefined) return call(message);
  const attributes = { "leasehold.part": part, ...countsOf(message) };
  const work = tracer.begin(traces, `${kindOf(part)}.${String(method)}`, kind, attributes);
  return ending(work, call({ ...message, traces: work.traces }));
}

async function ending<T>(work: Work, called: Promise<Reply<T>>): Promise<Reply<T>> {
  let attributes: Attributes = { "leasehold.code": "none" };
  let isError = true;
  try {
    const reply = await called;
    attributes = attributesOf(reply);
    isError = !reply.ok && errorCodes[reply.refusal.code].status >= 500;
    return reply;
  } finally {
    work.end(attributes, isError);
  }
}

function attributesOf(reply: Reply<unknown>): Attributes {
  if (reply.ok) return { "leasehold.code": "OK" };
  const { code, reason } = reply.refusal;
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

/** `cell-7` is a ledger. */
const kindOf = (part: string): string =>
  part.startsWith("cell-") ? "ledger" : part.startsWith("shard-") ? "shard" : "directory";
