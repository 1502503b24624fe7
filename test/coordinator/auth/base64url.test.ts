import { expect, test } from "vitest";
import { decodeBase64Url, encodeBase64Url } from "../../../src/coordinator/auth/base64url.ts";

test.each([0, 1, 2, 3, 31, 32, 33])("%i bytes are the same after encoding and decoding", (length) => {
  const bytes = Uint8Array.from({ length }, (_, index) => 255 - index * 7);
  expect(decodeBase64Url(encodeBase64Url(bytes))).toEqual(bytes);
});

// A lenient decoder would accept each of these, and two texts would stand for the same bytes.
test.each(["AA==", "A", "AB", "AAB", "+/", "A A", "AAAA\n", "é"])("%j is refused", (text) => {
  expect(decodeBase64Url(text)).toBeUndefined();
});
