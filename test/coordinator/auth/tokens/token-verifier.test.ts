/** Which JSON web tokens are recognized, and as whom. */
import { exportSPKI, importJWK, SignJWT, type CryptoKey } from "jose";
import { describe, expect, test } from "vitest";
import { madeKeyId } from "../../../../src/coordinator/auth/made-key-id.ts";
import { algorithms } from "../../../../src/coordinator/auth/tokens/forms.ts";
import { TokenVerifier } from "../../../../src/coordinator/auth/tokens/token-verifier.ts";
import type {
  Identities,
  TokenRule,
} from "../../../../src/coordinator/capabilities/identities/identities.ts";
import { defaultLimits } from "../../../../src/common/limits.ts";
import { privateField } from "../../../support/private-fields.ts";
import {
  AUDIENCE,
  ec,
  forge,
  identitiesOf,
  ISS,
  issuerOf,
  newPair,
  NOW_MS,
  NOW_S,
  other,
  rsa,
  sign,
  TestTimers,
} from "./test-issuer.ts";

const newVerifier = (limits = defaultLimits): TokenVerifier =>
  new TokenVerifier(limits, new TestTimers(), () => {});
const verify = (token: string, identities = identitiesOf(issuerOf()), nowMs = NOW_MS) =>
  newVerifier().verify(token, identities, nowMs);

/** The role, or the code and the detail of the refusal. */
async function outcome(token: string, identities?: Identities, nowMs?: number): Promise<string> {
  const verified = await verify(token, identities, nowMs);
  return verified.ok ? verified.value.role : `${verified.refusal.code}: ${verified.refusal.detail}`;
}

const idOf = (subject: string): string =>
  madeKeyId(new TextEncoder().encode(JSON.stringify(["token", ISS, subject])));

const claimsOf = (claims: Record<string, unknown>): string =>
  JSON.stringify({
    iss: ISS,
    aud: AUDIENCE,
    sub: "repo:acme/app",
    iat: NOW_S,
    exp: NOW_S + 3_600,
    ...claims,
  });

describe("a valid token", () => {
  test("[A4] gives the role and cell of the rule, and an id made from its issuer and subject", async () => {
    const rules: TokenRule[] = [{ claims: { sub: ["repo:acme/app"] }, role: "cell", cell: "7" }];
    expect(await verify(await sign(), identitiesOf(issuerOf({ rules })))).toEqual({
      ok: true,
      value: {
        role: "cell",
        cell: "7",
        keyId: idOf("repo:acme/app"),
        expiresAtMs: NOW_MS + 3_600_000,
        credential: { kind: "token", issuedBy: "test", name: "repo:acme/app" },
      },
    });
  });

  test.each(algorithms)("may be signed with %s", async (alg) => {
    const pair = await newPair(alg, "key");
    const issuer = issuerOf({ algorithms: [alg], keys: [pair.jwk] });
    expect(await outcome(await sign({}, pair), identitiesOf(issuer))).toBe("operator");
  });

  test("may be for several audiences", async () => {
    expect(await outcome(await sign({ aud: ["x", AUDIENCE] }))).toBe("operator");
  });

  test.each([
    ["no `sub`", { sub: undefined, common_name: "robot.access" }],
    ["an empty `sub`", { sub: "", common_name: "robot.access" }],
  ])("with %s is of its `common_name`", async (_, claims) => {
    expect(await verify(await sign(claims))).toMatchObject({ value: { keyId: idOf("robot.access") } });
  });

  test("needs no `kid` if one of the keys has signed it", async () => {
    const keys = [other.jwk, ec.jwk];
    const { kid: _, ...withoutName } = ec.jwk;
    const token = await sign({}, ec, { kid: undefined });
    expect(await outcome(token, identitiesOf(issuerOf({ keys })))).toBe("operator");
    expect(await outcome(await sign(), identitiesOf(issuerOf({ keys: [withoutName] })))).toBe("operator");
  });

  test("may be dated 60 s in the future", async () => {
    expect(await outcome(await sign({ nbf: NOW_S + 60, iat: NOW_S + 60 }))).toBe("operator");
  });
});

