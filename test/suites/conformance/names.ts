/**
 * Tests of the canonical form: which spellings are one name, how they are shown, and which values are
 * refused.
 */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import type { Client, Received } from "./client.ts";
import { claim } from "./leases.ts";
import type { Open } from "./coordinator.ts";

export function nameSuite(open: Open): void {
  let api: Client;

  beforeAll(async () => {
    api = await open({ cells: ["1"] });
  });

  const take = (type: string, value: string): Promise<Received> =>
    api.send("POST", "/v1/cells/1/leases", { key: "cell 1", body: { creates: [claim(value, "42", type)] } });

  /** The path is sent exactly as written here. */
  const at = (type: string, path: string): Promise<Received> =>
    api.send("GET", `/v1/records/${type}/${path}`, { key: "router" });

  const spellingOf = ({ json }: Received): string =>
    (json as { record: { bucket: { value: string } } }).record.bucket.value;

  describe.each<[what: string, type: string, typed: string, paths: string[]]>([
    ["upper case", "ROUTES", "GitLab-Org", ["gitlab-org", "GITLAB-ORG", "GitLab%2DOrg"]],
    [
      "slashes, raw and encoded",
      "ROUTES",
      "Group/Sub/Project",
      ["group/sub/project", "group%2Fsub%2fproject", "GROUP/sub%2Fproject"],
    ],
    ["slashes in a type without paths", "USERNAMES", "/a//b/", ["/a//b/", "%2Fa%2F%2Fb%2F"]],
    ["dots", "ROUTES", "a.b/..c/d..", ["a.b/..c/d..", "a%2Eb/%2E%2Ec/d.."]],
    ["characters that would end the path of a URL", "EMAILS", "a?b#c@example.com", ["a%3Fb%23c@example.com"]],
    [
      "percent signs and pluses",
      "EMAILS",
      "100%+a@example.com",
      ["100%25+a@example.com", "100%25%2Ba@example.com"],
    ],
    ["spaces", "USERNAMES", "Ada Lovelace", ["ada%20lovelace"]],
    ["emoji", "EMAILS", "\u{1f600}@example.com", ["%F0%9F%98%80@example.com", "\u{1f600}@EXAMPLE.com"]],
    ["wide letters and ligatures", "ROUTES", "ＧｉｔＬａｂ/oﬃce", ["gitlab/office", "GITLAB/oFFICE"]],
    ["ß", "ROUTES", "Straße", ["strasse", "STRASSE", "stra%C3%9Fe", "STRA%E1%BA%9EE"]],
    ["é, in one or two code points", "USERNAMES", "Jos\u00e9", ["jos%C3%A9", "jose%CC%81"]],
    [
      "Greek with a final sigma",
      "USERNAMES",
      "ΟΔΥΣΣΕΥΣ",
      [encodeURIComponent("οδυσσευς"), encodeURIComponent("οδυσσευσ")],
    ],
    ["SQL", "EMAILS", "'; DROP TABLE claim; --", [encodeURIComponent("'; drop table claim; --")]],
    ["HTML", "GPG_KEY_FINGERPRINTS", "<b>@", ["%3Cb%3E@"]],
    ["a domain that IDNA has encoded", "EMAILS", "ada@xn--Mnchen1-N2A.de", ["ada@XN--mnchen1-n2a.de"]],
  ])("%s", (_, type, typed, paths) => {
    test("is found under every spelling, and shown as typed", async () => {
      expect((await take(type, typed)).status).toBe(201);
      for (const path of paths) {
        const found = await at(type, path);
        expect([path, found.status]).toEqual([path, 200]);
        expect(spellingOf(found)).toBe(typed);
      }
    });
  });

  test("Turkish i: İ and ı look like I and i, so they are the same name", async () => {
    expect((await take("USERNAMES", "turk-İ")).status).toBe(201);
    for (const value of ["turk-i", "turk-ı", "turk-I"])
      expect([value, (await take("USERNAMES", value)).status]).toEqual([value, 409]);
    for (const path of ["TURK-I", "turk-%C4%B1", "turk-%C4%B0"])
      expect(spellingOf(await at("USERNAMES", path))).toBe("turk-İ");
  });

  test("a look-alike in another script is the same name, except in email addresses", async () => {
    expect((await take("USERNAMES", "coco")).status).toBe(201);
    expect((await take("USERNAMES", "СОСО")).status).toBe(409);
    expect(spellingOf(await at("USERNAMES", encodeURIComponent("сосо")))).toBe("coco");
    expect((await take("EMAILS", "coco@example.com")).status).toBe(201);
    expect((await take("EMAILS", "сосо@example.com")).status).toBe(201);
  });

  test("the same value in another bucket type is another name", async () => {
    expect((await take("ROUTES", "both")).status).toBe(201);
    expect((await at("REDIRECT_ROUTES", "both")).status).toBe(404);
    expect((await take("REDIRECT_ROUTES", "both")).status).toBe(201);
  });

  test("1,024 bytes are accepted and 1,025 refused, typed and canonical (U+FDFA: 11 times)", async () => {
    const longest = "a".repeat(1_024);
    expect((await take("EMAILS", longest)).status).toBe(201);
    expect((await at("EMAILS", longest)).status).toBe(200);
    expect((await take("EMAILS", "é".repeat(512))).status).toBe(201);
    for (const value of ["a".repeat(1_025), "é".repeat(513), "\ufdfa".repeat(32)]) {
      const refused = await take("EMAILS", value);
      expect(refused.json).toMatchObject({ status: 400, field: "creates[0].bucket.value" });
      expect((await at("EMAILS", encodeURIComponent(value))).json).toMatchObject({
        status: 400,
        field: "value",
      });
    }
  });

  describe("refused with the index and without the name", () => {
    test.each([
      ["a control character", "EMAILS", "secret\u0007"],
      ["a lone surrogate", "EMAILS", "secret\ud800"],
      ["a bidi override", "EMAILS", "secret\u202e"],
      ["a zero-width joiner", "EMAILS", "secret\u200d"],
      ["an unassigned code point", "EMAILS", "secret\u{1fbff}"],
      ["Latin and Cyrillic in one word", "USERNAMES", "secr\u0435t"],
      ["a character that draws nothing", "USERNAMES", "secret\u2800"],
      ["a look-alike of a slash", "ROUTES", "secret\u2044x"],
      ["a mark on a digit", "USERNAMES", "secret1\u0301"],
      ["a space at the end", "EMAILS", "secret@example.com "],
      ["a domain beyond ASCII", "EMAILS", "secret@secr\u00fct.example"],
      ["a domain with a dot at its end", "EMAILS", "secret@secret.example."],
      ["quotes in an email address", "EMAILS", '"secret"@example.com'],
      ["a dot segment", "ROUTES", "secret/../x"],
      ["a look-alike of a dot segment", "ROUTES", "secret/\uff0e\uff0e/x"],
      ["a slash at the end", "ROUTES", "secret/"],
      ["an empty value", "ROUTES", ""],
    ])("%s", async (_, type, value) => {
      const refused = await take(type, value);
      expect(refused.json).toMatchObject({
        status: 400,
        code: "INVALID_ARGUMENT",
        field: "creates[0].bucket.value",
      });
      expect(refused.text).not.toMatch(/secr/);
    });
  });

  test("dot segments in a URL never reach the application, so such values need a body", async () => {
    expect((await at("USERNAMES", "..")).status).toBe(404);
    expect((await take("USERNAMES", "..")).status).toBe(201);
    const found = await api.json<{ results: unknown[] }>(200, "POST", "/v1/records/lookup", {
      key: "router",
      body: { buckets: [{ type: "USERNAMES", value: ".." }] },
    });
    expect(found.results).toMatchObject([
      { found: true, record: { bucket: { type: "USERNAMES", value: ".." } } },
    ]);
  });

  test("a name is shown as its owner typed it last", async () => {
    expect((await take("ROUTES", "respelt")).status).toBe(201);
    const [lease] = (
      await api.json<{ leases: { uuid: string }[] }>(200, "GET", "/v1/cells/1/leases?page_size=1000", {
        key: "cell 1",
      })
    ).leases.slice(-1);
    await api.json(200, "POST", `/v1/cells/1/leases/${lease?.uuid}/commit`, { key: "cell 1" });
    const uuid = newUuid();
    await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, {
      key: "cell 1",
      body: { replaces: [claim("ReSpelt", "43")] },
    });
    // While the replace is held, the record is unchanged.
    expect((await at("ROUTES", "respelt")).json).toMatchObject({
      record: { bucket: { value: "respelt" }, status: "ACTIVE", lease_uuid: uuid },
    });
    await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
    expect((await at("ROUTES", "respelt")).json).toMatchObject({
      record: { bucket: { value: "ReSpelt" }, source: { id: "43" }, lease_uuid: null },
    });
  });
}
