import { routes, type RouteId } from "../../coordinator/api/contract.ts";
import { findRoute } from "../../coordinator/api/route-table.ts";

/**
 * The kind of a call. `list` reads a cell's leases. `records` reads a cell's names, in pages, as digests or
 * as an export. `other` is everything else, such as the calls of operators.
 */
export type Operation = (typeof operationNames)[number];

const operationNames = ["begin", "commit", "rollback", "get", "list", "lookup", "records", "other"] as const;

/** What the method and path of a call tell about it. */
interface Addressed {
  operation: Operation;
  /** The cell in the path, if there is one. */
  cell: string | null;
  /** The lease in the path, in lower case. Null if there is none, such as for a begin without an id. */
  uuid: string | null;
}

const operations: Partial<Record<RouteId, Operation>> = {
  beginLease: "begin",
  beginLeaseWithNewId: "begin",
  commitLease: "commit",
  rollbackLease: "rollback",
  getLease: "get",
  listLeases: "list",
  getRecord: "lookup",
  lookupRecords: "lookup",
  listRecords: "records",
  exportRecords: "records",
  digestRecords: "records",
};

export function addressOf(method: string, url: string): Addressed {
  const route = findRoute(method, new URL(url).pathname);
  if (route === undefined) return { operation: "other", cell: null, uuid: null };
  const { id, parameters } = route;
  return {
    operation: operations[id] ?? "other",
    cell: parameters.get("cell") ?? null,
    uuid: routes[id].group === "leases" ? (parameters.get("uuid")?.toLowerCase() ?? null) : null,
  };
}

/**
 * What happens to a call instead of the usual answer. Some faults can strike before or after the coordinator
 * has done its work: `carriedOut` says which. A cell cannot tell the two apart.
 */
export type Fault =
  /**
   * The coordinator never gets the call. `fetch` rejects with the TypeError "fetch failed", as for a broken
   * connection.
   */
  | { kind: "lose_request" }
  /** The coordinator carries the call out. Then `fetch` rejects in the same way. */
  | { kind: "lose_answer" }
  /** There is no answer until the caller's signal aborts, or the coordinator is closed. */
  | { kind: "hang"; carriedOut: boolean }
  /**
   * The coordinator answers 503 (`UNAVAILABLE`), as if it could not reach a ledger. By default it does
   * nothing.
   */
  | { kind: "unavailable"; carriedOut?: boolean }
  /** The coordinator gets the call `ms` milliseconds later, and answers it. */
  | { kind: "delay"; ms: number };

/** The calls that a fault applies to. An omitted field matches every call. */
export interface CallFilter {
  operation?: Operation;
  cell?: string;
  uuid?: string;
}

/** A call as it came through `fetch`. */
export interface ObservedCall extends Addressed {
  readonly method: string;
  /** With the query, as it was sent. */
  readonly path: string;
  /** The status of the answer that the caller got. Null until the caller gets one. */
  readonly status: number | null;
}

/** Faults between a cell and the coordinator, and a record of the calls. */
export interface Faults {
  /**
   * Applies a fault to the next matching call only. Several faults for the same call apply in the order in
   * which they were added. Returns a function that removes the fault.
   */
  next(fault: Fault, calls?: CallFilter): () => void;
  /**
   * Applies a fault to every matching call. The latest matching fault wins, and faults of `next` go first.
   * Returns a function that removes the fault.
   */
  always(fault: Fault, calls?: CallFilter): () => void;
  /** Removes every fault. Calls that hang still hang. */
  clear(): void;
  /** All calls so far, in the order of arrival. */
  readonly calls: readonly ObservedCall[];
  /**
   * Calls `listener` for each call as it arrives, before it is carried out. Returns a function that removes
   * the listener.
   */
  observe(listener: (call: ObservedCall) => void): () => void;
}

interface Rule {
  fault: Fault;
  filter: CallFilter;
}

/** The faults that apply to future calls, and the calls so far. */
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
    // A new function, because the same listener may be added twice.
    const listen = (call: ObservedCall): void => listener(call);
    this.#listeners.add(listen);
    return () => void this.#listeners.delete(listen);
  }

  /** Records a call that has arrived. */
  record(call: ObservedCall): void {
    this.#calls.push(call);
    for (const listen of this.#listeners) listen(call);
  }

  /** Returns the fault for a call, if any, and removes it if it was for one call only. */
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

/** Refuses faults that can never strike. A test with such a fault would pass without testing anything. */
function check(fault: Fault, { operation }: CallFilter): void {
  if (!FAULTS.includes(fault.kind))
    throw new TypeError(`\`kind\` must not be \`${fault.kind}\`; it must be one of ${FAULTS.join(", ")}`);
  if (fault.kind === "delay" && !(fault.ms >= 0 && Number.isFinite(fault.ms)))
    throw new TypeError("`ms` of a delay must be a number of milliseconds, 0 or more");
  if (operation !== undefined && !operationNames.includes(operation))
    throw new TypeError(
      `\`operation\` must not be \`${operation}\`; it must be one of ${operationNames.join(", ")}`,
    );
}

const fits = ({ operation, cell, uuid }: CallFilter, call: Addressed): boolean =>
  (operation ?? call.operation) === call.operation &&
  (cell ?? call.cell) === call.cell &&
  (uuid?.toLowerCase() ?? call.uuid) === call.uuid;
