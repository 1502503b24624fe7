import type { Envelope } from "./messages.ts";

/** The most spans that one message names. Further calls that share it don't see it in their traces. */
export const MAX_TRACES = 16;

/** The spans of one call, or undefined if it is not traced. */
export type Traces = Envelope["traces"];

/** Makes the field of a message that several calls share (N1). Each of them keeps its own trace. */
export function sharedTraces(calls: Iterable<Traces>): Pick<Envelope, "traces"> {
  let shared: Set<string> | undefined;
  for (const traces of calls) {
    if (traces === undefined) continue;
    shared ??= new Set();
    for (const trace of traces) if (shared.size < MAX_TRACES) shared.add(trace);
  }
  return shared === undefined ? {} : { traces: [...shared] };
}
