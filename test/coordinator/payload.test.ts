import * as fc from "fast-check";
import { expect, test } from "vitest";
import { payloadHash } from "../../src/coordinator/api/batch.ts";
import { decodePayload, encodePayload } from "../../src/coordinator/kernel/ledger/payload.ts";
import { opsOf, type OpSpec } from "../support/ops.ts";
import { textTypeNames, sourceTypeNames, subjectTypeNames } from "../support/types.ts";

const id = fc.string({ minLength: 1, maxLength: 20 });
const reference = <Name extends string>(names: readonly Name[]) =>
  fc.record({ type: fc.constantFrom(...names), id });

test("a lease's ops are read back as they were stored", () => {
  const spec: fc.Arbitrary<OpSpec> = fc.record({
    kind: fc.constantFrom("create", "destroy", "replace"),
    type: fc.constantFrom(...textTypeNames),
    value: fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,20}$/),
    subject: fc.option(reference(subjectTypeNames)),
    source: fc.option(reference(sourceTypeNames)),
    epoch: fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(spec, { maxLength: 20 }), (specs) => {
      const ops = opsOf("hash1.shards16.canonical1", specs);
      expect(decodePayload(encodePayload(ops))).toEqual(ops);
    }),
  );
});

test("[T1] a type is stored as its number, also one that is not shipped", () => {
  const stored = '[[0,2147483647,"a",0,0,[2147483647,"1"],[2147483646,"2"]]]';
  const ops = decodePayload(stored);
  expect(ops).toMatchObject([
    { type: 2_147_483_647, subject: { type: 2_147_483_647 }, source: { type: 2_147_483_646 } },
  ]);
  expect(encodePayload(ops)).toBe(stored);
});

test("a number that is no kind of op is an error", () => {
  expect(() => decodePayload(JSON.stringify([[7, 1, "a", 0, 0, 0, 0]]))).toThrow("unknown kind 7");
});

test("an op without an epoch is stored without one", () => {
  const stored = '[[1,1,"Ada","ada",3,0,0],[2,1,"bob",0,0,[2,"1"],[3,"2"]]]';
  const ops = decodePayload(stored);
  expect(ops.map((op) => Object.hasOwn(op, "epoch"))).toEqual([false, false]);
  expect(encodePayload(ops)).toBe(stored);
});

test("[B10] the hash of a batch covers the epochs", () => {
  const specs: OpSpec[] = [
    { type: "ROUTES", value: "Ada", source: { type: "RAILS_TABLE_ROUTES", id: "2" } },
    { kind: "destroy", type: "EMAILS", value: "a@b", subject: null, source: null },
  ];
  const hashOf = (epoch?: number): string =>
    payloadHash(
      opsOf(
        "hash1.shards16.canonical1",
        specs.map((spec) => (spec.kind === "destroy" ? { ...spec, epoch } : spec)),
      ),
      false,
    );
  expect(hashOf()).toBe("d7f6f8e1c9e9a0a70cd17938a4c97fba75327baabe8f0f4fcf07ada6bd0d4fc1");
  expect(new Set([hashOf(), hashOf(1), hashOf(2)]).size).toBe(3);
});
