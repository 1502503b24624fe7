import type { operations } from "./api-types.ts";

export type OperationId = keyof typeof operations;

/**
 * Callbacks for telemetry. Errors that a hook throws are ignored: a hook must not change the outcome of a
 * call.
 */
export interface Hooks {
  /** Called before every attempt. */
  onRequest?: (event: RequestEvent) => void;
  /** Called after every attempt, whatever its outcome. */
  onResponse?: (event: ResponseEvent) => void;
  /** Called before every backoff. */
  onRetry?: (event: RetryEvent) => void;
  /** Called when the circuit breaker changes its state. */
  onBreaker?: (event: { state: "closed" | "open" | "half_open" }) => void;
  /** Called when a begin exceeds `begins.max` while `begins.onFull` is `"warn"`. */
  onTooManyBegins?: (event: { underWay: number; max: number }) => void;
}

export interface RequestEvent {
  operation: OperationId;
  /** Counts from 1. */
  attempt: number;
}

export interface ResponseEvent extends RequestEvent {
  kind: "ok" | "refused" | "unknown";
  durationMs: number;
  status?: number;
  code?: string;
  requestId?: string;
}

export interface RetryEvent extends RequestEvent {
  waitMs: number;
  error: string;
}

/**
 * Calls a hook and ignores its errors. An asynchronous hook must not cause an unhandled rejection, which
 * would end the process.
 */
export function callHook<Event>(hook: ((event: Event) => unknown) | undefined, event: Event): void {
  const called = async (): Promise<unknown> => hook?.(event);
  called().catch(() => {});
}
