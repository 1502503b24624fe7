import type { ProxyFailure } from "./failure.ts";

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
