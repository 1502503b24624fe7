/** Which certificates may be added as authorities, with certificates made by openssl. */
import { X509Certificate } from "node:crypto";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { readAuthority } from "../../../../src/coordinator/auth/certificates/authority.ts";
import { Authority } from "../../../hosts/grpc/certificates.ts";

const DAY_MS = 86_400_000;
const authority = new Authority("cells/O=Example, Ltd.");
afterAll(() => authority.close());
const pem = authority.cert.toString();

const invalid = (detail: string): object => ({
  ok: false,
  refusal: { code: "INVALID_ARGUMENT", detail: expect.stringContaining(detail) as unknown },
});

test("[A4] an authority is described by its subject and its expiry", async () => {
  const read = await readAuthority(pem, Date.now());
  const subject = String.raw`O=Example\, Ltd., CN=cells`;
  expect(read).toEqual({ ok: true, value: { subject, expiresAtMs: expect.any(Number) as unknown } });
  expect(read.ok && Math.round((read.value.expiresAtMs - Date.now()) / DAY_MS)).toBe(30);
  // It may be added before it becomes valid.
  expect(await readAuthority(pem, Date.now() - 10 * DAY_MS)).toEqual(read);
  expect(await readAuthority(pem, Date.now() + 31 * DAY_MS)).toEqual(invalid("has expired"));
});

test.each([
  ["30 days", 30],
  // From 2050 on, times are written in another way.
  ["100 years", 36_500],
])("its expiry is as Node reads it, after %s", async (_, days) => {
  const renewed = authority.renewed(days).toString();
  const expiresAtMs = new X509Certificate(renewed).validToDate.getTime();
  expect(await readAuthority(renewed, Date.now())).toMatchObject({ value: { expiresAtMs } });
});

test.each([
  ["keyUsage=critical,keyCertSign,cRLSign"],
  ["keyUsage=keyCertSign", "extendedKeyUsage=clientAuth"],
  ["extendedKeyUsage=anyExtendedKeyUsage", "1.2.3.4=ASN1:UTF8String:x"],
])("an authority with %s %s is accepted", async (...extensions) => {
  const constraints = "basicConstraints=critical,CA:TRUE,pathlen:0";
  const other = new Authority("other", { extensions: [constraints, ...extensions] });
  onTestFinished(() => other.close());
  expect(await readAuthority(other.cert.toString(), Date.now())).toMatchObject({ ok: true });
});

test("text around the certificate and other line ends change nothing", async () => {
  const read = await readAuthority(pem, Date.now());
  const described = `subject=CN = cells\r\n${pem.replaceAll("\n", "\r\n")}\r\n\r\n`;
  expect(await readAuthority(described, Date.now())).toEqual(read);
});

describe("what is refused:", () => {
  test.each([
    ["nothing", "", "exactly one certificate"],
    ["other text", "certificate", "exactly one certificate"],
    ["two certificates", pem + pem, "exactly one certificate"],
    ["a request", pem.replaceAll("CERTIFICATE", "CERTIFICATE REQUEST"), "exactly one certificate"],
    ["a private key beside it", `${pem}-----BEGIN EC PRIVATE KEY-----\n`, "has a private key"],
    ["no end", pem.replace(/-----END.*/s, ""), "cannot be read"],
    ["no base64", pem.replace(/\nM/, "\n!"), "cannot be read"],
    ["a cut certificate", pem.replace(/\n.{64}\n/, "\n"), "cannot be read"],
    ["too much text", `${pem}${" ".repeat(65_536)}`, "more than 65536 characters"],
  ])("%s", async (_, text, detail) => {
    expect(await readAuthority(text, Date.now())).toEqual(invalid(detail));
  });

  test("the certificate of a client", async () => {
    const { cert } = authority.issue("cell 1", { sans: ["DNS:cell-1.test"] });
    expect(await readAuthority(cert.toString(), Date.now())).toEqual(invalid("must say CA"));
  });

  const CA = "basicConstraints=critical,CA:TRUE";
  test.each([
    ["keyUsage=critical,digitalSignature", "must have keyCertSign"],
    ["extendedKeyUsage=serverAuth", "must have clientAuth"],
    ["nameConstraints=critical,permitted;DNS:a.test", "name constraints, which are not supported"],
    ["1.2.3.4=critical,ASN1:UTF8String:x", "the critical extension 1.2.3.4, which"],
  ])("an authority with %s", async (extension, detail) => {
    const other = new Authority("other", { extensions: [CA, extension] });
    onTestFinished(() => other.close());
    expect(await readAuthority(other.cert.toString(), Date.now())).toEqual(invalid(detail));
  });

  test.each(["RSA-1024", "secp256k1"] as const)("a key of %s", async (key) => {
    const other = new Authority("other", { key });
    onTestFinished(() => other.close());
    expect(await readAuthority(other.cert.toString(), Date.now())).toEqual(invalid("2048 bits or more"));
  });
});
