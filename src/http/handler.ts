import type * as z from "zod";
import type { Principal } from "../auth/principal.ts";
import type { Result } from "../core/refusal.ts";
import type { RouteId, Routes } from "./contract.ts";
import type { Deployment } from "./deployment.ts";
import type { Lines } from "./lines.ts";
import type { PageTokens } from "./page-token.ts";

type BodyOf<R> = R extends { body: { schema: infer Schema extends z.ZodType; required: infer Required } }
  ? z.output<Schema> | (Required extends true ? never : undefined)
  : undefined;

/** A request that fits its route, from someone who may use it. */
export interface Call<Id extends RouteId> {
  routeId: Id;
  deployment: Deployment;
  /** Null on the routes that anyone may use. */
  principal: Routes[Id]["roles"] extends "anyone" ? null : Principal;
  tokens: Routes[Id]["roles"] extends "anyone" ? null : PageTokens;
  params: z.output<Routes[Id]["params"]>;
  query: z.output<Routes[Id]["query"]>;
  body: BodyOf<Routes[Id]>;
}

type Responses<Id extends RouteId> = Routes[Id]["responses"];

type BodyIn<Response, Value> = Response extends { lines: true } ? Lines<Value> : Value;

/** One of the answers that the contract has for the route. */
type Answer<Id extends RouteId> = {
  [Status in keyof Responses<Id>]: Responses<Id>[Status] extends { schema: infer Schema extends z.ZodType }
    ? {
        status: Status;
        body: BodyIn<Responses<Id>[Status], z.input<Schema>>;
        headers?: Record<string, string>;
      }
    : never;
}[keyof Responses<Id>];

/** Asks the objects. Runs only after the caller's key was found not to be revoked. */
type Work<Id extends RouteId> = () => Promise<Result<Answer<Id>>>;

/**
 * Finishes the validation and says what to do. It must not call any object: what is wrong with a request is told without any, and the
 * revocation of the key is looked up in between.
 */
export type Handler<Id extends RouteId> = (call: Call<Id>) => Result<Work<Id>> | Promise<Result<Work<Id>>>;

export type Handlers<Id extends RouteId = RouteId> = { [Each in Id]: Handler<Each> };
