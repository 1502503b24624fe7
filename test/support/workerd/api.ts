import { applyD1Migrations, createExecutionContext, reset, type D1Migration } from "cloudflare:test";
import { env as bindings } from "cloudflare:workers";
import { v4 as newUuid } from "uuid";
import { expect } from "vitest";
import type * as z from "zod";
import { Hmac } from "../../../src/auth/hmac.ts";
import { makeKey, type KeyPayload } from "../../../src/auth/key.ts";
import type { Env } from "../../../src/env.ts";
import { app } from "../../../src/http/app.ts";
import { problem } from "../../../src/http/contract/schemas.ts";

export const env = bindings as unknown as Env & { TEST_MIGRATIONS: D1Migration[]; LEASEHOLD_SIGNING_SECRET: string };

export type Problem = z.infer<typeof problem>;

export interface Sent {
  /** A role's key by name, a key itself, or null for none. */
  key?: "operator" | "router" | `cell ${string}` | `lhk_${string}` | null | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is. */
  raw?: BodyInit | undefined;
  headers?: Record<string, string>;
}

export interface Received {
  status: number;
  headers: Headers;
  text: string;
  json: unknown;
}

/** The application as one isolate runs it, with an environment of its own: nothing is cached between two of them. */
export class Api {
  readonly env: Env;

  constructor(changes: Partial<Record<string, unknown>> = {}) {
    this.env = { ...env, ...changes };
  }

  async send(method: string, path: string, { key = "operator", body, raw, headers = {} }: Sent = {}): Promise<Received> {
    const given = new Headers(headers);
    if (key !== null) given.set("authorization", `Bearer ${await keyOf(key)}`);
    if (body !== undefined && !given.has("content-type")) given.set("content-type", "application/json");
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const request = new Request(`https://leasehold.test${path}`, { method, headers: given, ...(payload === undefined ? {} : { body: payload }) });
    const response = await app.fetch(request, this.env, createExecutionContext());
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  }

  /** Sends, and expects a problem of this status. */
  async problem(status: number, ...call: Parameters<Api["send"]>): Promise<Problem & { headers: Headers }> {
    const received = await this.send(...call);
    expect(`${received.status} ${received.text}`).toMatch(new RegExp(`^${status} `));
    return { ...problemIn(received), headers: received.headers };
  }

  /** Sends, and expects JSON under this status. */
  async json<T = Record<string, never>>(status: number, ...call: Parameters<Api["send"]>): Promise<T> {
    const received = await this.send(...call);
    expect(`${received.status} ${received.text}`).toMatch(new RegExp(`^${status} `));
    return received.json as T;
  }
}

/** Checks everything that holds for every problem. */
export function problemIn({ status, headers, json }: Received): Problem {
  expect(headers.get("content-type")).toBe("application/problem+json");
  const made = problem.parse(json);
  expect(made.status).toBe(status);
  expect(made.type).toBe(`/docs#error-${made.code.toLowerCase()}`);
  expect(made.request_id).toBe(headers.get("x-request-id"));
  expect(made.detail).toMatch(/^[A-Z`"U\d].*[.!?]$/s);
  const waits = made.code === "ABORTED" || status === 429 || status === 503;
  if (waits) expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  else expect(headers.has("retry-after")).toBe(false);
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

const kept = new Map<string, Promise<string>>();

/** One key per role, made offline. */
function keyOf(key: NonNullable<Sent["key"]>): Promise<string> {
  if (key.startsWith("lhk_")) return Promise.resolve(key);
  const cell = /^cell (.+)$/.exec(key)?.[1];
  const made = kept.get(key) ?? signedKey(cell === undefined ? { role: key as "operator" | "router" } : { role: "cell", cell });
  kept.set(key, made);
  return made;
}

/** A key with this payload, of the tests' own secret unless another one is given. */
export async function signedKey(payload: Partial<KeyPayload>, secret: string = env.LEASEHOLD_SIGNING_SECRET): Promise<`lhk_${string}`> {
  const iat = Math.floor(Date.now() / 1_000) - 10;
  return (await makeKey({ v: 1, id: newUuid(), role: "operator", iat, exp: iat + 3_600, ...payload }, new Hmac(secret))) as `lhk_${string}`;
}

/** An empty deployment with these cells. */
export async function startDeployment(...cells: string[]): Promise<Api> {
  await reset();
  await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
  const api = new Api();
  for (const cell of cells)
    await api.json(201, "POST", "/v1/admin/cells", { body: { cell_id: cell, name: `Cell ${cell}`, address: addressOf(cell) } });
  return api;
}

export const addressOf = (cell: string): string => `https://cell-${cell}.example`;
