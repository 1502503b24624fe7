import type { Limits } from "../../common/limits.ts";
import { ok, refused, type Refusal, type Result } from "../kernel/refusal.ts";
import { Hmac, type Secrets } from "./secrets.ts";
import { makeKey, parseKey, type KeyPayload, type ParsedKey } from "./key.ts";
import type { Principal } from "./principal.ts";

/** The largest expected difference between the clock that made a key and this isolate's clock. */
export const CLOCK_ERROR_S = 300;

/**
 * Verifies keys with the deployment's secrets, and remembers keys that it has verified. An isolate has one
 * verifier per pair of secrets.
 */
export class KeyVerifier {
  readonly #limits: Limits;
  readonly #current: Hmac;
  readonly #accepted: readonly Hmac[];
  /**
   * Verified keys, the least recently used first, because a Map keeps the order of insertion. It has only
   * valid keys, so invalid ones cannot evict them.
   */
  readonly #checked = new Map<string, KeyPayload>();

  constructor(secrets: Secrets, limits: Limits) {
    this.#limits = limits;
    this.#current = new Hmac(secrets.current);
    this.#accepted =
      secrets.previous === undefined ? [this.#current] : [this.#current, new Hmac(secrets.previous)];
  }

  /** Signs with the current secret. */
  make(payload: KeyPayload): Promise<string> {
    return makeKey(payload, this.#current);
  }

  /** Verifies a key and returns its principal. It doesn't check whether the key was revoked. */
  async verify(token: string, nowMs: number): Promise<Result<Principal>> {
    const payload = this.#remembered(token) ?? (await this.#check(token));
    if (payload === undefined || !this.#isShortLived(payload, nowMs))
      return badKey("the key is not valid in this deployment; get a valid key");
    if (payload.exp * 1_000 <= nowMs) return keyExpired;
    return ok({
      role: payload.role,
      keyId: payload.id,
      expiresAtMs: payload.exp * 1_000,
      cell: payload.cell ?? null,
      credential: { kind: "key" },
    });
  }

  /**
   * Whether the key's lifetime is within the limit, counted from now as well as from `iat`. A revocation is
   * remembered for the longest lifetime of a key, so a key dated in the future would outlive its own
   * revocation.
   */
  #isShortLived({ iat, exp }: KeyPayload, nowMs: number): boolean {
    const { keyLifetimeS } = this.#limits;
    return exp - iat <= keyLifetimeS && exp * 1_000 <= nowMs + (keyLifetimeS + CLOCK_ERROR_S) * 1_000;
  }

  #remembered(token: string): KeyPayload | undefined {
    const payload = this.#checked.get(token);
    if (payload === undefined) return undefined;
    this.#checked.delete(token);
    this.#checked.set(token, payload);
    return payload;
  }

  async #check(token: string): Promise<KeyPayload | undefined> {
    const parsed = parseKey(token);
    if (parsed === undefined || !(await this.#isSigned(parsed))) return undefined;
    this.#checked.set(token, parsed.payload);
    const [oldest] = this.#checked.keys();
    if (this.#checked.size > this.#limits.keyCache && oldest !== undefined) this.#checked.delete(oldest);
    return parsed.payload;
  }

  async #isSigned({ signed, signature }: ParsedKey): Promise<boolean> {
    for (const hmac of this.#accepted) if (await hmac.verify(signed, signature)) return true;
    return false;
  }
}

/** The key or token in an `Authorization` header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^bearer +(\S+)$/i.exec(authorization?.trim() ?? "")?.[1];

export const keyExpired = refused("UNAUTHENTICATED", "the key has expired; get a new one", {
  reason: "KEY_EXPIRED",
});

export const keyMissing = refused(
  "UNAUTHENTICATED",
  "the key is missing; send `Authorization: Bearer <key>`",
);

const badKey = (detail: string, more: Pick<Refusal, "reason"> = {}): { ok: false; refusal: Refusal } =>
  refused("UNAUTHENTICATED", detail, more);
