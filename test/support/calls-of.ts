import type { Envelope } from "../../src/coordinator/kernel/messages.ts";
import { defineMethods, type Calls, type MethodList } from "../../src/coordinator/kernel/method.ts";

type Send = (method: string, message: Envelope) => Promise<unknown>;

/** Made once for each list, because the simulator makes millions of calls. */
const prototypes = new Map<MethodList, object>();

function prototypeOf(methods: MethodList): object {
  const known = prototypes.get(methods);
  if (known !== undefined) return known;
  const prototype = {};
  defineMethods(prototype, methods, (self, name, message) => (self as { send: Send }).send(name, message));
  prototypes.set(methods, prototype);
  return prototype;
}

/** The calls of an object, each of which is sent by its name. */
export const callsOf = <List extends MethodList>(methods: List, send: Send): Calls<List> =>
  Object.assign(Object.create(prototypeOf(methods)) as object, { send }) as unknown as Calls<List>;