describe("[A4] a token is refused", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["is of another issuer", { iss: "https://evil.example" }, "is of an issuer that is not accepted"],
    ["has no issuer", { iss: undefined }, "is of an issuer that is not accepted"],
    ["has a list of issuers", { iss: [ISS] }, "is of an issuer that is not accepted"],
    ["is for another audience", { aud: "https://other.example" }, "is for another audience"],
    ["has no audience", { aud: undefined }, "is for another audience"],
    ["has an audience that is no text", { aud: { [AUDIENCE]: true } }, "is for another audience"],
    ["has no expiry", { exp: undefined }, "has no valid `exp`"],
    ["has an expiry that is text", { exp: String(NOW_S + 60) }, "has no valid `exp`"],
    ["has expired", { exp: NOW_S }, "has expired; get a new one"],
    ["is not valid yet", { nbf: NOW_S + 61 }, "is not valid yet"],
    ["was issued in the future", { iat: NOW_S + 61 }, "is not valid yet"],
    ["has an `nbf` that is text", { nbf: "0" }, "has an `nbf` or `iat` that is no time"],
    [
      "is valid for longer than a key",
      { exp: NOW_S + defaultLimits.keyLifetimeS + 301 },
      "is valid for longer than a key may be",
    ],
    [
      "was valid for longer than a key, and expires soon",
      { iat: NOW_S - defaultLimits.keyLifetimeS - 300, exp: NOW_S + 1 },
      "is valid for longer than a key may be",
    ],
    [
      "was valid for longer than a key by its `nbf`",
      { iat: undefined, nbf: NOW_S - defaultLimits.keyLifetimeS - 300, exp: NOW_S + 1 },
      "is valid for longer than a key may be",
    ],
    ["doesn't say since when it is valid", { iat: undefined }, "has no `iat` and no `nbf`"],
    ["never expires", { exp: 1e300 }, "is valid for longer than a key may be"],
    ["has no subject", { sub: undefined }, "has no `sub`, or one of more than 1,024 characters"],
    ["has a subject that is no text", { sub: 7, common_name: "x" }, "has no `sub`, or one of more"],
    ["has a long subject", { sub: "x".repeat(1_025) }, "has no `sub`, or one of more"],
  ])("that %s", async (_, claims, why) => {
    expect(await outcome(await sign(claims))).toContain(`UNAUTHENTICATED: the token ${why}`);
  });

  test("that has expired, with a reason of its own", async () => {
    const token = await sign();
    expect(await outcome(token, undefined, NOW_MS + 3_599_999)).toBe("operator");
    expect(await verify(token, undefined, NOW_MS + 3_600_000)).toMatchObject({
      refusal: { code: "UNAUTHENTICATED", reason: "KEY_EXPIRED" },
    });
  });

  test("that expires later than a key may, and no earlier", async () => {
    expect(await outcome(await sign({ exp: NOW_S + defaultLimits.keyLifetimeS + 300 }))).toBe("operator");
    const oldest = { iat: NOW_S - defaultLimits.keyLifetimeS - 299, exp: NOW_S + 1 };
    expect(await outcome(await sign(oldest))).toBe("operator");
  });

  test("that is unsigned", async () => {
    for (const alg of ["none", "None", ""])
      for (const signature of ["", "AA"])
        expect(await outcome(forge({ alg, kid: "ec" }, claimsOf({}), signature))).toContain(
          "the token is signed with an algorithm that is not accepted",
        );
    const issuer = issuerOf({ algorithms: ["none", "HS256"] });
    expect(await outcome(forge({ alg: "none" }, claimsOf({})), identitiesOf(issuer))).toContain(
      "the token is signed with an algorithm that is not accepted",
    );
  });

  test("that is signed with a public key as the secret, even if the document accepts HS256", async () => {
    const publicKey = (await importJWK(rsa.jwk, "RS256", { extractable: true })) as CryptoKey;
    const identities = identitiesOf(issuerOf({ algorithms: ["RS256", "HS256"] }));
    for (const secret of [await exportSPKI(publicKey), rsa.jwk["n"] ?? "", JSON.stringify(rsa.jwk)]) {
      const token = await new SignJWT(JSON.parse(claimsOf({})) as Record<string, unknown>)
        .setProtectedHeader({ alg: "HS256", kid: "rsa" })
        .sign(new TextEncoder().encode(secret));
      expect(await outcome(token, identities)).toContain("an algorithm that is not accepted");
    }
  });

  test("that is signed with an algorithm of another issuer, or of another kind of key", async () => {
    const onlyRsa = identitiesOf(issuerOf({ algorithms: ["RS256"] }));
    expect(await outcome(await sign(), onlyRsa)).toContain("an algorithm that is not accepted");
    expect(await outcome(forge({ alg: "RS256", kid: "ec" }, claimsOf({}), "AAAA"))).toContain(
      "an unknown key",
    );
  });

  test("that is changed, or signed with another key of the same name", async () => {
    const [head = "", , signature = ""] = (await sign()).split(".");
    const body = Buffer.from(claimsOf({ sub: "root" })).toString("base64url");
    for (const token of [`${head}.${body}.${signature}`, await sign({}, { ...other, kid: "ec" })])
      expect(await outcome(token)).toBe("UNAUTHENTICATED: the token has a wrong signature");
    expect(await outcome(await sign({}, other))).toContain("is signed with an unknown key");
  });

  test("that brings its own key", async () => {
    const own = { jwk: other.jwk, jku: "http://127.0.0.1:1/jwks", x5u: "http://127.0.0.1:1/cert" };
    expect(await outcome(await sign({}, { ...other, kid: "ec" }, own))).toContain("a wrong signature");
    // Otherwise, such members mean nothing.
    expect(await outcome(await sign({}, ec, own))).toBe("operator");
  });

  test.each<[string, string]>([
    ["is empty", ""],
    ["has two parts", "e30.e30"],
    ["has four parts", "e30.e30.e30.e30"],
    ["is no base64url", "e30.e3+.AA"],
    ["is no JSON", forge({ alg: "ES256" }, "no", "AA")],
    ["has claims that are no object", forge({ alg: "ES256" }, "[1]", "AA")],
    ["has a header that is no object", forge(["ES256"], claimsOf({}), "AA")],
    ["has no algorithm", forge({}, claimsOf({}), "AA")],
    ["has an algorithm that is no text", forge({ alg: ["ES256"] }, claimsOf({}), "AA")],
    ["has a `kid` that is a number", forge({ alg: "ES256", kid: 7 }, claimsOf({}), "AA")],
    ["has a `kid` that is null", forge({ alg: "ES256", kid: null }, claimsOf({}), "AA")],
    ["has critical extensions", forge({ alg: "ES256", crit: ["b64"], b64: false }, claimsOf({}), "AA")],
    ["has an empty list of them", forge({ alg: "ES256", crit: [] }, claimsOf({}), "AA")],
    ["is an encrypted one", "e30.e30.e30.e30.e30"],
    ["has a byte that is no UTF-8", `${forge({ alg: "ES256" }, "").split(".")[0]}.-w.AA`],
  ])("as malformed if it %s", async (_, token) => {
    expect(await outcome(token)).toBe(
      "UNAUTHENTICATED: the token is malformed, or has a header that is not supported",
    );
  });

  test("if it is too long", async () => {
    const padded = async (length: number): Promise<string> => sign({ pad: "x".repeat(length) });
    expect(await outcome(await padded(12_000))).toBe("operator");
    expect(await outcome(await padded(12_300))).toContain("is longer than 16,384 characters");
  });

  test("without telling anything that it contains", async () => {
    const secret = "a-secret-text";
    const tokens = [
      await sign({ iss: secret }),
      await sign({ aud: secret }),
      await sign({ sub: secret }, { ...other, kid: secret }),
      await sign({ sub: secret, exp: NOW_S }),
      forge({ alg: secret }, claimsOf({ sub: secret })),
    ];
    for (const token of tokens) expect(JSON.stringify(await verify(token))).not.toContain(secret);
  });
});

