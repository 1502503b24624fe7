/** Tests of the reader of a declared set of types. A refusal names the entry that is wrong. */
import { describe, expect, test } from "vitest";
import { isMatch, MAX_PATTERN_LENGTH, patternFault } from "../../../src/common/canonical/pattern.ts";
import {
  documentOf,
  MAX_TYPE_NUMBER,
  MAX_TYPES,
  typesOf,
  type BucketTypeDeclaration,
} from "../../../src/common/types/document.ts";
import { gitlabTypes } from "../../../src/common/types/gitlab.ts";
import { typesSchema, typesSchemaProperties } from "../../../src/common/types/schema.ts";
import { isSameType, Types } from "../../../src/common/types/types.ts";

const small = {
  bucket_types: { HANDLES: { number: 1 } },
  subject_types: { PERSON: { number: 1 } },
  source_types: { PEOPLE: { number: 1 } },
};

/** A set whose bucket types are these, and which is valid otherwise. */
const buckets = (types: object): object => ({ ...small, bucket_types: types });
const handles = (more: object): object => buckets({ HANDLES: { number: 1, ...more } });

/** Returns the field that a refusal names, and checks that its text names it too. */
function refusedField(document: unknown, detail?: string | RegExp): string | undefined {
  const read = typesOf(document);
  if (read.ok) return undefined;
  const { code, field, detail: text } = read.refusal;
  expect(code).toBe("INVALID_ARGUMENT");
  expect(text).toContain(`\`${field}\` `);
  if (detail !== undefined) expect(text).toMatch(detail);
  return field;
}

/** JSON as it comes from a file, in which `__proto__` is a name like any other. */
const parsed = (json: string): unknown => JSON.parse(json);

describe("a valid set", () => {
  test("has the declared entries, none of them in use", () => {
    expect(typesOf(small)).toEqual({
      ok: true,
      value: [
        {
          kind: "bucket",
          number: 1,
          name: "HANDLES",
          rule: { form: "plain", script: "single", case: "folded" },
          isInUse: false,
        },
        { kind: "subject", number: 1, name: "PERSON", rule: null, isInUse: false },
        { kind: "source", number: 1, name: "PEOPLE", rule: null, isInUse: false },
      ],
    });
  });

  test("may have every flag, a pattern, lengths, and the address of its schema", () => {
    const declared = {
      number: MAX_TYPE_NUMBER,
      form: "path",
      script: "any",
      case: "exact",
      pattern: "[a-z]+",
      min_length: 2,
      max_length: 2,
    };
    const read = typesOf({ ...buckets({ A: declared }), $schema: "./leasehold.types.schema.json" });
    expect(read).toMatchObject({
      value: [
        {
          number: MAX_TYPE_NUMBER,
          rule: {
            form: "path",
            script: "any",
            case: "exact",
            pattern: "[a-z]+",
            minLength: 2,
            maxLength: 2,
          },
        },
        {},
        {},
      ],
    });
  });

  test("may have the same name and number in different kinds, and names of 1 to 64 characters", () => {
    const long = `Z${"9_A".repeat(21)}`;
    expect(long).toHaveLength(64);
    const same = { USERS: { number: 7 }, [long]: { number: 8 }, A: { number: 9 } };
    const read = typesOf({ bucket_types: same, subject_types: same, source_types: same });
    expect(read.ok && read.value.map(({ kind, name, number }) => `${kind} ${name} ${number}`)).toHaveLength(
      9,
    );
  });

  test("is read back from its own document, with every rule in full", () => {
    const full = buckets({
      A: { number: 2, case: "exact", pattern: "\\p{L}+", min_length: 1, max_length: 65_536 },
      B: { number: 1, form: "path", script: "any" },
    });
    for (const document of [small, full, gitlabTypes]) {
      const read = typesOf(document);
      if (!read.ok) throw new Error(read.refusal.detail);
      const again = typesOf(parsed(JSON.stringify(documentOf(read.value))));
      if (!again.ok) throw new Error(again.refusal.detail);
      const types = new Types(again.value);
      expect(again.value).toHaveLength(read.value.length);
      for (const entry of read.value) {
        const other = types.named(entry.kind, entry.name);
        expect(other !== undefined && isSameType(entry, other)).toBe(true);
      }
    }
    const read = typesOf(full);
    expect(read.ok && documentOf(read.value).bucket_types).toEqual({
      A: {
        number: 2,
        form: "plain",
        script: "single",
        case: "exact",
        pattern: "\\p{L}+",
        min_length: 1,
        max_length: 65_536,
      },
      B: { number: 1, form: "path", script: "any", case: "folded" },
    });
  });
});

