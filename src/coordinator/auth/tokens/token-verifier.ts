import type { Identities, Issuer, Grant, TokenRule } from "../../capabilities/identities/identities.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Clock, Log } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { Principal } from "../principal.ts";
import { CLOCK_ERROR_S } from "../verifier.ts";
import { IssuerKeys } from "./remote-keys.ts";
import { isAcceptedAlgorithm } from "./forms.ts";
import { isKeyFor, type PublicKey } from "./public-keys.ts";
import { tokenIdOf } from "../made-key-id.ts";
import {
  findSigner,
  isFor,
  MAX_TOKEN_LENGTH,
  readWebToken,
  type Claims,
  type WebToken,
} from "./web-token.ts";

/** The clocks of an issuer and of this machine may differ by this much. */
const TOLERANCE_MS = 60_000;
const MAX_SUBJECT_LENGTH = 1_024;
/** Longer tokens are checked each time, so that those that are remembered take little memory. */
const MAX_REMEMBERED_LENGTH = 4_096;

/** A token whose signature is to be checked. */
interface Candidate extends WebToken {
  text: string;
  identities: Identities;
}

/** Verifies JSON web tokens of the issuers that the identities name. An isolate has one per deployment. */
export class TokenVerifier {
  readonly #limits: Limits;
  readonly #keys: IssuerKeys;
  /**
   * Accepted tokens and the keys that have signed them, the least recently used first. Everything but the
   * signature is checked each time, so changes of the identities and of an issuer's keys count at once.
   */
  readonly #signers = new Map<string, PublicKey>();

  constructor(limits: Limits, clock: Pick<Clock, "after">, log: Log) {
    this.#limits = limits;
    this.#keys = new IssuerKeys(clock, log);
  }

  /**
   * Recognizes the token by the identities (A4). It doesn't check whether the token was revoked.
   *
   * @param header where the token was, unless it was a bearer; only issuers that name this header count
   */
  async verify(
    text: string,
    identities: Identities,
    nowMs: number,
    header?: string,
  ): Promise<Result<Principal>> {
    if (text.length > MAX_TOKEN_LENGTH) return invalid("is longer than 16,384 characters");
    const token = readWebToken(text);
    if (token === undefined) return invalid("is malformed, or has a header that is not supported");
    const { claims } = token;
    const ofIssuer = identities.issuers.filter(
      ({ issuer, tokenHeader }) =>
        issuer === claims["iss"] && (header === undefined || header === tokenHeader),
    );
    if (ofIssuer.length === 0) return invalid("is of an issuer that is not accepted");
    const issuers = ofIssuer.filter(({ audience }) => isFor(claims, audience));
    if (issuers.length === 0) return invalid("is for another audience");
    const expiresAtMs = this.#expiryOf(claims, nowMs);
    if (!expiresAtMs.ok) return expiresAtMs;
    const subject = subjectOf(claims);
    if (subject === undefined) return invalid("has no `sub`, or one of more than 1,024 characters");

    let refusal: Refusal = NO_RULE.refusal;
    let isSigned = false;
    for (const issuer of issuers) {
      const signer = await this.#signerOf({ ...token, text, identities }, issuer, nowMs);
      if (signer.ok) {
        const grant = grantOf(issuer.rules, claims);
        if (grant !== undefined) {
          this.#keep(text, signer.value);
          return ok({
            role: grant.role,
            cell: grant.cell,
            keyId: tokenIdOf(issuer.issuer, subject),
            expiresAtMs: expiresAtMs.value,
            credential: { kind: "token", issuedBy: issuer.name, name: subject },
          });
        }
        isSigned = true;
      } else if (signer.refusal.code === "UNAVAILABLE") return signer;
      else refusal = signer.refusal;
    }
    return isSigned ? NO_RULE : { ok: false, refusal };
  }