test("of a claim that is given twice, the last one counts everywhere", async () => {
  const token = async (payload: string): Promise<string> => {
    const head = Buffer.from(JSON.stringify({ alg: "ES256", kid: "ec" })).toString("base64url");
    const signed = `${head}.${Buffer.from(payload).toString("base64url")}`;
    const how = { name: "ECDSA", hash: "SHA-256" };
    const signature = await crypto.subtle.sign(how, ec.privateKey, Buffer.from(signed));
    return `${signed}.${Buffer.from(signature).toString("base64url")}`;
  };
  const before = (claim: string): string => `{${claim},${claimsOf({}).slice(1)}`;
  expect(await outcome(await token(before('"iss":"https://evil.example"')))).toBe("operator");
  const after = `${claimsOf({}).slice(0, -1)},"sub":"someone"}`;
  expect(await verify(await token(after))).toMatchObject({ value: { keyId: idOf("someone") } });
});

describe("[A4] rules", () => {
  const roleFor = (rules: TokenRule[], claims: Record<string, unknown> = {}) =>
    sign(claims).then((token) => outcome(token, identitiesOf(issuerOf({ rules }))));
  const rule = (claims: TokenRule["claims"], role: TokenRule["role"] = "viewer"): TokenRule => ({
    claims,
    role,
    cell: null,
  });

  test("the first that fits applies", async () => {
    const rules = [
      rule({ sub: ["x"] }),
      rule({ sub: ["x", "repo:acme/app"] }, "router"),
      rule({}, "operator"),
    ];
    expect(await roleFor(rules)).toBe("router");
  });

  test("a token that fits none may do nothing", async () => {
    for (const rules of [
      [],
      [rule({ sub: ["repo:acme"] })],
      [rule({ sub: [] })],
      [rule({ toString: ["x"] })],
    ])
      expect(await roleFor(rules)).toBe("PERMISSION_DENIED: no rule of the token's issuer fits its claims");
  });

  test("all claims of a rule must fit", async () => {
    const rules = [rule({ sub: ["repo:acme/app"], ref: ["refs/heads/main"] })];
    expect(await roleFor(rules)).toContain("PERMISSION_DENIED");
    expect(await roleFor(rules, { ref: "refs/heads/main" })).toBe("viewer");
  });

  test.each<[string, unknown, string, boolean]>([
    ["a text", "main", "main", true],
    ["a text in another case", "Main", "main", false],
    ["a part of a text", "main2", "main", false],
    ["a pattern", "main", "ma*", false],
    ["a list", ["a", "main"], "main", true],
    ["a list without it", ["a", "b"], "main", false],
    ["an empty list", [], "", false],
    ["a list in a list", [["main"]], "main", false],
    ["a boolean", true, "true", true],
    ["another boolean", false, "true", false],
    ["a number", 42, "42", true],
    ["a list of numbers", [1, 42], "42", true],
    ["a number with leading zeros", 42, "042", false],
    ["a number that is not exact", 2 ** 53, "9007199254740992", false],
    ["null", null, "null", false],
    ["an object", { main: "main" }, "main", false],
  ])("a claim that is %s", async (_, value, wanted, isFitting) => {
    const role = await roleFor([rule({ claim: [wanted] })], { claim: value });
    expect(role === "viewer").toBe(isFitting);
  });

  test("a nested claim is never reached", async () => {
    expect(await roleFor([rule({ "a.b": ["x"] })], { a: { b: "x" } })).toContain("PERMISSION_DENIED");
  });
});

