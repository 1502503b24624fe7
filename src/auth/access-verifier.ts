import { decode, verify } from "hono/jwt";
import * as z from "zod";
import { ask } from "../core/ask.ts";
import type { Clock } from "../core/ports.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { AccessSettings } from "./access-settings.ts";
import { asciiLowerCase } from "./ascii-lower-case.ts";
import type { ConsoleRole } from "./console-sessions.ts";

/** A user of Cloudflare Access who may use the console. */
export interface AccessUser {
  /** Access's own id of the user. It stays the same when the address changes. */
  id: string;
  email: string;
  role: ConsoleRole;
  issuedAtMs: number;
  expiresAtMs: number;
}

/** Access changes its keys every six weeks, and signs with the new one only after it was published. */
const KEYS_MS = 3_600_000;
/** An assertion can name any key, so keys are read again for it only this often. */
const READ_AGAIN_MS = 60_000;
/** After a failed read, nothing is read for this time. */
const AFTER_FAILURE_MS = 10_000;
const READ_TIMEOUT_MS = 3_000;
const MAX_KEYS_LENGTH = 65_536;
const MAX_ASSERTION_LENGTH = 16_384;
/** The clocks of Access and of this machine may differ by this much. */
const CLOCK_ERROR_MS = 60_000;

const keySet = z.object({
  keys: z.array(z.looseObject({ kid: z.string(), kty: z.literal("RSA"), n: z.string(), e: z.string() })),
});

const claims = z.object({
  sub: z.uuid(),
  email: z.string().max(320),
  iat: z.number(),
  exp: z.number(),
  nbf: z.number().optional(),
});

type Keys = z.output<typeof keySet>["keys"];

/** A read of the keys, which may still be running. */
interface Reading {
  startedAtMs: number;
  keys: Promise<Result<Keys>>;
}

const invalid = (why: string) => refused("UNAUTHENTICATED", `the assertion of Cloudflare Access ${why}`);

/** Checks what Cloudflare Access adds to requests, against the keys of the team. */
export class AccessVerifier {
  readonly #settings: AccessSettings;
  readonly #clock: Pick<Clock, "after">;
  #known: { keys: Keys; readAtMs: number } | undefined;
  /** The latest read, while it runs or after it has failed. */
  #reading: Reading | undefined;

  constructor(settings: AccessSettings, clock: Pick<Clock, "after">) {
    this.#settings = settings;
    this.#clock = clock;
  }

  /** Refuses an assertion that is not valid now, and a user who has no role. */
  async verify(assertion: string, nowMs: number): Promise<Result<AccessUser>> {
    const keyId = assertion.length > MAX_ASSERTION_LENGTH ? undefined : keyIdOf(assertion);
    if (keyId === undefined) return invalid("is malformed");
    const keys = await this.#keysFor(keyId, nowMs);
    if (!keys.ok) return keys;
    const key = keys.value.find(({ kid }) => kid === keyId);
    if (key === undefined) return invalid("is signed with an unknown key");
    const { issuer, audience } = this.#settings;
    let payload: unknown;
    try {
      // The clock of the deployment decides about its times, below.
      const times = { exp: false, nbf: false, iat: false };
      payload = await verify(assertion, key, { alg: "RS256", iss: issuer, aud: audience, ...times });
    } catch {
      return invalid("is not valid for this application");
    }
    const read = claims.safeParse(payload);
    if (!read.success) return invalid("is not of a person; service tokens can't use the console");
    const { sub, email, iat, exp, nbf = iat } = read.data;
    if (exp * 1_000 <= nowMs) return invalid("has expired; reload the page");
    if (Math.max(nbf, iat) * 1_000 > nowMs + CLOCK_ERROR_MS) return invalid("is not valid yet");
    const role = this.#roleOf(asciiLowerCase(email));
    if (role === undefined)
      return refused(
        "PERMISSION_DENIED",
        `${email} has no role here; add it to LEASEHOLD_ACCESS_OPERATORS or LEASEHOLD_ACCESS_VIEWERS`,
      );
    return ok({ id: sub, email, role, issuedAtMs: iat * 1_000, expiresAtMs: exp * 1_000 });
  }

  #roleOf(email: string): ConsoleRole | undefined {
    const domain = `*${email.slice(email.lastIndexOf("@"))}`;
    const isIn = (emails: readonly string[]): boolean => emails.includes(email) || emails.includes(domain);
    if (isIn(this.#settings.operators)) return "operator";
    return isIn(this.#settings.viewers) ? "viewer" : undefined;
  }

  async #keysFor(keyId: string, nowMs: number): Promise<Result<Keys>> {
    const known = this.#known;
    const ageMs = known === undefined ? Infinity : nowMs - known.readAtMs;
    const hasKey = known?.keys.some(({ kid }) => kid === keyId) === true;
    if (known !== undefined && ageMs < (hasKey ? KEYS_MS : READ_AGAIN_MS)) return ok(known.keys);
    const latest = this.#reading;
    if (latest === undefined || nowMs - latest.startedAtMs >= AFTER_FAILURE_MS) return this.#read(nowMs);
    // The read belongs to another request, and never ends if that is cancelled. So it needs its own timer.
    const read = await ask(this.#clock, READ_TIMEOUT_MS, () => latest.keys);
    return read.kind === "ok" ? ok(read.value) : UNREADABLE;
  }

  #read(nowMs: number): Promise<Result<Keys>> {
    const reading: Reading = { startedAtMs: nowMs, keys: this.#readOnce(nowMs) };
    this.#reading = reading;
    return reading.keys;
  }

  async #readOnce(nowMs: number): Promise<Result<Keys>> {
    try {
      const keys = await readKeys(`${this.#settings.issuer}/cdn-cgi/access/certs`);
      this.#known = { keys, readAtMs: nowMs };
      this.#reading = undefined;
      return ok(keys);
    } catch {
      return UNREADABLE;
    }
  }
}

const UNREADABLE = refused("UNAVAILABLE", "the keys of Cloudflare Access can't be read; try again later");

function keyIdOf(assertion: string): string | undefined {
  try {
    const { kid } = decode(assertion).header;
    return typeof kid === "string" ? kid : undefined;
  } catch {
    return undefined;
  }
}

async function readKeys(url: string): Promise<Keys> {
  const answer = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(READ_TIMEOUT_MS) });
  const text = await answer.text();
  if (!answer.ok || text.length > MAX_KEYS_LENGTH) throw new Error(`HTTP ${answer.status}`);
  return keySet.parse(JSON.parse(text)).keys;
}
