import { operationNames, type Addressed, type Operation } from "./operations.ts";

/**
 * What becomes of a call, instead of an answer as usual. Where a fault may strike before or after the work, `carriedOut` says which: a cell
 * has to live with both, and cannot tell them apart.
 */
export type Fault =
  /** Never carried out; `fetch` rejects with the TypeError "fetch failed", as it does when a connection breaks. */
  | { kind: "lose_request" }
  /** Carried out, and then `fetch` rejects in the same way. */
  | { kind: "lose_answer" }
  /** No answer until the caller's signal aborts, or the coordinator is closed. */
  | { kind: "hang"; carriedOut: boolean }
  /** The answer of a coordinator that cannot reach one of its parts: 503, `UNAVAILABLE`. By default nothing was carried out. */
  | { kind: "unavailable"; carriedOut?: boolean }
  /** Carried out and answered, but only after so long. */
  | { kind: "delay"; ms: number };

/** Which calls a fault is for. What is left out may be anything. */
export interface CallFilter {
  operation?: Operation;
  cell?: string;
  uuid?: string;
}

/** A call as it came over `fetch`. */
export interface ObservedCall extends Addressed {
  readonly method: string;
  /** With the query, as it was sent. */
  readonly path: string;
  /** Of the answer that the caller got; null while there is none, and for ever when it never came. */
  readonly status: number | null;
}

/** What goes wrong between a cell and the coordinator, and what went over the wire. */
export interface Faults {
  /**
   * The next call that fits has this fault, and no other call. Faults that wait for the same call are used one after the other, in the order
   * in which they were given. Returns what takes it back.
   */
  next(fault: Fault, calls?: CallFilter): () => void;
  /** Every call that fits has this fault, until the returned function is called. Of several that fit, the latest counts; `next` goes first. */
  always(fault: Fault, calls?: CallFilter): () => void;
  /** Takes back every fault. Calls that hang go on hanging. */
  clear(): void;
  /** Every call so far, in the order of arrival. */
  readonly calls: readonly ObservedCall[];
  /** Called with each call as it arrives, before it is carried out. Returns what ends that. */
  observe(listener: (call: ObservedCall) => void): () => void;
}

interface Rule {
  fault: Fault;
  filter: CallFilter;
}

/** The faults that are waiting, and the calls that have come. */
export class FaultRegistry implements Faults {
  readonly #once = new Set<Rule>();
  readonly #always = new Set<Rule>();
  readonly #listeners = new Set<(call: ObservedCall) => void>();
  readonly #calls: ObservedCall[] = [];

  get calls(): readonly ObservedCall[] {
    return this.#calls;
  }

  next(fault: Fault, calls: CallFilter = {}): () => void {
    return addRule(this.#once, fault, calls);
  }

  always(fault: Fault, calls: CallFilter = {}): () => void {
    return addRule(this.#always, fault, calls);
  }

  clear(): void {
    this.#once.clear();
    this.#always.clear();
  }

  observe(listener: (call: ObservedCall) => void): () => void {
    // Its own function: the same one may listen twice.
    const listen = (call: ObservedCall): void => listener(call);
    this.#listeners.add(listen);
    return () => void this.#listeners.delete(listen);
  }

  /** Writes down a call that has arrived. */
  record(call: ObservedCall): void {
    this.#calls.push(call);
    for (const listen of this.#listeners) listen(call);
  }

  /** The fault that a call has, if any. One that was for one call is used up. */
  take(call: Addressed): Fault | undefined {
    const once = [...this.#once].find(({ filter }) => fits(filter, call));
    if (once !== undefined) this.#once.delete(once);
    return (once ?? [...this.#always].findLast(({ filter }) => fits(filter, call)))?.fault;
  }
}

function addRule(rules: Set<Rule>, fault: Fault, filter: CallFilter): () => void {
  check(fault, filter);
  const rule: Rule = { fault: { ...fault }, filter: { ...filter } };
  rules.add(rule);
  return () => void rules.delete(rule);
}

const FAULTS = [
  "lose_request",
  "lose_answer",
  "hang",
  "unavailable",
  "delay",
] as const satisfies Fault["kind"][];

/** A fault that can never strike would make a test pass that shows nothing. */
function check(fault: Fault, { operation }: CallFilter): void {
  if (!FAULTS.includes(fault.kind))
    throw new TypeError(`there is no fault \`${fault.kind}\`: ${FAULTS.join(", ")}`);
  if (fault.kind === "delay" && !(fault.ms >= 0 && Number.isFinite(fault.ms)))
    throw new TypeError("`ms` of a delay must be a number from 0");
  if (operation !== undefined && !operationNames.includes(operation))
    throw new TypeError(`there is no operation \`${operation}\`: ${operationNames.join(", ")}`);
}

const fits = ({ operation, cell, uuid }: CallFilter, call: Addressed): boolean =>
  (operation ?? call.operation) === call.operation &&
  (cell ?? call.cell) === call.cell &&
  (uuid?.toLowerCase() ?? call.uuid) === call.uuid;
