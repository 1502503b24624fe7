import {
  create,
  type DescMethodUnary,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { ConnectError, Code } from "@connectrpc/connect";
import { isAllowed } from "../auth/principal.ts";
import { refused, type ErrorCode, type Result, type OpList } from "../kernel/refusal.ts";
import { accessRefusal, notAllowed } from "../api/access-refusal.ts";
import { callRoute, type RouteCaller } from "../api/call-route.ts";
import { routes, type RouteId } from "../api/contract.ts";
import { cellId } from "../api/contract/fields.ts";
import type { Route } from "../api/contract/route.ts";
import type { Deployment } from "../isolate/deployment.ts";
import type { AnswerOf, Problem, Sent } from "../api/internal-api.ts";
import { problemOf, type Failure } from "../api/problem.ts";
import type { Trace } from "../api/trace.ts";
import { validate } from "../api/validate.ts";
import type { logEvent } from "../log.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./protobuf.ts";

/** What a request of the wire runs in, once its key is verified. */
export interface Caller extends RouteCaller {
  log: typeof logEvent;
  /** Whether the message was decoded. */
  isRead: boolean;
}

/** What a method gets besides its message. Methods add no headers to their answers. */
export interface WireContext {
  caller: Caller;
  requestHeader: Pick<Headers, "get">;
  /** Whether the request was rewritten from the oldest generation, so that its answer must be too. */
  isOldest: boolean;
  /** Undefined if the caller gave no deadline. */
  deadline: AbortSignal | undefined;
}

type MethodImpl<Method> =
  Method extends DescMethodUnary<infer Input, infer Output>
    ? (request: MessageShape<Input>, context: WireContext) => Promise<MessageInitShape<Output>>
    : never;

/** The methods of a service. All of them are unary. */
export type WireService<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: MethodImpl<Service["method"][Name]>;
};

/** One call, which throws what is wrong as an error of the wire. */
export class WireCall {
  readonly deployment: Deployment;
  readonly #caller: Caller;
  readonly #deadline: AbortSignal | undefined;

  constructor({ caller, deadline }: WireContext) {
    this.deployment = caller.deployment;
    this.#caller = caller;
    this.#deadline = deadline;
  }

  /** Calls a route of the API. It stops waiting at the caller's deadline, when the outcome is not known. */
  async send<Id extends RouteId>(id: Id, sent: Sent, placed?: Placed): Promise<AnswerOf<Id>> {
    const deadline = this.#deadline;
    if (deadline?.aborted === true)
      return this.fail("DEADLINE_EXCEEDED", "the deadline passed before the call");
    const called = callRoute(id, this.#caller, sent);
    const answer = await (deadline === undefined ? called : Promise.race([called, aborted(deadline)]));
    if (answer === undefined)
      return this.fail("DEADLINE_EXCEEDED", "the deadline passed before the answer; the outcome is unknown");
    if (answer.ok) return answer.value;
    throw this.#error(answer.refusal, placed);
  }

  /** Returns the value, or throws the refusal. */
  value<T>(result: Result<T>): T {
    if (result.ok) return result.value;
    throw this.#error(result.refusal);
  }

  fail(code: ErrorCode, detail: string): never {
    return this.value<never>(refused(code, detail));
  }

  #error(failure: Failure, placed?: Placed): ConnectError {
    return refusalOf(failure, this.#caller.trace, placed);
  }
}

export function refusalOf(failure: Failure, trace: Trace, placed?: Placed): ConnectError {
  trace.code = failure.code;
  if (failure.reason !== undefined) trace.reason = failure.reason;
  const problem = problemOf(failure, trace.requestId) as unknown as Problem;
  return wireError(problem, trace.requestId, placed);
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));

/**
 * Begins a call on behalf of a route of the API. A caller who may not use the route, or not for this cell, is
 * refused before anything is looked up, and so is a key that was revoked.
 */
export async function callOf(context: WireContext, id: RouteId, cell?: string): Promise<WireCall> {
  const { caller } = context;
  const call = new WireCall(context);
  const { principal } = caller;
  const route: Route = routes[id];
  if (!isAllowed(principal, route.roles, cell)) call.fail("PERMISSION_DENIED", notAllowed(principal));
  if (cell !== undefined) call.value(validate(cellId, cell, "cell_id"));
  const refusal = await accessRefusal(caller.deployment, principal, cell, false, caller.waitUntil);
  if (refusal !== undefined) call.value({ ok: false, refusal });
  return call;
}

/* Problems of the API as errors of Connect and gRPC, with details that their libraries know. */

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

function wireError(problem: Problem, requestId: string, placed: Placed = (text) => text): ConnectError {
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
