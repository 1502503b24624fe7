/** Where the client certificate of a request comes from. */
import { describe, expect, test } from "vitest";
import { bridgedCertificateOf } from "../../../src/coordinator/api/authenticate.ts";
import { WebRequest } from "../../../src/coordinator/api/web-request.ts";

const DER = Uint8Array.from({ length: 700 }, (_, index) => index % 256);
const base64 = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
const rfc9440 = `:${base64(DER)}:`;

const verified = {
  certPresented: "1",
  certVerified: "SUCCESS",
  certRevoked: "0",
  certRFC9440: rfc9440,
  certRFC9440TooLarge: false,
};
const from = (tlsClientAuth: object, headers: Record<string, string> = {}): Request =>
  new Request("https://leasehold.test/", { headers, cf: { tlsClientAuth } as unknown as CfProperties });
const none = { ok: true, value: undefined };
const refusedFor = (detail: string): object => ({
  ok: false,
  refusal: { code: "UNAUTHENTICATED", detail: expect.stringContaining(detail) as unknown },
});

const certificateOf = (request: Request) => new WebRequest(request, undefined).certificate();

describe("[A4] the certificate of a request", () => {
  test("is the one that Cloudflare has verified", () => {
    expect(certificateOf(from(verified))).toEqual({ ok: true, value: DER });
  });

  test.each([
    ["there was none", { ...verified, certPresented: "0", certVerified: "NONE", certRFC9440: "" }],
    ["it says nothing", {}],
    ["its issuer is unknown", { ...verified, certVerified: "FAILED:unable to get local issuer certificate" }],
    ["it has expired", { ...verified, certVerified: "FAILED:certificate has expired" }],
    ["it failed for no reason", { ...verified, certVerified: "FAILED" }],
    ["it says success in another way", { ...verified, certVerified: "success" }],
    ["it is revoked", { ...verified, certRevoked: "1" }],
    ["it wasn't presented", { ...verified, certPresented: "0" }],
  ])("is none if Cloudflare says that %s", (_, tlsClientAuth) => {
    expect(certificateOf(from(tlsClientAuth))).toEqual(none);
  });

  test("is refused if Cloudflare has left it out because of its size", () => {
    const large = { ...verified, certRFC9440: "", certRFC9440TooLarge: true };
    expect(certificateOf(from(large))).toEqual(refusedFor("larger than the 10 KiB"));
    expect(certificateOf(from({ ...verified, certRFC9440: "" }))).toEqual(refusedFor("can be read"));
  });

  test("is never one from a header", () => {
    const headers = {
      "client-cert": rfc9440,
      "x-client-cert": rfc9440,
      "x-forwarded-client-cert": `Cert="${rfc9440}"`,
      "cf-client-cert-der-base64": base64(DER),
    };
    expect(certificateOf(new Request("https://leasehold.test/", { headers }))).toEqual(none);
    expect(certificateOf(from({ ...verified, certPresented: "0" }, headers))).toEqual(none);
  });

  test("is the one that a server of this process has verified", () => {
    const request = new WebRequest(new Request("https://leasehold.test/"), DER);
    expect(request.certificate()).toEqual({ ok: true, value: DER });
  });
});

describe("the certificate of a client of the bridge", () => {
  const bridged = (text: string) => bridgedCertificateOf(text);

  test("is in the form of RFC 9440", () => {
    expect(bridged(rfc9440)).toEqual({ ok: true, value: DER });
    expect(bridgedCertificateOf(undefined)).toEqual(none);
    for (const length of [1, 2, 3, 16_384]) {
      const bytes = new Uint8Array(length).fill(251);
      expect(bridged(`:${base64(bytes)}:`)).toEqual({ ok: true, value: bytes });
    }
  });

  test.each([
    ["nothing", ""],
    ["no bytes", "::"],
    ["no colons", base64(DER)],
    ["one colon", ":"],
    ["two certificates", `${rfc9440}, ${rfc9440}`],
    ["a parameter", `${rfc9440};a=1`],
    ["base64url", ":-_-_:"],
    ["spaces", ":AA AA A=:"],
    ["no padding", ":AAA:"],
    ["too much padding", ":A===:"],
    ["padding in the middle", ":AA==AAAA:"],
    ["16 KiB and 3 bytes", `:${base64(new Uint8Array(16_387))}:`],
  ])("is refused with %s", (_, text) => {
    expect(bridged(text)).toEqual(refusedFor("Client-Cert must be one certificate of at most 16 KiB"));
  });
});
