import type * as z from "zod";
import type { Roles } from "../../auth/principal.ts";
import type { ErrorCode, Reason } from "../../kernel/refusal.ts";
import type { ServerSentEvent } from "../lines.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH";
export type Group =
  | "leases"
  | "records"
  | "changes"
  | "transfers"
  | "history"
  | "routing"
  | "verification"
  | "status"
  | "cells"
  | "shards"
  | "operations"
  | "keys"
  | "types"
  | "audit"
  | "parts"
  | "webhooks"
  | "service";

/** One way in which a call can fail, in addition to the errors of all routes of its kind (`errorsOf`). */
export interface RouteError {
  code: ErrorCode;
  reason?: Reason;
  when: string;
  /** The HTTP status, if it is not the code's own. */
  status?: number;
}

export const unknownCell: RouteError = {
  code: "NOT_FOUND",
  reason: "CELL_UNKNOWN",
  when: "The cell is not registered.",
};

/** The refusal of an operator's change whose audit entry has no room (O3). */
export const auditFull: RouteError = {
  code: "UNAVAILABLE",
  reason: "AUDIT_FULL",
  when:
    "A part has as many audit entries as it may keep, because the cron could not copy them. Nothing was " +
    "done. Of cells, only one that accepts a transfer gets this error.",
};

/** The refusal of what an operation keeps from starting (A5). */
export const operationRunning: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "OPERATION_RUNNING",
  when: "Another operation is in the way. `operation` names it, and says how to end it.",
};

/** The refusal of reads of which too many run at a time. */
export const tooManyReads: RouteError = {
  code: "RESOURCE_EXHAUSTED",
  reason: "TOO_MANY_READS",
  when:
    "Too many listings, digests and export pages of this cell are running, or too many with this key. Try " +
    "again after `Retry-After`.",
};

export interface RouteBody {
  schema: z.ZodType;
  required: boolean;
}

interface RouteResponse {
  about: string;
  /** Describes the body, which is JSON unless `mediaType` says otherwise. */
  schema: z.ZodType;
  mediaType?: string;
  /** Examples of the same in other media types, which a request may ask for in `Accept`. */
  alternatives?: Readonly<Record<string, string>>;
  /**
   * The body is a stream of JSON lines, made while they are read. `schema` describes one line, and `example`
   * is a list of lines.
   */
  lines?: true;
  /** What `Cache-Control` says. Left out: `no-store`, as in every other answer. */
  cached?: string;
  /** Shown on the reference page. Left out if a sample made from the schema is good enough. */
  example?: unknown;
}

/** What a route answers to requests that accept `text/event-stream`. */
interface RouteEvents {
  /** Describes the data of an event. */
  schema: z.ZodType;
  /** The parameter of the query that `Last-Event-ID` replaces. */
  parameter: string;
  /** The data of some events, with their types. */
  example: readonly ServerSentEvent[];
}

/** A realistic call, for the reference page. */
interface Example {
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string>>;
  body?: unknown;
}

/**
 * One route of the HTTP API. The router, the validation, `openapi.json`, the reference page, the client's
 * types and the generated tests are all made from it.
 */
export interface Route {
  group: Group;
  method: Method;
  /** Contains `{name}` for each parameter. */
  path: string;
  /** The last parameter takes the rest of the path, including slashes. */
  rest?: true;
  summary: string;
  about: string;
  /** The route works from this format on (M9). Left out: always. */
  format?: number;
  roles: Roles;
  params: z.ZodType;
  /** A parameter that is a list (`boundedList`) may be given several times. Its schema always sees a list. */
  query: z.ZodType;
  body?: RouteBody;
  /** The request and its successful answer may have the header of the ledger's history (L7). */
  history?: true;
  responses: Readonly<Record<number, RouteResponse>>;
  events?: RouteEvents;
  errors: readonly RouteError[];
  example: Example;
}

/** Returns its argument. It exists to keep the literal types, from which the types of the handlers follow. */
export const route = <const R extends Route>(row: R): R => row;

export const parameterNames = ({ path }: Pick<Route, "path">): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");
