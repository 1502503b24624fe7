import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { encodeBase64Url } from "../../../src/coordinator/auth/base64url.ts";
import { Hmac, secretsOf } from "../../../src/coordinator/auth/secrets.ts";
import { makeKey, parseKey, type KeyPayload } from "../../../src/coordinator/auth/key.ts";
import { bearerOf, KeyVerifier } from "../../../src/coordinator/auth/verifier.ts";
import { defaultLimits } from "../../../src/common/limits.ts";

const SECRET = "a secret of the deployment, long enough";
const OTHER = "another secret, and also long enough for this";
const NOW_S = 1_800_000_000;
const payload: KeyPayload = { v: 1, id: "key-1", role: "cell", cell: "7", iat: NOW_S, exp: NOW_S + 60 };

const signed = (value: unknown, secret = SECRET): Promise<string> =>
  makeKey(value as KeyPayload, new Hmac(secret));
const verifierOf = (current: string, previous?: string, limits = defaultLimits): KeyVerifier =>
  new KeyVerifier({ current, previous }, limits);
const verify = (token: string, verifier = verifierOf(SECRET), atS = NOW_S) =>
  verifier.verify(token, atS * 1_000);

const bad = {
  ok: false,
  refusal: { code: "UNAUTHENTICATED", detail: "the key is not valid in this deployment; get a valid key" },
};

test("a verified key gives its principal", async () => {
  const known = { keyId: "key-1", expiresAtMs: payload.exp * 1_000, credential: { kind: "key" } };
  expect(await verify(await signed(payload))).toEqual({
    ok: true,
    value: { ...known, role: "cell", cell: "7" },
  });
  const { cell: _, ...router } = { ...payload, role: "router" as const };
  expect(await verify(await signed(router))).toEqual({
    ok: true,
    value: { ...known, role: "router", cell: null },
  });
});

describe("every invalid key gets the same answer:", () => {
  // These keys are signed correctly, so only the payload is wrong.
  test.each<[string, unknown]>([
    ["another version", { ...payload, v: 2 }],
    ["an unknown role", { ...payload, role: "admin" }],
    ["a role that is a property of every object", { ...payload, role: "constructor" }],
    ["a cell key without a cell", { ...payload, cell: undefined }],
    ["a cell id that is not valid", { ...payload, cell: "007" }],
    ["a cell that is a number", { ...payload, cell: 7 }],
    ["an operator key with a cell", { ...payload, role: "operator" }],
    ["no id", { ...payload, id: undefined }],
    ["an id with a line break", { ...payload, id: "a\nb" }],
    ["no expiry", { ...payload, exp: undefined }],
    ["an expiry that is a string", { ...payload, exp: String(payload.exp) }],
    ["an expiry that is not after its issue", { ...payload, exp: payload.iat }],
    ["an unknown field", { ...payload, admin: true }],
    ["a list", [payload]],
    ["null", null],
    [
      "an issue in the future",
      { ...payload, iat: NOW_S + 86_400, exp: NOW_S + 86_400 + defaultLimits.keyLifetimeS },
    ],
    ["a lifetime of more than 400 days", { ...payload, exp: payload.iat + defaultLimits.keyLifetimeS + 1 }],
  ])("%s", async (_, value) => {
    expect(await verify(await signed(value))).toEqual(bad);
  });

  test.each<[string, (key: string) => string]>([
    ["another signature", (key) => key.replace(/\.(.)/, (_, first) => `.${first === "A" ? "B" : "A"}`)],
    ["no signature", (key) => key.split(".")[0] ?? ""],
    ["an empty signature", (key) => `${key.split(".")[0]}.`],
    ["a truncated signature", (key) => key.slice(0, -2)],
    ["text after the signature", (key) => `${key}.x`],
    ["another prefix", (key) => key.replace("lhk_", "lhx_")],
    ["padding", (key) => `${key}=`],
    [
      "the payload of another key",
      (key) =>
        `lhk_${encodeBase64Url(new TextEncoder().encode(JSON.stringify({ ...payload, cell: "8" })))}.` +
        `${key.split(".")[1]}`,
    ],
    ["a length of more than 1 KiB", (key) => key + "A".repeat(1_024)],
  ])("%s", async (_, spoil) => {
    expect(await verify(spoil(await signed(payload)))).toEqual(bad);
  });

  test("another secret", async () => expect(await verify(await signed(payload, OTHER))).toEqual(bad));

  // A signature that was made for a page token must not be valid for a key.
  test("another purpose", async () =>
    expect(await verify(await makeKey(payload, new Hmac(SECRET, "leasehold page token 1")))).toEqual(bad));
});

