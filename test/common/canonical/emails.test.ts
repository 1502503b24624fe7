/** Email addresses: a mailbox has one spelling, so that it cannot have two owners. */
import { domainToASCII } from "node:url";
import { expect, test } from "vitest";
import { canonicalize } from "../../../src/common/canonical/canonicalize.ts";
import { ruleOf } from "../../support/types.ts";
import { acceptedCharacters } from "./unicode-data.ts";

function canon(value: string): string {
  const result = canonicalize(ruleOf("EMAILS"), value, 1_024);
  return result.ok ? result.canonical : result.detail;
}

test("a domain is written as DNS has it", () => {
  const detail = (codePoint: string) =>
    `${codePoint} is in the domain: write the domain in ASCII, ` +
    "with xn-- before each part that IDNA encodes.";
  expect(canon("ada@m\u00fcnchen1.de")).toBe(detail("U+00FC"));
  expect(canon("ada@mu\u0308nchen1.de")).toBe(detail("U+00FC"));
  expect(canon("ada\uff20stra\u00dfe.de")).toBe(detail("U+00DF"));
  expect(canon("ada@\u{1f600}.example")).toBe(detail("U+1F600"));
  expect(canon("ada@example\u3002org")).toBe(detail("U+3002"));
  expect(canon("Ada@XN--Mnchen1-N2A.de")).toBe("ada@xn--mnchen1-n2a.de");
  expect(canon("\u0438\u0432\u0430\u043d@xn--e1afmkfd.xn--p1ai")).toBe(
    "\u0438\u0432\u0430\u043d@xn--e1afmkfd.xn--p1ai",
  );
});

test("no domain gets another name than IDNA gives it", () => {
  let same = 0;
  const others: string[] = [];
  for (const character of acceptedCharacters()) {
    const domain = `a${character}b.example`;
    const result = canonicalize(ruleOf("EMAILS"), `ada@${domain}`, 1_024);
    const ascii = result.ok ? domainToASCII(domain) : "";
    if (ascii === "") continue;
    if (result.ok && result.canonical === `ada@${ascii}`) same += 1;
    else others.push(character);
  }
  // They end the host of a URL, which `domainToASCII` reads.
  expect(others.join("")).toBe("#/?");
  expect(same).toBeGreaterThan(1_000);
});

test("a domain does not end with a dot", () => {
  const detail = "The domain ends with a dot: leave it out.";
  for (const dot of [".", "\uff0e", "..", "\u2026"]) expect(canon(`ada@example.org${dot}`)).toBe(detail);
  expect(canon("ada.@example.org")).toBe("ada.@example.org");
});

test("a local part has no quotes, comments and spaces, and nothing is around an address", () => {
  const spellings = {
    "U+0022": ['"qq"@x.org', 'q."q"@x.org', "\uff02qq\uff02@x.org", '"q q"@x.org', '"q@q"@x.org'],
    "U+0028": ["(c)qq@x.org", "qq(c)@x.org", "qq@(c)x.org", "\u2474qq@x.org"],
    "U+003C": ["<qq@x.org>", "qq<qq@x.org>"],
    "U+0020": ["qq @x.org", "qq@ x.org", "qq\u3000@x.org"],
    "U+003A": ["mailto:qq@x.org"],
    "U+002C": ["qq,@x.org"],
    "U+003B": ["qq@x.org;"],
    "U+005C": ["q\\q@x.org"],
    "U+0040": ["@a.org@x.org", "q@q@x.org"],
    "U+005B": ["qq@[127.0.0.1]"],
    "U+003D": ["=?utf-8?q?qq?=@x.org", "=?utf-8?q?=71=71?=@x.org"],
  };
  for (const [codePoint, values] of Object.entries(spellings))
    for (const value of values)
      expect([value, canon(value)]).toEqual([
        value,
        `${codePoint} in an email address allows several spellings of it: ` +
          "write it as local@domain, without quotes, comments, spaces and encoded words.",
      ]);
  const unusual = "!#$%&'*+-/=?^_`{|}~..q=@my_host.example";
  expect(canon(unusual)).toBe(unusual);
});

test("a value without `@` is no address", () => {
  for (const value of ['"qq"', "m\u00fcnchen.de", "a b.", "(a)"]) expect(canon(value)).toBe(value);
});
