/** The hash of Node must equal that of Workers, because both decide which shard has a name. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { wordsOf } from "../../../src/common/sha256.ts";
import { nodeSha256 } from "../../../src/hosts/node/node-sha256.ts";

const libraryOf = (text: string): string => bytesToHex(sha256(new TextEncoder().encode(text)));

test("both hashes are the same, also of characters that are not in UTF-8", () => {
  for (const text of ["", "1:ada@example.com", "\ud800", "a\udc00b", "x".repeat(100_000)])
    expect(nodeSha256(text)).toBe(libraryOf(text));
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 300 }),
      (text) => nodeSha256(text) === libraryOf(text),
    ),
  );
});

test("the words of a hash are its bytes", () => {
  const bytes = sha256(new TextEncoder().encode("a"));
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  expect(wordsOf(nodeSha256("a"))).toEqual([0, 4, 8, 12].map((offset) => view.getUint32(offset)));
});