describe("a set that is refused", () => {
  test.each([null, undefined, [], [small], "{}", 1, true])("is no object: %j", (document) => {
    expect(refusedField(document)).toBe("types");
  });

  test.each(["bucket_types", "subject_types", "source_types"])(
    "has no %s, or none that is a list",
    (list) => {
      for (const wrong of [undefined, null, [], [{ number: 1 }], "HANDLES", 1])
        expect([wrong, refusedField({ ...small, [list]: wrong })]).toEqual([wrong, list]);
      expect(refusedField({ ...small, [list]: {} }, "at least one")).toBe(list);
      const { [list]: _, ...rest } = small as Record<string, unknown>;
      expect(refusedField(rest)).toBe(list);
    },
  );

  test("has an unknown list", () => {
    expect(refusedField({ ...small, bucketTypes: {} }, "is unknown")).toBe("bucketTypes");
    expect(refusedField({ ...small, version: 1 })).toBe("version");
    const withProto = JSON.stringify(small).replace("{", '{"__proto__":{},');
    expect(refusedField(parsed(withProto))).toBe("__proto__");
  });

  test.each([
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "",
    " ",
    "handles",
    "Handles",
    "1ST",
    "_A",
    "A-B",
    "A B",
    "A.B",
    "A\n",
    "A\u0000",
    "ÄPFEL",
    "\u0410",
  ])("has a type with the name %j", (name) => {
    const json = `{${JSON.stringify(name)}:{"number":1}}`;
    for (const list of ["bucket_types", "subject_types", "source_types"])
      expect(refusedField({ ...small, [list]: parsed(json) }, "must match")).toBe(`${list}.${name}`);
  });

  test("[M6] has a name of any length, which the refusal shortens", () => {
    const long = "A".repeat(50_000);
    const short = `${"A".repeat(64)}…`;
    expect(refusedField(buckets({ [long]: { number: 1 } }), "must match")).toBe(`bucket_types.${short}`);
    expect(refusedField(handles({ [long]: 1 }))).toBe(`bucket_types.HANDLES.${short}`);
    expect(refusedField({ ...small, subject_types: { PERSON: { number: 1, [long]: 1 } } })).toBe(
      `subject_types.PERSON.${short}`,
    );
    expect(refusedField({ ...small, [long]: {} })).toBe(short);
    expect(refusedField(buckets({ [`${"A".repeat(64)}B`]: { number: 1 } }))).toBe(`bucket_types.${short}`);
  });

  test("has an entry that is no object", () => {
    for (const wrong of [null, 1, "1", [], [1], true])
      expect(refusedField(buckets({ HANDLES: wrong }))).toBe("bucket_types.HANDLES");
    expect(refusedField({ ...small, source_types: { PEOPLE: 1 } })).toBe("source_types.PEOPLE");
  });

  test("has a number that is not whole, or too small or too large", () => {
    const wrong = [0, -1, 1.5, MAX_TYPE_NUMBER + 1, 2 ** 53, Number.NaN, Infinity, "1", null, undefined, {}];
    for (const number of wrong) {
      expect(refusedField(handles({ number }))).toBe("bucket_types.HANDLES.number");
      expect(refusedField({ ...small, subject_types: { PERSON: { number } } })).toBe(
        "subject_types.PERSON.number",
      );
    }
  });

  test("[T1] has a number twice in one kind: the second entry is named, with the first", () => {
    const twice = { A: { number: 1 }, B: { number: 2 }, C: { number: 1 } };
    for (const list of ["bucket_types", "subject_types", "source_types"])
      expect(refusedField({ ...small, [list]: twice }, /is 1, which A has already/)).toBe(`${list}.C.number`);
  });

  test("[M6] a set has at most 256 types of each kind", () => {
    const many = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`TYPE_${n}`, { number: n + 1 }]));
    for (const list of ["bucket_types", "subject_types", "source_types"]) {
      expect(typesOf({ ...small, [list]: many(MAX_TYPES) }).ok).toBe(true);
      expect(refusedField({ ...small, [list]: many(MAX_TYPES + 1) }, "declares 257 types")).toBe(list);
      expect(refusedField({ ...small, [list]: many(10_000) }, "limit is 256")).toBe(list);
    }
    expect(MAX_TYPES).toBe(256);
  });

  test("has a subject or source type with a rule", () => {
    for (const list of ["subject_types", "source_types"])
      for (const name of ["form", "script", "case", "pattern", "min_length", "max_length", "surprise"])
        expect(
          refusedField({ ...small, [list]: { A: { number: 1, [name]: "folded" } } }, "only bucket types"),
        ).toBe(`${list}.A.${name}`);
  });

  test("has an unknown field in an entry", () => {
    for (const name of ["cases", "Form", "minLength", "isInUse", "rule", "name", "constructor"])
      expect(refusedField(handles({ [name]: "folded" }), "is unknown")).toBe(`bucket_types.HANDLES.${name}`);
    const withProto = parsed('{"HANDLES":{"number":1,"__proto__":{"case":"exact"}}}') as object;
    expect(refusedField(buckets(withProto))).toBe("bucket_types.HANDLES.__proto__");
  });

  test.each([
    ["form", ["plain", "path", "email", "domain"]],
    ["script", ["single", "any"]],
    ["case", ["folded", "exact"]],
  ])("has a %s other than %j", (flag, values) => {
    for (const value of values) expect(typesOf(handles({ [flag]: value })).ok).toBe(true);
    for (const wrong of ["", "PLAIN", "Folded", "none", "toString", null, true, 1, [], [values[0]], {}])
      expect(refusedField(handles({ [flag]: wrong }), values.join(", "))).toBe(
        `bucket_types.HANDLES.${flag}`,
      );
  });

  test.each(["email", "domain"])("tells the case of the form %s apart", (form) => {
    const rule = { form, case: "exact" };
    expect(refusedField(handles(rule), "which have no case")).toBe("bucket_types.HANDLES.case");
  });

  test("has lengths that are no lengths, or a least above the largest", () => {
    for (const name of ["min_length", "max_length"])
      for (const wrong of [0, -1, 1.5, 65_537, "3", null, Number.NaN, []])
        expect(refusedField(handles({ [name]: wrong }))).toBe(`bucket_types.HANDLES.${name}`);
    expect(refusedField(handles({ min_length: 4, max_length: 3 }), "`max_length`, which is 3")).toBe(
      "bucket_types.HANDLES.min_length",
    );
  });
});

