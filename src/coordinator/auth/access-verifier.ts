import * as z from "zod";
import type { Clock, Log } from "../kernel/ports.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import type { AccessSettings } from "./access-settings.ts";
import { asciiLowerCase } from "./ascii-lower-case.ts";
import type { ConsoleRole } from "./console-sessions.ts";
import { isKeyFor } from "./tokens/public-keys.ts";
import { logFailedRead, RemoteKeys } from "./tokens/remote-keys.ts";

/** A user of Cloudflare Access who may use the console. */
export interface AccessUser {
  /** Access's own id of the user. It stays the same when the address changes. */
  id: string;
  email: string;
  role: ConsoleRole;
  issuedAtMs: number;
  expiresAtMs: number;
}

/** The clocks of Access and of this machine may differ by this much. */
const CLOCK_ERROR_MS = 60_000;
const ALGORITHM = "RS256";

const claims = z.object({
  sub: z.uuid(),
  email: z.string().max(320),
  iat: z.number(),
  exp: z.number(),
  nbf: z.number().optional(),
});

const invalid = (why: string) => refused("UNAUTHENTICATED", `the assertion of Cloudflare Access ${why}`);

/** Checks what Cloudflare Access adds to requests, against the keys of the team. */
export class AccessVerifier {
  readonly #settings: AccessSettings;
  readonly #keys: RemoteKeys;

  constructor(settings: AccessSettings, clock: Pick<Clock, "after">, log: Log) {
    this.#settings = settings;
    this.#keys = new RemoteKeys(`${settings.issuer}/cdn-cgi/access/certs`, clock, (failure) =>
      logFailedRead(log, settings.issuer, failure),
    );
  }

  /** Refuses an assertion that is not valid now, and a user who has no role. */
  async verify(assertion: string, nowMs: number): Promise<Result<AccessUser>> {
    // Most isolates never see an assertion.
    const { findSigner, isFor, readWebToken } = await import("./tokens/web-token.ts");
    const token = readWebToken(assertion);
    if (token?.kid === undefined) return invalid("is malformed");
    const { alg, claims: payload } = token;
    const { issuer, audience } = this.#settings;
    if (alg !== ALGORITHM || payload["iss"] !== issuer || !isFor(payload, audience))
      return invalid("is not valid for this application");
    const keys = await this.#keys.get((key) => isKeyFor(key, token), nowMs);
    if (keys === undefined) return UNREADABLE;
    if (keys.length === 0) return invalid("is signed with an unknown key");
    if ((await findSigner(assertion, alg, keys)) === undefined)
      return invalid("is not valid for this application");
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
}

const UNREADABLE = refused("UNAVAILABLE", "the keys of Cloudflare Access can't be read; try again later");
