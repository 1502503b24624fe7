/** The search for the field at which a message can't be read, compared with the library that reads it. */
import { fromBinary, fromJsonString, type DescMessage } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { binaryFault, jsonFault } from "../../../src/coordinator/wire/message-fault.ts";
import { methods } from "../../../src/coordinator/wire/methods.ts";
import { jsonOptions } from "../../../src/coordinator/wire/wire-message.ts";
import { encode, type Fields } from "./bytes.ts";

const schemas = methods.map(({ desc }) => desc.input);

const succeeds = (read: () => unknown): boolean => {
  try {
    read();
    return true;
  } catch {
    return false;
  }
};

const fields = fc.letrec<{ fields: Fields }>((tie) => ({
  fields: fc.array(
    fc.tuple(
      fc.integer({ min: 1, max: 7 }),
      fc.oneof(
        { depthSize: "small" },
        fc.string({ maxLength: 5 }),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.uint8Array({ maxLength: 9 }),
        tie("fields"),
      ),
    ),
    { maxLength: 4 },
  ),
})).fields;

const changed = fc
  .tuple(
    fields,
    fc.option(fc.nat(60)),
    fc.array(fc.tuple(fc.nat(60), fc.integer({ min: 0, max: 255 })), { maxLength: 2 }),
  )
  .map(([made, length, changes]) => {
    const bytes = encode(made);
    for (const [index, byte] of changes) if (index < bytes.length) bytes[index] = byte;
    return length === null ? bytes : bytes.subarray(0, length);
  });

test("[W13] a message in which no fault is found can be read", () => {
  fc.assert(
    fc.property(fc.constantFrom(...schemas), changed, (schema: DescMessage, bytes) => {
      if (binaryFault(schema, bytes) === undefined) fromBinary(schema, bytes);
    }),
    { numRuns: 20_000 },
  );
});

test("[W13] a message in JSON has a fault exactly if it cannot be read", () => {
  const keys = schemas.flatMap((schema) => schema.fields.map(({ jsonName }) => jsonName));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(null, true, 1, -0.5, "1", "", "AAAA", "1970-01-01T00:00:00Z"),
      fc.array(tie("value"), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom(...keys, "claim", "route", "type", "id", "x"), tie("value"), {
        maxKeys: 2,
      }),
    ),
  }));
  fc.assert(
    fc.property(fc.constantFrom(...schemas), value, (schema, made) => {
      const text = JSON.stringify(made);
      const canRead = succeeds(() => fromJsonString(schema, text, jsonOptions));
      expect(jsonFault(schema, text, jsonOptions) === undefined).toBe(canRead);
    }),
    { numRuns: 5_000 },
  );
});
