import type * as z from "zod";
import type { Principal } from "../auth/principal.ts";
import type { HistoryPoint } from "../kernel/messages.ts";
import type { Result } from "../kernel/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import type { Route } from "./contract/route.ts";
import type { Deployment } from "../isolate/deployment.ts";
import type { Lines, ServerSentEvent } from "./lines.ts";
import type { PageTokens } from "./page-token.ts";

type BodyOf<R> = R extends { body: { schema: infer Schema extends z.ZodType; required: infer Required } }
  ? z.output<Schema> | (Required extends true ? never : undefined)
  : undefined;

/** A valid request from a caller who may use the route. */
export interface Call<R extends Route> {
  routeId: string;
  /** The request's id in the log. */
  requestId: string;
  deployment: Deployment;
  waitUntil: WaitUntil;
  /** Aborts when the caller closes the connection, if the runtime tells. */
  signal?: AbortSignal;
  /** Null on routes that anyone may use. */
  principal: R["roles"] extends "anyone" ? null : Principal;
  tokens: R["roles"] extends "anyone" ? null : PageTokens;
  params: z.output<R["params"]>;
  query: z.output<R["query"]>;
  body: BodyOf<R>;
  /** The header `Accept` of a request. */
  accept?: string | undefined;
  /** True if the caller wants the events of the route. */
  wantsEvents?: boolean;
  /** The newest point of the ledger that the caller has seen, on routes with `history` (L7). */
  seen?: HistoryPoint;
}

type BodyIn<Response, Value> = Response extends { lines: true } ? Lines<Value> : Value;

/** An answer that the contract declares for the route. */
type Answer<R extends Route> = BodyAnswer<R["responses"], R> | EventsAnswer<R>;

type EventsAnswer<R> = R extends { events: object } ? { status: 200; events: Lines<ServerSentEvent> } : never;

/** The bytes of a document that anyone may read. */
type Encoded<R> = R extends { roles: "anyone" } ? ReadableStream<Uint8Array> : never;

type BodyAnswer<Responses, R> = {
  [Status in keyof Responses]: Responses[Status] extends { schema: infer Schema extends z.ZodType }
    ? {
        status: Status;
        body: BodyIn<Responses[Status], z.input<Schema>> | Encoded<R>;
        headers?: Record<string, string>;
      }
    : never;
}[keyof Responses];

/**
 * Validates what the schemas cannot, then calls the objects and makes the answer. It runs only after the
 * caller's key was found not to be revoked. An invalid request is refused before any object is called, except
 * to learn which types are declared (T4).
 */
export type Handler<R extends Route> = (call: Call<R>) => Result<Answer<R>> | Promise<Result<Answer<R>>>;

/** The handlers of some routes. */
export type Handlers<Table extends Record<string, Route>> = { [Id in keyof Table]: Handler<Table[Id]> };
