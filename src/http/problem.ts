import { errorCodes, type Conflict, type Refusal } from "../core/refusal.ts";

/** A refusal on its way out, with what only HTTP has to say about it. */
export interface Failure extends Refusal {
  /** Instead of the code's own. */
  status?: number;
  headers?: Readonly<Record<string, string>>;
  leaseUuid?: string;
  failed?: readonly string[];
}

/** RFC 9457: the one shape of every 4xx and 5xx answer. */
export function problemResponse(failure: Failure, requestId: string): Response {
  const status = statusOf(failure);
  return Response.json(problemOf(failure, requestId), { status, headers: headersOf(failure, status) });
}

/** What an answer says that is refused, and the last line of one that fails in the middle. */
export function problemOf(failure: Failure, requestId: string): Record<string, unknown> {
  const { title } = errorCodes[failure.code];
  const status = statusOf(failure);
  const { code, detail, reason, field, conflicts, leaseUuid, failed } = failure;
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
    conflicts: conflicts?.map(toApiConflict),
    lease_uuid: leaseUuid,
    failed,
  };
}

function statusOf({ code, reason, status }: Failure): number {
  if (status !== undefined) return status;
  return reason === "BODY_TOO_LARGE" || reason === "LEASE_TOO_LARGE" ? 413 : errorCodes[code].status;
}

/** A body or batch that is too large stays too large; a limit that does not pass by itself has no time to wait for. */
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

const toApiConflict = ({
  list,
  index,
  bucket,
  kind,
  owner,
  retryAfterMs,
}: Conflict): Record<string, unknown> => ({
  list,
  index,
  bucket: { type: bucket.type, value: bucket.value },
  kind,
  owner,
  retry_after_ms: retryAfterMs,
});

/** Details are written to follow a colon or another; here they stand alone. */
function sentence(detail: string): string {
  const [first = ""] = detail;
  // A detail may begin with a field's path, which is kept as it is.
  const capital = /^[a-z]+[ ,:]/.test(detail) ? first.toUpperCase() + detail.slice(1) : detail;
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
