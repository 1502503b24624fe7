import type * as z from "zod";
import type { Roles } from "../../auth/policy.ts";
import type { ErrorCode, Reason } from "../../core/refusal.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH";
export type Group = "leases" | "records" | "verification" | "cells" | "keys" | "service";

/** One way a call can fail, beyond what holds for every route of its kind (see `errorsOf`). */
export interface RouteError {
  code: ErrorCode;
  reason?: Reason;
  when: string;
  /** Where it is not the one of the code. */
  status?: number;
}

export interface RouteBody {
  schema: z.ZodType;
  required: boolean;
}

interface RouteResponse {
  about: string;
  /** JSON, unless the route says otherwise. */
  schema: z.ZodType;
  mediaType?: string;
  /** A line of JSON after another, made while they are read: the schema is that of a line, and the example a list of them. */
  lines?: true;
  /** For the reference page; left out where what the schema says is enough. */
  example?: unknown;
}

/** A call as a person would make it, for the reference page. */
interface Example {
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string>>;
  body?: unknown;
}

/**
 * One row of the HTTP API. The binder, `openapi.json`, the reference page and the generated tests all read it, so it is the only place
 * where a route is described.
 */
export interface Route {
  group: Group;
  method: Method;
  /** With `{name}` for each parameter. */
  path: string;
  /** The last parameter takes the rest of the path, slashes included. */
  rest?: true;
  summary: string;
  about: string;
  roles: Roles;
  params: z.ZodType;
  query: z.ZodType;
  /** Query parameters that may be given several times: always an array for `query`. */
  repeatable?: readonly string[];
  body?: RouteBody;
  responses: Readonly<Record<number, RouteResponse>>;
  errors: readonly RouteError[];
  example: Example;
}

/** Keeps the literal types, from which the types of the handlers follow. */
export const route = <const R extends Route>(row: R): R => row;

export const parameterNames = ({ path }: Pick<Route, "path">): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");
