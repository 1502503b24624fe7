import type * as z from "zod";
import type { Principal } from "../auth/principal.ts";
import { errorCodes } from "../core/refusal.ts";
import { routes, type RouteId, type Routes } from "./contract.ts";
import type { Route } from "./contract/route.ts";
import type { problem } from "./contract/schemas.ts";
import { vouchFor } from "./vouched.ts";

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
export type Serve = (request: Request) => Response | Promise<Response>;

/**
 * Calls the routes of the API inside the process, with a principal that is already verified. The API checks
 * role, form, limits and revocation, and keeps the audit, as for a request with its key.
 */
export class InternalApi {
  readonly #serve: Serve;
  readonly #principal: Principal;
  readonly #requestId: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    serve: Serve,
    principal: Principal,
    requestId: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    this.#serve = serve;
    this.#headers = headers;
    this.#principal = principal;
    this.#requestId = requestId;
  }

  async call<Id extends RouteId>(id: Id, sent: Sent = {}): Promise<Answer<AnswerOf<Id>>> {
    const [dots] = Object.entries(sent.params ?? {}).find(([, value]) => isDots(value)) ?? [];
    if (dots !== undefined) return { ok: false, problem: dotsProblem(dots, this.#requestId) };
    const response = await this.#send(routes[id], sent);
    // Read as bytes, because workerd warns about text whose media type does not declare it.
    const text = new TextDecoder().decode(await response.arrayBuffer());
    if (response.ok)
      return {
        ok: true,
        value: (isJson(response) ? JSON.parse(text) : text) as AnswerOf<Id>,
      };
    return { ok: false, problem: JSON.parse(text) as Problem };
  }

  #send({ method, path }: Route, { params = {}, query = {}, body }: Sent): Response | Promise<Response> {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
    const url = new URL(filled, "https://internal.invalid");
    for (const [name, value] of Object.entries(query))
      for (const each of [value ?? []].flat()) if (each !== "") url.searchParams.append(name, each);
    const request = new Request(url, {
      method,
      headers: {
        ...this.#headers,
        "x-request-id": this.#requestId,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    vouchFor(request, this.#principal);
    return this.#serve(request);
  }
}

/** URLs leave out such a segment, also if it is percent-encoded, so the request would go to another route. */
const isDots = (value: string): boolean => value === "." || value === "..";

const dotsProblem = (param: string, requestId: string): Problem => ({
  type: "/docs#error-invalid_argument",
  ...errorCodes.INVALID_ARGUMENT,
  code: "INVALID_ARGUMENT",
  detail:
    `\`${param}\` must not be \`.\` or \`..\` here, because no address can have it. ` +
    "Use `POST /v1/records/lookup`.",
  request_id: requestId,
});

const isJson = (response: Response): boolean =>
  response.headers.get("content-type")?.includes("json") === true;