  /** Checks the times of a token, and returns when it expires. */
  #expiryOf({ exp, nbf, iat }: Claims, nowMs: number): Result<number> {
    if (!isTime(exp)) return invalid("has no valid `exp`");
    for (const from of [nbf, iat]) {
      if (from === undefined) continue;
      if (!isTime(from)) return invalid("has an `nbf` or `iat` that is no time");
      if (from * 1_000 > nowMs + TOLERANCE_MS) return invalid("is not valid yet");
    }
    const expiresAtMs = Math.floor(exp * 1_000);
    if (expiresAtMs <= nowMs) return EXPIRED;
    const sinceS = (iat ?? nbf) as number | undefined;
    if (sinceS === undefined) return invalid("has no `iat` and no `nbf`");
    // A revocation is remembered for the longest life of a key, so a token that is valid for longer could
    // outlive it (A1). As for keys, this is counted from now, too.
    const maxMs = (this.#limits.keyLifetimeS + CLOCK_ERROR_S) * 1_000;
    return expiresAtMs - Math.min(sinceS * 1_000, nowMs) > maxMs
      ? invalid("is valid for longer than a key may be")
      : ok(expiresAtMs);
  }

  /** Returns the issuer's key that has signed the token. */
  async #signerOf(candidate: Candidate, issuer: Issuer, nowMs: number): Promise<Result<PublicKey>> {
    const { text, alg, identities } = candidate;
    if (!isAcceptedAlgorithm(alg) || !issuer.algorithms.includes(alg))
      return invalid("is signed with an algorithm that is not accepted");
    const keys = await this.#keys.get(issuer, identities, (key) => isKeyFor(key, candidate), nowMs);
    if (keys === undefined) return UNREADABLE;
    if (keys.length === 0) return invalid("is signed with an unknown key");
    const known = this.#signers.get(text);
    if (known !== undefined && keys.includes(known)) return ok(known);
    const signer = await findSigner(text, alg, keys);
    return signer === undefined ? invalid("has a wrong signature") : ok(signer);
  }

  #keep(text: string, signer: PublicKey): void {
    if (text.length > MAX_REMEMBERED_LENGTH) return;
    this.#signers.delete(text);
    this.#signers.set(text, signer);
    const [oldest] = this.#signers.keys();
    if (this.#signers.size > this.#limits.keyCache && oldest !== undefined) this.#signers.delete(oldest);
  }
}

const invalid = (why: string) => refused("UNAUTHENTICATED", `the token ${why}`);

const EXPIRED = refused("UNAUTHENTICATED", "the token has expired; get a new one", { reason: "KEY_EXPIRED" });
const NO_RULE = refused("PERMISSION_DENIED", "no rule of the token's issuer fits its claims");
const UNREADABLE = refused("UNAVAILABLE", "the keys of the token's issuer can't be read; try again later");

const isTime = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** The subject. Service tokens of Cloudflare Access have an empty one, and a name. */
function subjectOf({ sub, common_name: name }: Claims): string | undefined {
  const subject = sub === undefined || sub === "" ? name : sub;
  const isNamed = typeof subject === "string" && subject !== "" && subject.length <= MAX_SUBJECT_LENGTH;
  return isNamed ? subject : undefined;
}

/** Returns what the first rule grants whose claims all fit. */
const grantOf = (rules: readonly TokenRule[], claims: Claims): Grant | undefined =>
  rules.find((rule) =>
    Object.entries(rule.claims).every(([name, values]) => {
      const claimed = Object.hasOwn(claims, name) ? textsOf(claims[name]) : [];
      return claimed.some((text) => values.includes(text));
    }),
  );

const textsOf = (claim: unknown): string[] =>
  (Array.isArray(claim) ? (claim as unknown[]) : [claim]).flatMap((value) => textOf(value) ?? []);

/**
 * Returns the text that a rule compares. Numbers that JavaScript can't represent exactly have none, because
 * several of them become the same number.
 */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "boolean" || Number.isSafeInteger(value) ? String(value) : undefined;
}
