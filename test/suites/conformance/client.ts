/** A caller that uses only HTTP. */
import { expect } from "vitest";
import type * as z from "zod";
import { problem } from "../../../src/coordinator/api/contract/schemas.ts";

export type Problem = z.infer<typeof problem>;

/** The body of a request, in workerd and in Node. */
export type Payload = NonNullable<RequestInit["body"]>;

/** The key of a role, by name, or a key itself. */
export type KeyName = "operator" | "router" | `cell ${string}` | MintedKey;

export type MintedKey = `lhk_${string}`;

export interface Sent {
  /** Null sends no key. */
  key?: KeyName | null | undefined;
  /** The body, sent as JSON. */
  body?: unknown;
  /** The body, sent unchanged. */
  raw?: Payload | undefined;
  headers?: Record<string, string>;
}

export interface Received {
  status: number;
  headers: Headers;
  text: string;
  json: unknown;
}

/** How a client reaches a coordinator. */
export interface Reachable {
  url: string;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  keyOf: (name: KeyName) => string | Promise<string>;
}

export class Client {
  readonly url: string;
  readonly fetch: Reachable["fetch"];
  readonly #keyOf: Reachable["keyOf"];

  constructor({ url, fetch, keyOf }: Reachable) {
    this.url = url;
    this.fetch = fetch;
    this.#keyOf = keyOf;
  }

  async authorization(key: KeyName): Promise<string> {
    return `Bearer ${await this.#keyOf(key)}`;
  }

  async send(
    method: string,
    path: string,
    { key = "operator", body, raw, headers = {} }: Sent = {},
  ): Promise<Received> {
    const given = new Headers(headers);
    if (key !== null) given.set("authorization", await this.authorization(key));
    if (body !== undefined && !given.has("content-type")) given.set("content-type", "application/json");
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await this.fetch(this.url + path, {
      method,
      headers: given,
      ...(payload === undefined ? {} : bodyInit(payload)),
    });
    // Read as bytes, because workerd warns about text whose media type does not declare it.
    const text = new TextDecoder().decode(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  }

  /** Sends a request and expects a problem with this status. */
  async problem(
    status: number,
    ...call: Parameters<Client["send"]>
  ): Promise<Problem & { headers: Headers }> {
    const received = await this.send(...call);
    expect(`${received.status} ${received.text}`).toMatch(new RegExp(`^${status} `));
    return { ...problemIn(received), headers: received.headers };
  }

  /** Sends a request and expects JSON with this status. */
  async json<T = Record<string, never>>(status: number, ...call: Parameters<Client["send"]>): Promise<T> {
    const received = await this.send(...call);
    expect(`${received.status} ${received.text}`).toMatch(new RegExp(`^${status} `));
    return received.json as T;
  }
}

/** Node sends a stream only in half-duplex mode: the answer is read after the stream has ended. */
const bodyInit = (body: Payload): RequestInit => ({
  body,
  ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
});

/** Checks everything that is true for every problem. */
export function problemIn({ status, headers, json, text }: Received): Problem {
  expect(headers.get("content-type")).toBe("application/problem+json");
  // In a terminal, the prompt then begins on a line of its own.
  expect(text).toMatch(/\}\n$/);
  const made = problem.parse(json);
  expect(made.status).toBe(status);
  expect(made.type).toBe(`/docs#error-${made.code.toLowerCase()}`);
  expect(made.request_id).toBe(headers.get("x-request-id"));
  expect(made.detail).toMatch(/^[A-Z`"U\d].*[.!?]$/s);
  const waits = made.code === "ABORTED" || status === 429 || status === 503;
  if (waits) expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  else expect(headers.has("retry-after")).toBe(false);
  // Nothing that went wrong may be kept. Only routers may keep for a second that no cell has a name.
  const isForRouters = made.code === "NOT_FOUND" && (made.route ?? made.message) !== undefined;
  const isKept = headers.get("cache-control") !== "no-store";
  if (isKept) expect(headers.get("cache-control")).toBe("private, max-age=1");
  expect(isKept && !isForRouters).toBe(false);
  if (made.route !== undefined) expect(isKept).toBe(made.route.settled);
  expect(headers.has("www-authenticate")).toBe(status === 401);
  expect(headers.has("allow")).toBe(status === 405);
  return made;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