describe("[A4] several entries for one issuer", () => {
  const viewers = issuerOf({ rules: [{ claims: { ref: ["main"] }, role: "viewer", cell: null }] });

  test("those for the token's audience count, in their order", async () => {
    const elsewhere = issuerOf({ audience: "elsewhere" });
    expect(await outcome(await sign({ ref: "main" }), identitiesOf(elsewhere, viewers, issuerOf()))).toBe(
      "viewer",
    );
    expect(await outcome(await sign(), identitiesOf(elsewhere, viewers, issuerOf()))).toBe("operator");
    expect(await outcome(await sign(), identitiesOf(elsewhere, viewers))).toContain("PERMISSION_DENIED");
  });

  test("each has its own keys and algorithms", async () => {
    const onlyRsa = issuerOf({ algorithms: ["RS256"] });
    const otherKeys = issuerOf({ keys: [other.jwk] });
    const identities = identitiesOf(onlyRsa, otherKeys);
    expect(await outcome(await sign(), identities)).toContain("is signed with an unknown key");
    expect(await outcome(await sign({}, other), identities)).toBe("operator");
    expect(await outcome(await sign({}, rsa), identities)).toBe("operator");
    // What a signed token may not do is told rather than what another entry refuses.
    expect(await outcome(await sign(), identitiesOf(viewers, otherKeys))).toContain("PERMISSION_DENIED");
  });
});

