import * as fc from "fast-check";
import { expect, test } from "vitest";
import { payloadHash } from "../../../src/http/batch.ts";
import { decodePayload, encodePayload } from "../../../src/core/ledger/payload.ts";
import type { BucketTypeName, SourceTypeName, SubjectTypeName } from "../../../src/core/registry.ts";
import { bucketTypes, sourceTypes, subjectTypes } from "../../../src/core/registry.ts";
import { opsOf, type OpSpec } from "../../support/ops.ts";

const names = <Name extends string>(table: Record<Name, unknown>): fc.Arbitrary<Name> =>
  fc.constantFrom(...(Object.keys(table) as Name[]));
const id = fc.string({ minLength: 1, maxLength: 20 });
const reference = <Name extends string>(table: Record<Name, unknown>) =>
  fc.record({ type: names(table), id });

test("a lease's ops are read back as they were stored", () => {
  const spec: fc.Arbitrary<OpSpec> = fc.record({
    kind: fc.constantFrom("create", "destroy", "replace"),
    type: names<BucketTypeName>(bucketTypes),
    value: fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,20}$/),
    subject: fc.option(reference<SubjectTypeName>(subjectTypes)),
    source: fc.option(reference<SourceTypeName>(sourceTypes)),
    epoch: fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(spec, { maxLength: 20 }), (specs) => {
      const ops = opsOf("hash1.shards16.canonical1", specs);
      expect(decodePayload(encodePayload(ops))).toEqual(ops);
    }),
  );
});

test("a number that is not in the registry is an error", () => {
  expect(() => decodePayload(JSON.stringify([[0, 99, "a", 0, 0, 0, 0]]))).toThrow("registry");
  expect(() => decodePayload(JSON.stringify([[7, 1, "a", 0, 0, 0, 0]]))).toThrow("registry");
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
  expect(hashOf()).toBe("28062de54d41c74a9a8f593111fc999155118fb10d673f16dd7cff015395f770");
  expect(new Set([hashOf(), hashOf(1), hashOf(2)]).size).toBe(3);
});
