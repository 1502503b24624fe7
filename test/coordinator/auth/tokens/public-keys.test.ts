import { expect, test } from "vitest";
import { readKeys } from "../../../../src/coordinator/auth/tokens/public-keys.ts";
import { ec, other, rsa } from "./test-issuer.ts";

test("[M6] a set has at most 100 keys", () => {
  const entries = Array.from({ length: 150 }, (_, n) => ({ ...ec.jwk, kid: `key-${n}` }));
  expect(readKeys(entries)).toHaveLength(100);
});

test("keys that stay are the same objects, so that they are imported once", () => {
  const [first, second] = readKeys([ec.jwk, rsa.jwk]);
  const again = readKeys(
    [other.jwk, { ...rsa.jwk, more: 1 }, { ...ec.jwk, kid: "renamed" }],
    [first, second].flatMap((key) => key ?? []),
  );
  expect(again[1]).toBe(second);
  expect(again).toHaveLength(3);
  expect(again[2]).not.toBe(first);
});

test("of a private key, only the public part is kept", () => {
  const [key] = readKeys([{ ...ec.jwk, d: "AAAA", x5c: ["x"], key_ops: ["verify"], ext: "no" }]);
  expect(Object.keys(key?.jwk ?? {}).toSorted()).toEqual(["crv", "kty", "x", "y"]);
});