describe("accepted tokens are remembered", () => {
  const signersOf = (verifier: TokenVerifier) => privateField(verifier, "#signers") as Map<string, unknown>;

  test("[M6] those that were used last, and no others", async () => {
    const verifier = newVerifier({ ...defaultLimits, keyCache: 2 });
    const identities = identitiesOf(issuerOf());
    const tokens = await Promise.all(["a", "b", "c"].map((sub) => sign({ sub })));
    const [a = "", b = "", c = ""] = tokens;
    const accept = (token: string) => verifier.verify(token, identities, NOW_MS);
    for (const token of [a, b, a, c]) expect(await accept(token)).toMatchObject({ ok: true });
    for (const bad of [await sign({ sub: "x" }, other), await sign({ exp: 1 }), "a.b.c"]) await accept(bad);
    expect(await accept(await sign({ pad: "x".repeat(4_096) }))).toMatchObject({ ok: true });
    expect([...signersOf(verifier).keys()]).toEqual([a, c]);
  });

  test("[A4] changed identities and times count at once", async () => {
    const verifier = newVerifier();
    const token = await sign();
    const at = async (identities: Identities, nowMs = NOW_MS): Promise<string> => {
      const verified = await verifier.verify(token, identities, nowMs);
      return verified.ok ? verified.value.role : verified.refusal.code;
    };
    const before = identitiesOf(issuerOf());
    expect([await at(before), await at(before)]).toEqual(["operator", "operator"]);
    expect(signersOf(verifier).size).toBe(1);
    const rules: TokenRule[] = [{ claims: {}, role: "viewer", cell: null }];
    expect(await at(identitiesOf(issuerOf({ rules })))).toBe("viewer");
    expect(await at(identitiesOf(issuerOf({ keys: [rsa.jwk] })))).toBe("UNAUTHENTICATED");
    expect(await at(identitiesOf(issuerOf({ algorithms: ["RS256"] })))).toBe("UNAUTHENTICATED");
    expect(await at(identitiesOf(issuerOf({ rules: [] })))).toBe("PERMISSION_DENIED");
    expect(await at(identitiesOf())).toBe("UNAUTHENTICATED");
    expect(await at(before)).toBe("operator");
    expect(await at(before, NOW_MS + 3_600_000)).toBe("UNAUTHENTICATED");
  });
});