describe("a pattern", () => {
  const pattern = "bucket_types.HANDLES.pattern";

  test("must be text of 1 to 256 characters", () => {
    for (const wrong of [null, 1, true, [], ["a"], { source: "a" }, ""])
      expect(refusedField(handles({ pattern: wrong }))).toBe(pattern);
    expect(refusedField(handles({ pattern: `[${"a".repeat(MAX_PATTERN_LENGTH - 2)}]` }))).toBeUndefined();
    expect(refusedField(handles({ pattern: "a".repeat(MAX_PATTERN_LENGTH + 1) }), "at most 256")).toBe(
      pattern,
    );
  });

  test.each(["(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?P<n>a)(?P=n)", "\\k<n>", "(?>a)", "a++"])(
    "must not look around, refer back, or be atomic: %s",
    (text) => {
      expect(refusedField(handles({ pattern: text }), "no lookaround and no backreferences")).toBe(pattern);
    },
  );

  test.each(["[", "(", ")", "*", "a{2,1}", "\\", "[z-a]", "\\p{Nothing}", "(?z)"])(
    "must be a regular expression: %s",
    (text) => {
      expect(refusedField(handles({ pattern: text }), "syntax of RE2")).toBe(pattern);
    },
  );

  test.each([
    "[a-z]{1,1000}",
    "[a-z]{1,1001}",
    "(?:a{1,15}){1,15}",
    "((a{1,100}){1,100}){1,100}",
    "(((((a{9}){9}){9}){9}){9}){9}",
    "(?:(?:(?:a?){9}){9}){9}",
  ])("must not be too large: %s", (text) => {
    expect(refusedField(handles({ pattern: text }), /is too large|invalid repeat count/)).toBe(pattern);
  });

  test("may take more steps per character if names are short", () => {
    const text = ".*a.{200}";
    expect(refusedField(handles({ pattern: text }), "set a smaller `max_length`")).toBe(pattern);
    expect(refusedField(handles({ pattern: text, max_length: 300 }))).toBeUndefined();
  });

  test("may have as many repetitions as a host name or an id has", () => {
    for (const text of ["[a-z0-9]{1,63}", "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", ".{1,70}", "\\d{10}"])
      expect([text, patternFault(text)]).toEqual([text, undefined]);
  });

  test("takes no time to speak of, whatever would backtrack elsewhere", () => {
    const rule = (text: string) => ({ form: "plain", script: "any", case: "folded", pattern: text }) as const;
    for (const text of ["(a+)+", "(a|a)*", "(a|aa)+", "((a*)*)*", "(.*a){20}", "(?:a?){30}a{30}"]) {
      expect([text, patternFault(text)]).toEqual([text, undefined]);
      // A backtracking engine takes more than 2^1,000 steps for these.
      expect(isMatch(rule(text), `${"a".repeat(1_023)}!`)).toBe(false);
    }
  });
});

