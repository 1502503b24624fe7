/** An op that stands in the way, at its place in the request. */
export interface WireConflict {
  list: "creates" | "destroys" | "replaces";
  index: number;
  bucket: { type: string; value: string };
  kind: string;
  owner?: "self" | "other";
  retryAfterMs?: number;
}

/** The coordinator said no: it did not do what was asked, and saying so is its last word on this call. */
export interface Refused {
  kind: "refused";
  status: number;
  /** Open-ended on this side: a newer coordinator may know more codes and reasons than this cell. */
  code: string;
  reason?: string;
  detail: string;
  conflicts: WireConflict[];
  retryAfterMs?: number;
}

/** Nobody on this side knows whether it was done (a timeout, a lost answer, a fault): neither a yes nor a no (rule M2). */
export interface Unknown {
  kind: "unknown";
  error: string;
}

/** What came of a call, as far as the caller can know. */
export type Answer<T> = { kind: "ok"; value: T } | Refused | Unknown;

export const unknown = (error: string): Unknown => ({ kind: "unknown", error });

/** One line for logs and errors. */
export function sentence(answer: Refused | Unknown): string {
  if (answer.kind === "unknown") return answer.error;
  return `${answer.code}${answer.reason === undefined ? "" : ` (${answer.reason})`}: ${answer.detail}`;
}
