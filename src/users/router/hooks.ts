import type { RouteLayer } from "./lookups/routes.ts";
import type { ProxyFailure } from "./proxy/failure.ts";

/**
 * Callbacks for telemetry. Errors that a hook throws are ignored: a hook must not change an answer. No event
 * has a name in it. `RouterMetrics` has a hook for each.
 */
export interface RouterHooks {
  /** Called once for every answer. */
  onRoute?: (event: RouteEvent) => void;
  /** Called after every report that was read. */
  onReport?: (event: ReportEvent) => void;
  /** Called for every answer that was older than one shown before, and thrown away (Q6). */
  onBackwards?: (event: { shard: number }) => void;
  /** Called when a caller wants a position that the shard has not reached, so no client can have seen it. */
  onPositionRefused?: (event: { shard: number }) => void;
  /** Called when a cell has answered that it does not have a name. */
  onMisdirected?: (event: { shard: number }) => void;
  /** Called when a rule sends a request to its default cell. */
  onFallback?: (event: { rule: string }) => void;
  /** Called when a request of the router failed. The router tries again by itself. */
  onFailure?: (event: FailureEvent) => void;
  /** Called when an address is refused: it must be an https origin, or http on this machine. */
  onUnusableAddress?: (event: { cell: string }) => void;
}

export interface RouteEvent {
  /** `stale`: found, but older than the bound, during an outage. */
  result: "found" | "stale" | "none" | "invalid" | "unavailable";
  /** `none` when no layer had an answer. */
  layer: RouteLayer | "none";
  /** How old the answer is at most, in milliseconds. 0 when no layer had one. */
  ageMs: number;
}

export interface ReportEvent {
  shard: number;
  /** How old the report before this one had become, in milliseconds. 0 for the first one. */
  ageMs: number;
  /** How many keys it lists. */
  keys: number;
}

export interface FailureEvent {
  operation: "route" | "report" | "cells" | "shared_cache";
  /** For logs. It has no names and no keys. */
  detail: string;
  /** The HTTP status, if there was an answer. */
  status?: number;
}

/**
 * Calls a hook and ignores its errors. An asynchronous hook must not cause an unhandled rejection, which
 * would end the process.
 */
export function callHook<Event>(hook: ((event: Event) => unknown) | undefined, event: Event): void {
  if (hook === undefined) return;
  const called = async (): Promise<unknown> => hook(event);
  called().catch(() => {});
}

/**
 * Callbacks for telemetry of the proxy. Errors that a hook throws are ignored. No event has a name, a path or
 * an address in it.
 */
export interface ProxyHooks {
  /** Called for every answer of a cell that the client gets. */
  onForwarded?: (event: ForwardedEvent) => void;
  /** Called for every 421 of a cell. */
  onRefused?: (event: RefusedEvent) => void;
  /** Called when a rule sends a request to its default cell. `RouterMetrics` counts it. */
  onFallback?: (event: { rule: string }) => void;
  /**
   * Called when the proxy answers a request itself, or asks the client to send it again. Nothing else gets
   * the `detail` of a failure with a status of 500 or more.
   */
  onProxyFailure?: (failure: ProxyFailure) => void;
}

export interface ForwardedEvent {
  /** The id of the rule that decided. */
  rule: string;
  cell: string;
  status: number;
  /** How many cells had refused the request before. 1 means that a wrong answer was healed. */
  hops: number;
}

export interface RefusedEvent {
  rule: string;
  cell: string;
  hops: number;
  /** The epoch of the answer that named the cell. Null if a rule named it. */
  epoch: number | null;
  /** The epoch at which the cell gave the name up, if it says so. */
  tombstoneEpoch: number | null;
}