describe("the JSON schema of a set", () => {
  test("has the same lists, fields, values and bounds as the reader", () => {
    expect(typesSchema["required"]).toEqual(["bucket_types", "subject_types", "source_types"]);
    const { additionalProperties: entry, ...list } = typesSchemaProperties.bucket_types as {
      additionalProperties?: { properties: Record<string, Record<string, unknown>> };
    };
    expect(list).toMatchObject({
      minProperties: 1,
      maxProperties: MAX_TYPES,
      propertyNames: { pattern: "^[A-Z][A-Z0-9_]{0,63}$" },
    });
    const properties = entry?.properties ?? {};
    const every: Record<keyof BucketTypeDeclaration, true> = {
      number: true,
      form: true,
      script: true,
      case: true,
      pattern: true,
      min_length: true,
      max_length: true,
    };
    expect(Object.keys(properties)).toEqual(Object.keys(every));
    for (const flag of ["form", "script", "case"])
      for (const value of (properties[flag]?.["enum"] ?? []) as string[])
        expect(typesOf(handles({ [flag]: value })).ok).toBe(true);
    for (const name of ["number", "min_length", "max_length"]) {
      const { minimum, maximum } = properties[name] as { minimum: number; maximum: number };
      for (const [value, isValid] of [
        [minimum, true],
        [maximum, true],
        [minimum - 1, false],
        [maximum + 1, false],
      ] as const)
        expect([name, value, typesOf(handles({ [name]: value })).ok]).toEqual([name, value, isValid]);
    }
  });
});
