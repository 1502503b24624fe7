import { describe, expect, it } from "vitest";
import { ScalarType, type DescEnum } from "@bufbuild/protobuf";
import { documentOf } from "../../../src/common/types/document.ts";
import { claimFields, gitlabTypes } from "../../../src/common/types/gitlab.ts";
import {
  Bucket_TypeSchema,
  ClaimSchema,
  ClaimTypeSchema,
  Source_TypeSchema,
  Subject_TypeSchema,
} from "../../../src/coordinator/wire/protobuf.ts";
import { bucketTypeNames, ruleOf, shipped, textTypeNames, type BucketTypeName } from "../../support/types.ts";
import { canonicalize } from "../../../src/common/canonical/canonicalize.ts";
import type { CanonicalRule } from "../../../src/common/canonical/rule.ts";

// Storage keeps these numbers: a change here changes the meaning of every stored row.
const kinds = [
  {
    kind: "bucket",
    types: gitlabTypes.bucket_types,
    names: `ROUTES ORGANIZATION_PATH REDIRECT_ROUTES USERNAMES EMAILS PROJECT_IDS NAMESPACE_IDS GPG_KEYS
      SSH_KEYS USER_IDS ORGANIZATION_IDS SERVICE_DESK_CUSTOM_EMAILS GPG_KEY_FINGERPRINTS
      SERVICE_DESK_PROJECT_KEY_ADDRESS_SLUGS SSH_KEY_FINGERPRINTS SNIPPET_IDS PAGES_DOMAINS
      PAGES_UNIQUE_DOMAINS JIRA_FORGE_INSTALLATION_IDS JIRA_CLIENT_KEYS`.split(/\s+/),
  },
  {
    kind: "subject",
    types: gitlabTypes.subject_types,
    names: ["ORGANIZATION", "NAMESPACE", "PROJECT", "USER"],
  },
  {
    kind: "source",
    types: gitlabTypes.source_types,
    names: `USERS EMAILS ROUTES PROJECTS NAMESPACES ORGANIZATIONS REDIRECT_ROUTES GPG_KEYS KEYS
      SERVICE_DESK_SETTINGS MEMBERS SNIPPETS PAGES_DOMAINS PROJECT_SETTINGS JIRA_CONNECT_INSTALLATIONS`
      .split(/\s+/)
      .map((table) => `RAILS_TABLE_${table}`),
  },
] as const;

describe.each(kinds)("the shipped $kind types", ({ kind, types, names }) => {
  const entries = Object.entries<{ number: number }>(types);

  it("[W10] have the names and numbers of the protobuf", () => {
    expect(entries.map(([name, { number }]) => [number, name])).toEqual(
      names.map((name, index) => [index + 1, name]),
    );
    expect(shipped.names(kind)).toEqual(names);
  });

  it("have unique positive integers that SQLite and protobuf can store", () => {
    expect(new Set(entries.map(([, { number }]) => number)).size).toBe(entries.length);
    for (const [, { number }] of entries) expect(number).toSatisfy((n: number) => n > 0 && n === (n | 0));
  });

  it("do not list UNSPECIFIED, which is refused everywhere", () => {
    expect(Object.keys(types)).not.toContain("UNSPECIFIED");
    expect(shipped.named(kind, "UNSPECIFIED")).toBeUndefined();
    expect(shipped.numbered(kind, 0)).toBeUndefined();
  });

  it("are found by their names and by their numbers, and nothing by any other name or number", () => {
    for (const [name, { number }] of entries) {
      expect(shipped.numbered(kind, number)).toMatchObject({ kind, name, number });
      expect(shipped.named(kind, name)).toBe(shipped.numbered(kind, number));
    }
    for (const unknown of [-1, entries.length + 1, 1.5, Number.NaN])
      expect(shipped.numbered(kind, unknown)).toBeUndefined();
    for (const unknown of ["toString", "__proto__", "constructor", "", "routes"])
      expect(shipped.named(kind, unknown)).toBeUndefined();
  });

  it("[T2] are not in use until a begin uses them", () => {
    for (const name of Object.keys(types)) expect(shipped.named(kind, name)?.isInUse).toBe(false);
  });
});

