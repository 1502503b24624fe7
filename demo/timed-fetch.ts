import type { Fetch } from "../src/users/client/index.ts";

/** The kinds of request, in the order of the report. */
export const requestKinds = [
  "begin, granted",
  "begin, replayed",
  "begin, refused",
  "commit",
  "rollback",
  "lookup of up to 100 names",
  "read of one lease",
  "page of leases",
  "page of records",
  "fault (5xx)",
  "other",
] as const;
export type RequestKind = (typeof requestKinds)[number];

/** The durations of requests by kind, from sending the request to the last byte of its answer. */
export class Timings {
  readonly #ms = new Map<RequestKind, number[]>();
  count = 0;

  add(kind: RequestKind, ms: number): void {
    this.count += 1;
    const all = this.#ms.get(kind);
    if (all === undefined) this.#ms.set(kind, [ms]);
    else all.push(ms);
  }

  /** Returns the durations of one kind in ascending order. */
  of(kind: RequestKind): number[] {
    return (this.#ms.get(kind) ?? []).toSorted((a, b) => a - b);
  }
}

/** Returns the smallest value in `sorted` that is not exceeded by at least this share of the values. */
export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;

export function timedFetch(timings: Timings, fetch: Fetch): Fetch {
  return async (url, init) => {
    const started = performance.now();
    const response = await fetch(url, init);
    const text = await response.text();
    timings.add(kindOf(init.method, new URL(url).pathname, response.status), performance.now() - started);
    return { status: response.status, headers: response.headers, text: async () => text };
  };
}

function kindOf(method: string, path: string, status: number): RequestKind {
  if (status >= 500) return "fault (5xx)";
  if (path.endsWith("/records/lookup")) return "lookup of up to 100 names";
  if (method === "PUT") {
    if (status === 201) return "begin, granted";
    return status === 200 ? "begin, replayed" : "begin, refused";
  }
  if (path.endsWith("/commit")) return "commit";
  if (path.endsWith("/rollback")) return "rollback";
  if (path.endsWith("/leases")) return "page of leases";
  if (path.endsWith("/records")) return "page of records";
  return method === "GET" && path.includes("/leases/") ? "read of one lease" : "other";
}
