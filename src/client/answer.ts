import type { Conflict } from "./api-types.ts";

/** The coordinator said no: it did not do what was asked. */
export interface Refused {
  kind: "refused";
  /** 0: the refusal is this client's own, and nothing was sent. */
  status: number;
  /** Open-ended on this side: a newer coordinator may know more codes and reasons than this client. */
  code: string;
  reason?: string;
  detail: string;
  field?: string;
  conflicts: readonly Conflict[];
  retryable: boolean;
  retryAfterMs?: number;
  requestId?: string;
  /** False when an earlier try went without an answer: it may still be on its way, and be carried out after this refusal. */
  outcomeKnown: boolean;
}

/** Nobody on this side knows whether it was done (a timeout, a lost answer, a fault): neither a yes nor a no (rule M2). */
export interface Unknown {
  kind: "unknown";
  why: "timeout" | "cancelled" | "unavailable";
  error: string;
  status?: number;
  retryAfterMs?: number;
  requestId?: string;
  cause?: unknown;
  /** True when nothing was sent at all, so that nothing can have happened. */
  outcomeKnown: boolean;
}

/** What came of a call, as far as the caller can know. */
export type Answer<T> = { kind: "ok"; value: T } | Refused | Unknown;

export const unknown = (error: string, more: Partial<Omit<Unknown, "kind" | "error">> = {}): Unknown => ({
  kind: "unknown",
  why: "unavailable",
  outcomeKnown: false,
  ...more,
  error,
});

/** One line for logs and errors. */
export function describeFailure(answer: Refused | Unknown): string {
  if (answer.kind === "unknown") return answer.error;
  return `${answer.code}${answer.reason === undefined ? "" : ` (${answer.reason})`}: ${answer.detail}`;
}