describe("the wire", () => {
  const numbersOf = ({ values }: DescEnum): Record<string, number> =>
    Object.fromEntries(values.flatMap(({ name, number }) => (number === 0 ? [] : [[name, number]])));

  it("[W10] has the shipped types, each with the field of its claim", () => {
    for (const [schema, types] of [
      [Bucket_TypeSchema, gitlabTypes.bucket_types],
      [Subject_TypeSchema, gitlabTypes.subject_types],
      [Source_TypeSchema, gitlabTypes.source_types],
    ] as const)
      expect(numbersOf(schema)).toEqual(
        Object.fromEntries(
          Object.entries<{ number: number }>(types).map(([name, { number }]) => [name, number]),
        ),
      );
    expect(numbersOf(ClaimTypeSchema)).toEqual(
      Object.fromEntries(claimFields.map(({ name, number }) => [`CLAIM_TYPE_${name.toUpperCase()}`, number])),
    );
    const fields = ClaimSchema.fields.map(({ name, number, scalar }) => [
      number,
      name,
      scalar === ScalarType.INT64,
    ]);
    expect(fields).toEqual(
      claimFields.map(({ number, name, isWholeNumber }) => [number, name, isWholeNumber]),
    );
    // As GitLab's clients have them.
    expect(fields).toContainEqual([7, "namespace_id", true]);
    expect(fields).toContainEqual([14, "service_desk_project_key_address_slug", false]);
    expect(fields).toContainEqual([18, "pages_unique_domain", false]);
  });
});

describe("the canonical rules of the shipped types", () => {
  const canonical = (type: BucketTypeName, value: string): string => {
    const made = canonicalize(ruleOf(type), value, 1_024);
    return made.ok ? made.canonical : "refused";
  };

  it("check paths by segment, and look-alikes only in paths and usernames", () => {
    const rules = Object.fromEntries(bucketTypeNames.map((name) => [name, ruleOf(name)]));
    const having = (more: Partial<CanonicalRule>) =>
      bucketTypeNames.filter((name) => expect.objectContaining(more).asymmetricMatch(rules[name]));
    expect(having({ form: "path" })).toEqual(["ROUTES", "ORGANIZATION_PATH", "REDIRECT_ROUTES"]);
    expect(having({ form: "email" })).toEqual(["EMAILS", "SERVICE_DESK_CUSTOM_EMAILS"]);
    expect(having({ script: "single" })).toEqual([...having({ form: "path" }), "USERNAMES"]);
  });

  it("fold case, except in keys, in fingerprints in base64, and in what Jira compares as it is", () => {
    const exact = bucketTypeNames.filter((name) => ruleOf(name).case === "exact");
    expect(exact).toEqual([
      "GPG_KEYS",
      "SSH_KEYS",
      "SSH_KEY_FINGERPRINTS",
      "JIRA_FORGE_INSTALLATION_IDS",
      "JIRA_CLIENT_KEYS",
    ]);
    for (const type of textTypeNames.concat(exact))
      expect(canonical(type, "Ab/c+D"), type).toBe(exact.includes(type) ? "Ab/c+D" : "ab/c+d");
  });

  it("give a whole number one form", () => {
    for (const { bucketType: type } of claimFields.filter(({ isWholeNumber }) => isWholeNumber)) {
      expect([canonical(type, "42"), canonical(type, "\uFF14\uFF12")], type).toEqual(["42", "42"]);
      for (const other of ["042", "0", "+42", "-42", "4e1", "x"])
        expect(canonical(type, other)).toBe("refused");
    }
  });

  it("give a domain of Pages one form, and refuse what has another one", () => {
    expect(canonical("PAGES_DOMAINS", "WWW.xn--Mnchen-3ya.Example")).toBe("www.xn--mnchen-3ya.example");
    for (const other of [
      "münchen.example",
      "straße.example",
      "STRAẞE.example",
      "example.com.",
      ".example.com",
      "a..b",
      "*.example.com",
      "a/b",
    ])
      expect(canonical("PAGES_DOMAINS", other), other).toBe("refused");
    expect(canonical("PAGES_UNIQUE_DOMAINS", "Site-1a2b")).toBe("site-1a2b");
    for (const other of ["site.example", "straße"])
      expect(canonical("PAGES_UNIQUE_DOMAINS", other)).toBe("refused");
  });

  it("refuse an invitation of an older client, whose number slugs of the service desk have now", () => {
    expect(canonical("SERVICE_DESK_PROJECT_KEY_ADDRESS_SLUGS", "acme-app-key_1")).toBe("acme-app-key_1");
    expect(canonical("SERVICE_DESK_PROJECT_KEY_ADDRESS_SLUGS", "ada@example.com")).toBe("refused");
  });

  it("are written out in full in the set's document", () => {
    const { bucket_types: buckets, ...others } = documentOf(shipped.entries);
    expect(buckets["ROUTES"]).toEqual({ number: 1, form: "path", script: "single", case: "folded" });
    expect(buckets["EMAILS"]).toEqual({ number: 5, form: "email", script: "any", case: "folded" });
    expect(others).toEqual({
      subject_types: gitlabTypes.subject_types,
      source_types: gitlabTypes.source_types,
    });
  });
});
