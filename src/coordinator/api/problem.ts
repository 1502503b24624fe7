import type * as z from "zod";
import { errorCodes, type Conflict, type Reason, type Refusal } from "../kernel/refusal.ts";
import type { routeFacts } from "./contract/schemas.ts";
import type { HttpAnswer } from "./incoming.ts";
import { jsonAnswer } from "./http-answer.ts";
import { howToEnd, type Operation } from "../capabilities/operations/operations.ts";
import type { logEvent } from "../log.ts";
import { loggedIds, type Trace } from "./trace.ts";

/** A refusal with the fields that only HTTP needs. */
export interface Failure extends Refusal {
  /** The HTTP status, if it is not the code's own. */
  status?: number;
  headers?: Readonly<Record<string, string>>;
  leaseUuid?: string;
  failed?: readonly string[];
  /** What the answer is worth that no cell has a name. */
  route?: z.input<typeof routeFacts>;
  /** The sentence of GitLab's Topology Service. */
  message?: string;
  /** The buckets of the conflicts, in the same order. */
  buckets?: readonly ApiBucket[];
}

interface ApiBucket {
  type: string;
  value: string;
}

/** The reasons whose HTTP status is not that of their code. */
export const statusOfReason: Readonly<Partial<Record<Reason, number>>> = {
  BODY_TOO_LARGE: 413,
  LEASE_TOO_LARGE: 413,
  BODY_TOO_SLOW: 408,
  REPORT_PRUNED: 410,
  CHANGES_PRUNED: 410,
};

/** Makes the answer for a failure. Every 4xx and 5xx answer is such a problem (RFC 9457). */
export function problemAnswer(failure: Failure, requestId: string): HttpAnswer {
  const status = statusOf(failure);
  return jsonAnswer(problemOf(failure, requestId), status, headersOf(failure, status), requestId);
}

/** The problem's fields, for an error answer or for the last line of an export. */
export function problemOf(failure: Failure, requestId: string): Record<string, unknown> {
  const { title } = errorCodes[failure.code];
  const status = statusOf(failure);
  const { code, detail, reason, field, operation, conflicts, buckets, leaseUuid, failed, route, message } =
    failure;
  return {
    type: `/docs#error-${code.toLowerCase()}`,
    title,
    status,
    detail: sentence(detail),
    code,
    reason,
    field,
    retryable: isRetryable(failure, status),
    request_id: requestId,
    conflicts: conflicts?.map((conflict, index) => toApiConflict(conflict, buckets?.[index])),
    operation: operation && toApiOperation(operation),
    lease_uuid: leaseUuid,
    failed,
    route,
    message,
  };
}

function statusOf({ code, reason, status }: Failure): number {
  return status ?? (reason && statusOfReason[reason]) ?? errorCodes[code].status;
}

/** Repeating doesn't help if the body or batch is too large (413), or if a limit gives no time to wait. */
const isRetryable = ({ code, retryAfterMs }: Failure, status: number): boolean =>
  errorCodes[code].retryable &&
  status !== 413 &&
  (code !== "RESOURCE_EXHAUSTED" || retryAfterMs !== undefined);

function headersOf(failure: Failure, status: number): Record<string, string> {
  const waits = failure.code === "ABORTED" || status === 429 || status === 503;
  return {
    "content-type": "application/problem+json",
    ...(waits ? { "retry-after": String(Math.max(1, Math.ceil((failure.retryAfterMs ?? 0) / 1_000))) } : {}),
    ...(failure.code === "UNAUTHENTICATED" ? { "www-authenticate": 'Bearer realm="leasehold"' } : {}),
    ...failure.headers,
  };
}

const toApiConflict = (
  { list, index, kind, owner, retryAfterMs }: Conflict,
  bucket: ApiBucket | undefined,
): Record<string, unknown> => ({
  list,
  index,
  bucket,
  kind,
  owner,
  retry_after_ms: retryAfterMs,
});

/** Details are written in lower case, so that they can follow a colon. Here a detail becomes a sentence. */
export function sentence(detail: string): string {
  const [first = ""] = detail;
  // A field's path at the beginning keeps its case.
  const capital = /^[a-z]+[ ,:]/.test(detail) ? first.toUpperCase() + detail.slice(1) : detail;
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}

/** An operation as answers and problems show it. */
export const toApiOperation = (operation: Operation) => ({
  id: operation.id,
  kind: operation.kind,
  about: operation.about,
  started_at: new Date(operation.startedAtMs).toISOString(),
  started_by: operation.startedBy,
  how_to_end: howToEnd(operation),
});

/**
 * Thrown when a variable is wrong. Its message, which names the variable, is answered to the caller. Messages
 * of other unexpected errors are only logged.
 */
export class Misconfigured extends Error {}

/**
 * The text of an error for the log. A message may quote a name, so it is cut at the first quotation mark. The
 * stack's frames are kept.
 */
function harmless(error: unknown): string {
  if (!(error instanceof Error)) return "not an error";
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [`${error.name}: ${error.message.split('"')[0]?.slice(0, 200)}`, ...frames].join("\n");
}

export function logFault(error: unknown, trace: Trace, log: typeof logEvent): Failure {
  log("fault", { ...loggedIds(trace), route: trace.route, message: harmless(error) });
  if (error instanceof Misconfigured) return { code: "UNAVAILABLE", detail: error.message };
  return {
    code: "INTERNAL",
    detail: "the coordinator failed unexpectedly; search its log for the request id",
  };
}
