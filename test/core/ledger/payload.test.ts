import * as fc from "fast-check";
import { expect, test } from "vitest";
import { decodePayload, encodePayload } from "../../../src/core/ledger/payload.ts";
import type { BucketTypeName, SourceTypeName, SubjectTypeName } from "../../../src/core/registry.ts";
import { bucketTypes, sourceTypes, subjectTypes } from "../../../src/core/registry.ts";
import { opsOf, type OpSpec } from "../../support/ops.ts";

const names = <Name extends string>(table: Record<Name, unknown>): fc.Arbitrary<Name> => fc.constantFrom(...(Object.keys(table) as Name[]));
const id = fc.string({ minLength: 1, maxLength: 20 });
const reference = <Name extends string>(table: Record<Name, unknown>) => fc.record({ type: names(table), id });

test("a lease's ops come back as they were stored", () => {
  const spec: fc.Arbitrary<OpSpec> = fc.record({
    kind: fc.constantFrom("create", "destroy", "replace"),
    type: names<BucketTypeName>(bucketTypes),
    value: fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,20}$/),
    subject: fc.option(reference<SubjectTypeName>(subjectTypes)),
    source: fc.option(reference<SourceTypeName>(sourceTypes)),
  });
  fc.assert(
    fc.property(fc.array(spec, { maxLength: 20 }), (specs) => {
      const ops = opsOf("hash1.shards16.canonical1", specs);
      expect(decodePayload(encodePayload(ops))).toEqual(ops);
    }),
  );
});

test("a number that is not in the registry is an error, never a guess", () => {
  expect(() => decodePayload(JSON.stringify([[0, 99, "a", 0, 0, 0, 0]]))).toThrow("registry");
  expect(() => decodePayload(JSON.stringify([[7, 1, "a", 0, 0, 0, 0]]))).toThrow("registry");
});
