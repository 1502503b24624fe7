import { createContextKey, type ConnectError, type HandlerContext } from "@connectrpc/connect";
import { isAllowed } from "../auth/policy.ts";
import type { Principal } from "../auth/principal.ts";
import { refused, type ErrorCode, type Result } from "../core/refusal.ts";
import { accessRefusal } from "../http/access-refusal.ts";
import { notAllowed } from "../http/bind.ts";
import { routes, type RouteId } from "../http/contract.ts";
import { cellId } from "../http/contract/fields.ts";
import type { Route } from "../http/contract/route.ts";
import type { Deployment } from "../http/deployment.ts";
import type { AnswerOf, InternalApi, Problem, Sent } from "../http/internal-api.ts";
import { problemOf } from "../http/problem.ts";
import type { Trace } from "../http/trace.ts";
import { validate } from "../http/validate.ts";
import type { WaitUntil } from "../runtime.ts";
import type { logEvent } from "../log.ts";
import { wireError, type Placed } from "./wire-error.ts";

/** What a request of the wire runs in, once its key is verified. */
export interface Caller {
  deployment: Deployment;
  principal: Principal;
  api: InternalApi;
  trace: Trace;
  waitUntil: WaitUntil;
  log: typeof logEvent;
}

export const callerKey = createContextKey<Caller | undefined>(undefined);

/** Whether the request was rewritten from the oldest generation, so that its answer must be too. */
export const oldestKey = createContextKey(false);

/** One call, which throws what is wrong as an error of the wire. */
export class WireCall {
  readonly deployment: Deployment;
  readonly #caller: Caller;
  readonly #signal: AbortSignal;

  constructor(caller: Caller, signal: AbortSignal) {
    this.deployment = caller.deployment;
    this.#caller = caller;
    this.#signal = signal;
  }

  /** Calls a route of the API. It stops waiting at the caller's deadline, when the outcome is not known. */
  async send<Id extends RouteId>(id: Id, sent: Sent, placed?: Placed): Promise<AnswerOf<Id>> {
    if (this.#signal.aborted) return this.fail("DEADLINE_EXCEEDED", "the deadline passed before the call");
    const { api } = this.#caller;
    const answer = await Promise.race([api.call(id, sent), aborted(this.#signal)]);
    if (answer === undefined)
      return this.fail("DEADLINE_EXCEEDED", "the deadline passed before the answer; the outcome is unknown");
    if (answer.ok) return answer.value;
    throw this.#error(answer.problem, placed);
  }

  /** Returns the value, or throws the refusal. */
  value<T>(result: Result<T>): T {
    if (result.ok) return result.value;
    const problem = problemOf(result.refusal, this.#caller.trace.requestId);
    throw this.#error(problem as unknown as Problem);
  }

  fail(code: ErrorCode, detail: string): never {
    return this.value<never>(refused(code, detail));
  }

  #error(problem: Problem, placed?: Placed): ConnectError {
    const { trace } = this.#caller;
    trace.code = problem.code;
    return wireError(problem, trace.requestId, placed);
  }
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));

/**
 * Begins a call on behalf of a route of the API. A caller who may not use the route, or not for this cell, is
 * refused before anything is looked up, and so is a key that was revoked.
 */
export async function callOf(context: HandlerContext, id: RouteId, cell?: string): Promise<WireCall> {
  const caller = context.values.get(callerKey);
  if (caller === undefined) throw new Error("a call without a caller");
  const call = new WireCall(caller, context.signal);
  const { principal, trace } = caller;
  trace.route = `wire.${context.method.name}`;
  const route: Route = routes[id];
  if (!isAllowed(principal, route.roles, cell)) call.fail("PERMISSION_DENIED", notAllowed(principal));
  if (cell !== undefined) call.value(validate(cellId, cell, "cell_id"));
  const refusal = await accessRefusal(caller.deployment, principal, cell, false, caller.waitUntil);
  if (refusal !== undefined) call.value({ ok: false, refusal });
  return call;
}
