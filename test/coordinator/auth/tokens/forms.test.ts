import { expect, test } from "vitest";
import { isWebToken, jwksUrlFault } from "../../../../src/coordinator/auth/tokens/forms.ts";
import { sign } from "./test-issuer.ts";

test("a web token has three parts in base64url, and is no key", async () => {
  expect(isWebToken(await sign())).toBe(true);
  for (const bearer of [
    "",
    "lhk_a.b",
    "lhk_a.b.c",
    "a.b",
    "a.b.c.d",
    ".b.c",
    "a..c",
    "a.b+.c",
    "a.b.c\n",
    "a b.c.d",
  ])
    expect(isWebToken(bearer), bearer).toBe(false);
});

test.each([
  "https://token.actions.githubusercontent.com/.well-known/jwks",
  "https://gitlab.example:8443/oauth/discovery/keys?a=b",
  "http://localhost:8080/jwks",
  "http://127.0.0.1/jwks",
  "http://[::1]:8080/jwks",
])("keys may be at %s", (url) => {
  expect(jwksUrlFault(url)).toBeUndefined();
});

test.each([
  ["", "must be a URL"],
  ["/jwks", "must be a URL"],
  [`https://issuer.example/${"x".repeat(2_048)}`, "must be a URL of at most 2,048 characters"],
  ["http://issuer.example/jwks", "must be an https URL"],
  ["http://127.0.0.1.evil.example/jwks", "must be an https URL"],
  ["http://localhost.evil.example/jwks", "must be an https URL"],
  ["http://10.0.0.1/jwks", "must be an https URL"],
  ["file:///etc/passwd", "must be an https URL"],
  ["data:application/json,{}", "must be an https URL"],
  ["https://user@issuer.example/jwks", "must have no user"],
  ["https://:secret@issuer.example/jwks", "must have no user"],
  ["https://issuer.example/jwks#keys", "must have no fragment"],
])("keys may not be at `%s`", (url, why) => {
  expect(jwksUrlFault(url)).toContain(why);
});
