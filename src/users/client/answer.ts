import type { Conflict } from "./api-types.ts";

/** The coordinator refused the call and did nothing. */
export interface Refused {
  kind: "refused";
  /** 0: this client refused the call itself, and sent nothing. */
  status: number;
  /** A string, because a newer coordinator may have codes and reasons that this client does not know. */
  code: string;
  reason?: string;
  detail: string;
  field?: string;
  conflicts: readonly Conflict[];
  retryable: boolean;
  retryAfterMs?: number;
  requestId?: string;
  /** What the answer is worth that no cell has a name, as it was sent. */
  route?: unknown;
  /**
   * False when an earlier attempt got no answer: the coordinator may still carry it out after this refusal.
   */
  outcomeKnown: boolean;
}

/**
 * The outcome is unknown, because of a timeout, a lost answer or a fault. It counts as neither yes nor no
 * (M2).
 */
export interface Unknown {
  kind: "unknown";
  why: "timeout" | "cancelled" | "unavailable";
  error: string;
  status?: number;
  retryAfterMs?: number;
  requestId?: string;
  cause?: unknown;
  /** True when nothing was sent, so the coordinator did nothing. */
  outcomeKnown: boolean;
}

/** The outcome of a call, as far as the client can know it. */
export type Answer<T> = { kind: "ok"; value: T } | Refused | Unknown;

export const unknown = (error: string, more: Partial<Omit<Unknown, "kind" | "error">> = {}): Unknown => ({
  kind: "unknown",
  why: "unavailable",
  outcomeKnown: false,
  ...more,
  error,
});

/** A read has failed. It changes nothing, so there is nothing that may have been carried out. */
export const unread: typeof unknown = (error, more) => unknown(error, { outcomeKnown: true, ...more });

/** The message of whatever was thrown. It never throws itself, although `String` does for some objects. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown);
  } catch {
    return "something was thrown that cannot be shown as text";
  }
}

/** An exception tells nothing about what was carried out, so it is an unknown outcome (M2). */
export const unknownFrom = (thrown: unknown): Unknown => unknown(messageOf(thrown), { cause: thrown });

/** One line for logs and errors. */
export function describeFailure(answer: Refused | Unknown): string {
  if (answer.kind === "unknown") return answer.error;
  return `${answer.code}${answer.reason === undefined ? "" : ` (${answer.reason})`}: ${answer.detail}`;
}