test("changing any single character makes a key invalid", async () => {
  const key = await signed(payload);
  for (let index = 0; index < key.length; index += 1) {
    const changed = key.slice(0, index) + (key[index] === "A" ? "B" : "A") + key.slice(index + 1);
    expect((await verify(changed)).ok).toBe(false);
  }
});

test.each([undefined, "", "Bearer", "Bearer ", "Basic abc", "lhk_abc", "Bearer a b"])(
  "the header %j has no key",
  (header) => expect(bearerOf(header)).toBeUndefined(),
);

test("the scheme is accepted in any case and with several spaces", () =>
  expect(bearerOf(" bearer  lhk_abc ")).toBe("lhk_abc"));

test("a key expires at its exact second, even if it was verified before", async () => {
  const verifier = verifierOf(SECRET);
  const key = await signed(payload);
  expect((await verify(key, verifier, payload.exp - 1)).ok).toBe(true);
  expect(await verify(key, verifier, payload.exp)).toMatchObject({
    ok: false,
    refusal: { reason: "KEY_EXPIRED" },
  });
});

test("a rotation accepts both secrets, and signs new keys with the current one", async () => {
  const rotating = verifierOf(OTHER, SECRET);
  expect((await verify(await signed(payload), rotating)).ok).toBe(true);
  const made = await rotating.make(payload);
  expect((await verify(made, verifierOf(OTHER))).ok).toBe(true);
  expect((await verify(made, verifierOf(SECRET))).ok).toBe(false);
});

describe("the cache", () => {
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const { verify: original } = Hmac.prototype;
  let checks = 0;

  beforeEach(() => {
    checks = 0;
    Hmac.prototype.verify = function (this: Hmac, ...given) {
      checks += 1;
      return original.apply(this, given);
    };
  });

  afterEach(() => {
    Hmac.prototype.verify = original;
  });

  test("checks a signature once, and remembers a limited number of keys", async () => {
    const verifier = verifierOf(SECRET, undefined, { ...defaultLimits, keyCache: 2 });
    const [a, b, c] = (await Promise.all(["a", "b", "c"].map((id) => signed({ ...payload, id })))) as [
      string,
      string,
      string,
    ];
    for (const key of [a, b, a, b, a]) await verify(key, verifier);
    expect(checks).toBe(2);
    // c evicts b, because a was used later.
    for (const key of [c, a]) await verify(key, verifier);
    expect(checks).toBe(3);
    await verify(b, verifier);
    expect(checks).toBe(4);
  });

  test("does not remember an invalid key", async () => {
    const verifier = verifierOf(SECRET);
    const forged = await signed(payload, OTHER);
    await verify(forged, verifier);
    await verify(forged, verifier);
    expect(checks).toBe(2);
  });
});

test("parsing a key does not verify it", async () => {
  expect(parseKey(await signed(payload, OTHER))?.payload).toEqual(payload);
});

test.each([
  [{}, "LEASEHOLD_SIGNING_SECRET is not set"],
  [{ LEASEHOLD_SIGNING_SECRET: "" }, "LEASEHOLD_SIGNING_SECRET is not set"],
  [{ LEASEHOLD_SIGNING_SECRET: "x".repeat(31) }, "LEASEHOLD_SIGNING_SECRET must have at least 32"],
  [
    { LEASEHOLD_SIGNING_SECRET: SECRET, LEASEHOLD_PREVIOUS_SIGNING_SECRET: "short" },
    "LEASEHOLD_PREVIOUS_SIGNING_SECRET must have",
  ],
])("with %j, the secrets are refused with a reason", (variables, detail) => {
  expect(secretsOf(variables)).toMatchObject({
    ok: false,
    refusal: { code: "UNAVAILABLE", detail: expect.stringContaining(detail) },
  });
});

test("a secret of 32 characters is accepted, without a previous one", () => {
  const current = "x".repeat(32);
  expect(secretsOf({ LEASEHOLD_SIGNING_SECRET: current, LEASEHOLD_PREVIOUS_SIGNING_SECRET: "" })).toEqual({
    ok: true,
    value: { current, previous: undefined },
  });
});
