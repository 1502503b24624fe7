import {
  applyD1Migrations,
  createExecutionContext,
  waitOnExecutionContext,
  type D1Migration,
} from "cloudflare:test";
import { env as bindings } from "cloudflare:workers";
import { v4 as newUuid } from "uuid";
import { Hmac } from "../../../src/coordinator/auth/secrets.ts";
import { makeKey, type KeyPayload } from "../../../src/coordinator/auth/key.ts";
import type { Env } from "../../../src/coordinator/env.ts";
import { serveRequest } from "../../../src/coordinator/api/web-request.ts";
import { Client, type KeyName } from "../../suites/conformance/client.ts";
import { addressOf } from "../../suites/conformance/leases.ts";
import { resetAll } from "./reset-all.ts";

export const env = bindings as unknown as Env & {
  TEST_MIGRATIONS: D1Migration[];
  LEASEHOLD_SIGNING_SECRET: string;
};

/** The application as one isolate runs it, with an environment of its own. Two instances share no cache. */
export class Api extends Client {
  readonly env: Env;

  constructor(changes: Partial<Record<string, unknown>> = {}) {
    const own: Env = { ...env, ...changes };
    super({
      url: URL_OF_ALL,
      // What a request leaves to do is done before the next one, so that tests see whose calls they are.
      fetch: async (url, init) => {
        const context = createExecutionContext();
        const response = await serveRequest(new Request(url, init), own, context);
        await waitOnExecutionContext(context);
        return response;
      },
      keyOf,
    });
    this.env = own;
  }
}

/** A URL that is never resolved: every request goes directly to the application. */
const URL_OF_ALL = "https://leasehold.test";

const kept = new Map<string, Promise<string>>();

/** Returns one key per role, made without a request. */
export function keyOf(key: KeyName): Promise<string> {
  if (key.startsWith("lhk_")) return Promise.resolve(key);
  const cell = /^cell (.+)$/.exec(key)?.[1];
  const made =
    kept.get(key) ??
    signedKey(cell === undefined ? { role: key as "operator" | "router" } : { role: "cell", cell });
  kept.set(key, made);
  return made;
}

/** Returns a key with this payload, by default signed with the tests' own secret. */
export async function signedKey(
  payload: Partial<KeyPayload>,
  secret: string = env.LEASEHOLD_SIGNING_SECRET,
): Promise<`lhk_${string}`> {
  const iat = Math.floor(Date.now() / 1_000) - 10;
  return (await makeKey(
    { v: 1, id: newUuid(), role: "operator", iat, exp: iat + 3_600, ...payload },
    new Hmac(secret),
  )) as `lhk_${string}`;
}

/** Starts an empty deployment with these cells. */
export async function startDeployment(...cells: string[]): Promise<Api> {
  // Files share this module, and some of them set the clock with which keys are made.
  kept.clear();
  await resetAll(env);
  await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
  const api = new Api();
  for (const cell of cells)
    await api.json(201, "POST", "/v1/admin/cells", {
      body: { cell_id: cell, name: `Cell ${cell}`, address: addressOf(cell) },
    });
  return api;
}
