import type { OperationId } from "./operation.ts";

/** For telemetry. What a hook throws is dropped: it must not change what becomes of a call. */
export interface Hooks {
  /** Before every try. */
  onRequest?: (event: RequestEvent) => void;
  /** After every try, whatever came of it. */
  onResponse?: (event: ResponseEvent) => void;
  /** Before every pause between two tries. */
  onRetry?: (event: RetryEvent) => void;
  /** The circuit breaker changed. */
  onBreaker?: (event: { state: "closed" | "open" | "half_open" }) => void;
  /** More begins are under way than `begins.max`, and `begins.onFull` is `"warn"`. */
  onTooManyBegins?: (event: { underWay: number; max: number }) => void;
}

export interface RequestEvent {
  operation: OperationId;
  /** From 1. */
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
  why: string;
}

/** Also what an asynchronous hook throws: nobody waits for it, and an unhandled rejection would end the process. */
export function callHook<Event>(hook: ((event: Event) => unknown) | undefined, event: Event): void {
  const called = async (): Promise<unknown> => hook?.(event);
  called().catch(() => {});
}
