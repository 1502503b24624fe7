import type * as z from "zod";
import type { Principal } from "../auth/principal.ts";
import { ok } from "../kernel/refusal.ts";
import { routes, type RouteId, type Routes } from "./contract.ts";
import type { Route } from "./contract/route.ts";
import type { problem } from "./contract/schemas.ts";
import type { HttpAnswer, Incoming } from "./incoming.ts";
import { JSON_TYPE } from "./http-answer.ts";

export type Problem = z.input<typeof problem>;

type Responses<Id extends RouteId> = Routes[Id]["responses"];

/** What a route answers when it succeeds. */
export type AnswerOf<Id extends RouteId> = {
  [Status in keyof Responses<Id>]: Responses<Id>[Status] extends { schema: infer Schema extends z.ZodType }
    ? z.input<Schema>
    : never;
}[keyof Responses<Id>];

export type Answer<T> = { ok: true; value: T } | { ok: false; problem: Problem };

export interface Sent {
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string | readonly string[] | undefined>>;
  body?: unknown;
}

/** Serves a request as the API does. */
export type Serve = (incoming: Incoming) => Promise<HttpAnswer>;

/**
 * Calls the routes of the API inside the process, with a principal that is already verified. The API checks
 * role, form, limits and revocation, and keeps the audit, as for a request with its key.
 */
export class InternalApi {
  readonly #serve: Serve;
  readonly #principal: Principal;
  readonly #requestId: string;

  constructor(serve: Serve, principal: Principal, requestId: string) {
    this.#serve = serve;
    this.#principal = principal;
    this.#requestId = requestId;
  }

  async call<Id extends RouteId>(id: Id, sent: Sent = {}): Promise<Answer<AnswerOf<Id>>> {
    const { status, headers, body } = await this.#serve(this.#request(routes[id], sent));
    const text = await new Response(body as string).text();
    if (status >= 400) return { ok: false, problem: JSON.parse(text) as Problem };
    const isJson = headers["content-type"]?.includes("json") === true;
    return { ok: true, value: (isJson ? JSON.parse(text) : text) as AnswerOf<Id> };
  }

  #request({ method, path }: Route, { params = {}, query = {}, body }: Sent): Incoming {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      for (const each of [value ?? []].flat()) if (each !== "") search.append(name, each);
    const bytes = body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body));
    const sent: Record<string, string> = {
      "x-request-id": this.#requestId,
      ...(bytes === undefined ? {} : { "content-type": JSON_TYPE, "content-length": String(bytes.length) }),
    };
    return {
      method,
      target: `${filled}?${search.toString()}`,
      isTls: true,
      hasBody: bytes !== undefined,
      closed: new AbortController().signal,
      principal: this.#principal,
      header: (name) => sent[name],
      headers: () => new Headers(sent),
      read: () => ok(bytes ?? new Uint8Array()),
      certificate: () => ok(undefined),
    };
  }
}
