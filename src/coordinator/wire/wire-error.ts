/** Problems of the API as errors of Connect and gRPC, with details that their libraries know. */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ErrorCode, OpList } from "../kernel/refusal.ts";
import type { Problem } from "../api/internal-api.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./protobuf.ts";

const codes: Readonly<Record<ErrorCode, Code>> = {
  INVALID_ARGUMENT: Code.InvalidArgument,
  UNAUTHENTICATED: Code.Unauthenticated,
  PERMISSION_DENIED: Code.PermissionDenied,
  NOT_FOUND: Code.NotFound,
  ALREADY_EXISTS: Code.AlreadyExists,
  FAILED_PRECONDITION: Code.FailedPrecondition,
  ABORTED: Code.Aborted,
  RESOURCE_EXHAUSTED: Code.ResourceExhausted,
  INTERNAL: Code.Internal,
  UNAVAILABLE: Code.Unavailable,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
};

/** Replaces the places of ops in a text of the API by those of the request. */
export type Placed = (text: string) => string;

/** Conflicts beyond this number are left out of the details, which travel in a header. */
const MAX_CONFLICTS = 20;

export function wireError(
  problem: Problem,
  requestId: string,
  placed: Placed = (text) => text,
): ConnectError {
  const { code, reason, field, detail, retryable, conflicts = [], lease_uuid: lease } = problem;
  const told: Record<string, string> = { request_id: requestId };
  if (lease !== undefined) told["lease_uuid"] = lease;
  for (const { list, index, kind } of conflicts.slice(0, MAX_CONFLICTS))
    told[placed(`${list}[${index}]`)] = kind;
  const message = placed(detail);
  const waitMs = Math.max(0, ...conflicts.map(({ retry_after_ms: ms }) => ms ?? 0));
  return new ConnectError(message, codeOf(code, conflicts), undefined, [
    {
      desc: ErrorInfoSchema,
      value: create(ErrorInfoSchema, { reason: reason ?? code, domain: "leasehold", metadata: told }),
    },
    ...(field === undefined
      ? []
      : [
          {
            desc: BadRequestSchema,
            value: create(BadRequestSchema, {
              fieldViolations: [{ field: placed(field), description: message }],
            }),
          },
        ]),
    ...(retryable
      ? [
          {
            desc: RetryInfoSchema,
            value: create(RetryInfoSchema, {
              retryDelay: {
                seconds: BigInt(Math.floor(waitMs / 1_000)),
                nanos: (waitMs % 1_000) * 1_000_000,
              },
            }),
          },
        ]
      : []),
  ]);
}

/**
 * GitLab's clients know no `ABORTED`: a create of a leased name is `ALREADY_EXISTS` for them, and a destroy
 * of one is `FAILED_PRECONDITION`.
 */
function codeOf(code: ErrorCode, conflicts: readonly { list: OpList }[]): Code {
  if (code !== "ABORTED" || conflicts.length === 0) return codes[code];
  return conflicts.some(({ list }) => list !== "destroys") ? Code.AlreadyExists : Code.FailedPrecondition;
}
