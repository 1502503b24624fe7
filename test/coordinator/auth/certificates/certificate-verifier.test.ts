/** Which client certificates are recognized, with certificates made by openssl. */
import { sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { CertificateVerifier } from "../../../../src/coordinator/auth/certificates/certificate-verifier.ts";
import type {
  CertificateRule,
  Identities,
} from "../../../../src/coordinator/capabilities/identities/identities.ts";
import { defaultLimits } from "../../../../src/common/limits.ts";
import { Authority, derOf, type KeyKind } from "../../../hosts/grpc/certificates.ts";
import { inSlice } from "../../../support/slice.ts";

const DAY_MS = 86_400_000;
const authority = new Authority();
afterAll(() => authority.close());

const dns = (name: string, cell = "1"): CertificateRule => ({ kind: "dns", name, role: "cell", cell });
const RULES = [dns("cell-1.test")];

/** The identities with these authorities, all with the same rules. */
const trusting = (certs: readonly Buffer[], rules: readonly CertificateRule[] = RULES): Identities => ({
  issuers: [],
  authorities: certs.map((cert, index) => {
    return { name: `authority ${index}`, certificate: cert.toString(), expiresAtMs: 0, rules };
  }),
});
const identities = trusting([authority.cert]);

interface Verified {
  nowMs?: number;
  verifier?: CertificateVerifier;
}

const verify = (
  der: Uint8Array,
  accepted = identities,
  { nowMs = Date.now(), verifier = new CertificateVerifier(defaultLimits) }: Verified = {},
) => verifier.verify(der, accepted, nowMs);

const issued = (sans: readonly string[], more: object = {}): Buffer =>
  derOf(authority.issue("cell 1", { sans, ...more }).cert);
const good = issued(["DNS:cell-1.test"]);

const granted = (more: object = {}): object => ({
  ok: true,
  value: expect.objectContaining({ role: "cell", cell: "1", ...more }) as unknown,
});
const refusedFor = (detail: RegExp | string, code = "UNAUTHENTICATED", more: object = {}): object => ({
  ok: false,
  refusal: { code, detail: expect.stringMatching(detail) as unknown, ...more },
});
const NO_AUTHORITY = refusedFor("no authority that is accepted here has signed");
const NO_RULE = refusedFor("no rule of the authority", "PERMISSION_DENIED");

test("[A4] a certificate that an authority has signed counts as a key of its rule", async () => {
  const first = await verify(good);
  expect(first).toEqual({
    ok: true,
    value: {
      role: "cell",
      cell: "1",
      keyId: expect.stringMatching(
        /^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
      ) as unknown,
      expiresAtMs: expect.any(Number) as unknown,
      credential: {
        kind: "certificate",
        issuedBy: "authority 0",
        name: "cell-1.test",
        issuedAtMs: expect.any(Number) as unknown,
      },
    },
  });
  expect(first.ok && first.value.expiresAtMs - Date.now()).toBeGreaterThan(29 * DAY_MS);
  // Its id is always the same, and that of no other certificate.
  expect(await verify(good)).toEqual(first);
  expect(await verify(issued(["DNS:cell-1.test"]))).not.toEqual(first);
});

describe("[A4] the signature is checked", () => {
  test("without authorities, no certificate is accepted", async () => {
    expect(await verify(good, trusting([]))).toEqual(NO_AUTHORITY);
  });

  test("another authority of the same name has not signed it", async () => {
    const impostor = new Authority();
    onTestFinished(() => impostor.close());
    const forged = derOf(impostor.issue("cell 1", { sans: ["DNS:cell-1.test"] }).cert);
    expect(await verify(forged)).toEqual(NO_AUTHORITY);
  });

  test("an authority of another name with the same key has not signed it", async () => {
    const [other, renamed] = [new Authority("other"), authority.renewed(30, "/CN=renamed")];
    onTestFinished(() => other.close());
    expect(await verify(good, trusting([other.cert, renamed]))).toEqual(NO_AUTHORITY);
    expect(await verify(good, trusting([other.cert, renamed, authority.cert]))).toEqual(granted());
  });

  const kinds: readonly KeyKind[] = ["P-256", "P-384", "P-521", "Ed25519", "RSA"];
  test.each(kinds)("by an authority with a key of %s", async (kind) => {
    const signer = new Authority("of kind", { key: kind });
    onTestFinished(() => signer.close());
    const accepted = trusting([signer.cert]);
    for (const key of inSlice(kinds, kinds.length)) {
      const der = derOf(signer.issue("cell 1", { sans: ["DNS:cell-1.test"], key }).cert);
      expect(await verify(der, accepted)).toEqual(granted());
      const changed = Buffer.from(der);
      changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
      expect(await verify(changed, accepted)).toMatchObject({ ok: false });
    }
  });

  test.each([
    ["P-384", "sha384"],
    ["P-256", "sha512"],
    ["RSA", "sha384"],
    ["RSA", "sha512"],
  ] as const)("of %s with %s", async (key, digest) => {
    const signer = new Authority("of digest", { key });
    onTestFinished(() => signer.close());
    const { cert } = signer.issue("cell 1", { sans: ["DNS:cell-1.test"], digest });
    expect(await verify(derOf(cert), trusting([signer.cert]))).toEqual(granted());
  });

  test.each([
    ["P-256", "sha1"],
    ["RSA", "sha1"],
    ["RSA", "md5"],
    ["RSA-1024", "sha256"],
    ["secp256k1", "sha256"],
  ] as const)("those of %s with %s are refused", async (key, digest) => {
    const signer = new Authority("too weak", { key });
    onTestFinished(() => signer.close());
    const { cert } = signer.issue("cell 1", { sans: ["DNS:cell-1.test"], digest });
    expect(await verify(derOf(cert), trusting([signer.cert]))).toEqual(NO_AUTHORITY);
  });
});

test("[A4] the same certificate with another signature of ECDSA has the same id, so A1 holds", async () => {
  const changed = withNegatedSignature(good);
  expect(changed.equals(good)).toBe(false);
  const verified = await verify(changed);
  expect(verified).toEqual(granted());
  expect(verified).toEqual(await verify(good));
});

test("[A4] the first rule that fits decides, of whichever certificate of the authority", async () => {
  const [old] = trusting([authority.cert], [dns("cell-2.test", "2")]).authorities;
  // A new certificate for the same key, with rules of its own.
  const [renewed] = trusting([authority.renewed(60)]).authorities;
  const [last] = trusting([authority.cert], [dns("cell-1.test", "3")]).authorities;
  const accepted = { issuers: [], authorities: [old, renewed, last].flatMap((each) => each ?? []) };
  expect(await verify(good, accepted)).toEqual(granted());
});

describe("[A4] times", () => {
  const second = 1_000;
  const times = async (): Promise<{ notAfterMs: number; issuedMs: number }> => {
    const verified = await verify(good);
    const notAfterMs = verified.ok ? verified.value.expiresAtMs : Number.NaN;
    return { notAfterMs, issuedMs: notAfterMs - 30 * DAY_MS };
  };
  const expired = refusedFor("has expired; get a new one", "UNAUTHENTICATED", { reason: "KEY_EXPIRED" });
  // Only the client's certificate is to expire.
  const lasting = trusting([authority.renewed(3_000)]);

  test("an expired certificate is refused as an expired key is, also one that is remembered", async () => {
    const { notAfterMs } = await times();
    const verifier = new CertificateVerifier(defaultLimits);
    expect(await verify(good, lasting, { nowMs: notAfterMs - 1, verifier })).toEqual(granted());
    expect(await verify(good, lasting, { nowMs: notAfterMs, verifier })).toEqual(expired);
    expect(await verify(good, lasting, { nowMs: notAfterMs })).toEqual(expired);
    expect(await verify(issued(["DNS:cell-1.test"], { days: -1 }))).toEqual(expired);
  });

  test("a certificate is valid 60 s before it says so, because clocks differ", async () => {
    const { issuedMs } = await times();
    // The authority was made before it.
    const late = trusting([authority.cert]);
    const early = await verify(good, late, { nowMs: issuedMs - 30 * second });
    expect(early).toEqual(granted());
    const refusal = refusedFor(/is not valid (before|yet)/);
    expect(await verify(good, late, { nowMs: issuedMs - 3_600 * second })).toEqual(refusal);
  });

  test("a certificate that becomes valid more than 60 s later is refused", async () => {
    const signer = new Authority("signer", { key: "Ed25519" });
    onTestFinished(() => signer.close());
    const { cert } = signer.issue("cell 1", { sans: ["DNS:cell-1.test"] });
    const startingAt = (ms: number): Promise<object> =>
      verify(resigned(derOf(cert), signer, ms), trusting([signer.cert]));
    expect(await startingAt(Date.now() + 30 * second)).toEqual(granted());
    expect(await startingAt(Date.now() + 90 * second)).toEqual(refusedFor(/is not valid before 20.*Z$/));
  });

  test("one of an expired authority is refused, also one that is remembered", async () => {
    const short = authority.renewed(1);
    const accepted = trusting([short]);
    const nowMs = Date.now() + 2 * DAY_MS;
    const gone = refusedFor("has expired or is not valid yet");
    const verifier = new CertificateVerifier(defaultLimits);
    expect(await verify(good, accepted, { verifier })).toEqual(granted());
    expect(await verify(good, accepted, { verifier, nowMs })).toEqual(gone);
    expect(await verify(good, accepted, { nowMs })).toEqual(gone);
    // A new certificate for the same key of the authority, beside the old one.
    expect(await verify(good, trusting([short, authority.cert]), { nowMs })).toEqual(granted());
  });

  test("one that is valid for longer than a key may be is refused, and says so", async () => {
    const limits = { ...defaultLimits, keyLifetimeS: 29 * 86_400 };
    const verifier = new CertificateVerifier(limits);
    const tooLong = refusedFor(/is valid from .* until .* which is 2505600 s \(key_lifetime_s\)$/);
    expect(await verify(good, identities, { verifier })).toEqual(tooLong);
    const years = issued(["DNS:cell-1.test"], { days: 800 });
    expect(await verify(years)).toEqual(refusedFor(/34560000 s \(key_lifetime_s\)/));
  });

  test("[A1] one that is valid for too long is refused until its end, as it may be revoked", async () => {
    const { notAfterMs } = await times();
    const limits = { ...defaultLimits, keyLifetimeS: 29 * 86_400 };
    const late = { verifier: new CertificateVerifier(limits), nowMs: notAfterMs - DAY_MS };
    expect(await verify(good, lasting, late)).toEqual(refusedFor(/which is 2505600 s/));
    // Authorities date certificates back by some minutes.
    const just = { ...defaultLimits, keyLifetimeS: 30 * 86_400 - 300 };
    const verifier = new CertificateVerifier(just);
    expect(await verify(good, lasting, { ...late, verifier })).toEqual(granted());
  });
});

describe("[A4] what a certificate is for", () => {
  test.each([
    ["an authority", "basicConstraints=CA:TRUE", "is that of an authority"],
    ["servers only", "extendedKeyUsage=serverAuth", "must have clientAuth"],
    ["encryption only", "keyUsage=critical,keyEncipherment", "must have digitalSignature"],
    ["who knows what", "1.2.3.4=critical,ASN1:UTF8String:x", /critical extension 1\.2\.3\.4, which/],
  ])("one for %s is refused", async (_, extension, detail) => {
    const der = issued(["DNS:cell-1.test"], { extensions: [extension] });
    expect(await verify(der)).toEqual(refusedFor(detail));
  });

  test("that of the authority itself is refused", async () => {
    expect(await verify(derOf(authority.cert))).toEqual(refusedFor("is that of an authority"));
  });

  test.each([
    "basicConstraints=critical,CA:FALSE",
    "extendedKeyUsage=critical,serverAuth,clientAuth",
    "extendedKeyUsage=anyExtendedKeyUsage",
    "keyUsage=critical,digitalSignature,keyEncipherment",
    "1.2.3.4=ASN1:UTF8String:x",
  ])("one with %s is accepted", async (extension) => {
    const der = issued(["DNS:cell-1.test"], { extensions: [extension] });
    expect(await verify(der)).toEqual(granted());
  });

  test.each([
    ["basicConstraints=critical,CA:TRUE", "nameConstraints=critical,permitted;DNS:other.test"],
    ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,digitalSignature"],
    ["basicConstraints=critical,CA:TRUE", "extendedKeyUsage=serverAuth"],
    ["basicConstraints=critical,CA:FALSE"],
  ])("authorities with %s %s sign nothing", async (...extensions) => {
    const other = new Authority("unusable", { extensions });
    onTestFinished(() => other.close());
    const { cert } = other.issue("cell 1", { sans: ["DNS:cell-1.test"] });
    expect(await verify(derOf(cert), trusting([other.cert]))).toEqual(NO_AUTHORITY);
  });
});

describe("[A4] names", () => {
  const uri: CertificateRule = { kind: "uri", name: "spiffe://a.test/Cell", role: "router", cell: null };
  const withUri = trusting([authority.cert], [dns("cell-1.test"), uri]);

  test("a name of DNS in any case", async () => {
    expect(await verify(issued(["DNS:Cell-1.TEST"]))).toEqual(granted());
  });

  test("a URI in its own case", async () => {
    const router = granted({ role: "router", cell: null });
    expect(await verify(issued(["URI:spiffe://a.test/Cell"]), withUri)).toEqual(router);
    expect(await verify(issued(["URI:spiffe://a.test/cell"]), withUri)).toEqual(NO_RULE);
  });

  test.each([
    ["no names", []],
    ["another name", ["DNS:cell-2.test"]],
    ["a longer name", ["DNS:a.cell-1.test", "DNS:cell-1.test.example.com"]],
    ["a wildcard", ["DNS:*.test"]],
    ["the name as a URI", ["URI:cell-1.test"]],
    ["the name as an address", ["email:a@cell-1.test"]],
    ["a URI as a name of DNS", ["DNS:spiffe://a.test/Cell"]],
    ["names of kinds that no rule has", ["IP:127.0.0.1", "RID:1.2.3.4"]],
  ])("%s in the certificate, although its subject is cell 1: PERMISSION_DENIED", async (_, sans) => {
    expect(await verify(issued(sans), withUri)).toEqual(NO_RULE);
  });

  test("a wildcard in a rule fits no other name", async () => {
    expect(await verify(good, trusting([authority.cert], [dns("*.test")]))).toEqual(NO_RULE);
  });

  test("the first rule that fits applies, whatever the order in the certificate", async () => {
    const both = issued(["DNS:b.test", "DNS:a.test"]);
    const inOrder = (...rules: CertificateRule[]) => verify(both, trusting([authority.cert], rules));
    expect(await inOrder(dns("c.test", "3"), dns("a.test", "1"), dns("b.test", "2"))).toEqual(granted());
    expect(await inOrder(dns("b.test", "2"), dns("a.test", "1"))).toEqual(granted({ cell: "2" }));
  });

  test("each authority has rules of its own", async () => {
    const next = new Authority("next");
    onTestFinished(() => next.close());
    const [old, fresh] = trusting([authority.cert, next.cert]).authorities;
    if (old === undefined || fresh === undefined) expect.fail();
    const accepted = { issuers: [], authorities: [old, { ...fresh, rules: [dns("cell-2.test", "2")] }] };
    const of = (sans: string) => derOf(next.issue("any", { sans: [sans] }).cert);
    expect(await verify(of("DNS:cell-2.test"), accepted)).toEqual(granted({ cell: "2" }));
    expect(await verify(of("DNS:cell-1.test"), accepted)).toEqual(NO_RULE);
  });
});

test("[A4] two authorities of one name are both accepted while one replaces the other", async () => {
  const next = new Authority();
  onTestFinished(() => next.close());
  const renewed = derOf(next.issue("cell 1", { sans: ["DNS:cell-1.test"] }).cert);
  for (const accepted of [trusting([authority.cert, next.cert]), trusting([next.cert, authority.cert])]) {
    expect(await verify(good, accepted)).toEqual(granted());
    expect(await verify(renewed, accepted)).toEqual(granted());
  }
  expect(await verify(good, trusting([next.cert]))).toEqual(NO_AUTHORITY);
});

describe("bytes that are no certificate", () => {
  test("a certificate that is cut anywhere is refused, and one with bytes after it", async () => {
    const unreadable = refusedFor("cannot be read");
    for (let length = 0; length < good.length; length += 1)
      expect(await verify(good.subarray(0, length)), String(length)).toEqual(unreadable);
    expect(await verify(Buffer.concat([good, Buffer.alloc(1)]))).toEqual(unreadable);
  });

  test("a certificate with any byte changed is refused, or is still the same", async () => {
    const same = await verify(good);
    const verifier = new CertificateVerifier(defaultLimits);
    for (let at = 0; at < good.length; at += 1)
      for (const bit of [1, 0x80]) {
        const changed = Buffer.from(good);
        changed[at] = (changed[at] ?? 0) ^ bit;
        const verified = await verify(changed, identities, { verifier });
        if (verified.ok) expect(verified, `${at}, ${bit}`).toEqual(same);
        else expect(verified.refusal.code).toBe("UNAUTHENTICATED");
      }
  });

  test("more than 16 KiB are not read", async () => {
    const sans = Array.from({ length: 1_000 }, (_, index) => `DNS:cell-1-${index}.cells.test`);
    const large = refusedFor("is larger than 16384 bytes");
    expect(await verify(issued(sans))).toEqual(large);
    expect(await verify(Buffer.alloc(16_385))).toEqual(large);
    // As many names as fit.
    expect(await verify(issued([...sans.slice(0, 600), "DNS:cell-1.test"]))).toEqual(granted());
  });

  test("deep nesting is refused in bounded time", async () => {
    let nested = Buffer.alloc(0);
    while (nested.length < 16_000) {
      const { length } = nested;
      const header = length < 128 ? [0x30, length] : [0x30, 0x82, length >> 8, length & 0xff];
      nested = Buffer.concat([Buffer.from(header), nested]);
    }
    expect(await verify(nested)).toEqual(refusedFor("cannot be read"));
  });
});

describe("what is remembered", () => {
  test("[A4] a change of the identities applies to certificates that were verified before", async () => {
    const verifier = new CertificateVerifier(defaultLimits);
    expect(await verify(good, identities, { verifier })).toEqual(granted());
    const changed = trusting([authority.cert], [dns("cell-1.test", "9")]);
    expect(await verify(good, changed, { verifier })).toEqual(granted({ cell: "9" }));
    expect(await verify(good, trusting([]), { verifier })).toEqual(NO_AUTHORITY);
  });

  test("a certificate is checked once, and again after `keyCache` others", async () => {
    const verifier = new CertificateVerifier({ ...defaultLimits, keyCache: 2 });
    const [first, second, third] = [good, issued(["DNS:cell-1.test"]), issued(["DNS:b.test"])];
    const checks = countingChecks();
    const each = async (...ders: Buffer[]): Promise<number> => {
      const before = checks();
      for (const der of ders) await verify(der, identities, { verifier });
      return checks() - before;
    };
    expect(await each(first, first, second, first)).toBe(2);
    // The second one was used before the first one.
    expect(await each(third, first)).toBe(1);
    expect(await each(second)).toBe(1);
    expect(await each(third, first, third)).toBe(2);
  });
});

/** Returns how many signatures have been checked since. */
function countingChecks(): () => number {
  let count = 0;
  const real = crypto.subtle.verify.bind(crypto.subtle);
  crypto.subtle.verify = (...given: Parameters<typeof real>) => {
    count += 1;
    return real(...given);
  };
  onTestFinished(() => void (crypto.subtle.verify = real));
  return () => count;
}

/** Changes when a certificate becomes valid, and signs it again with the authority's key on Ed25519. */
function resigned(der: Buffer, signer: Authority, notBeforeMs: number): Buffer {
  const changed = Buffer.from(der);
  const utcTime = new Date(notBeforeMs).toISOString().slice(2, 19).replaceAll(/[-:T]/g, "");
  // The first time in a certificate, after its tag and length.
  changed.write(utcTime, changed.indexOf(Buffer.from("170d", "hex")) + 2, "latin1");
  const signedBytes = changed.subarray(4, 8 + changed.readUInt16BE(6));
  sign(null, signedBytes, readFileSync(signer.keyFile)).copy(changed, changed.length - 64);
  return changed;
}

/** Replaces the number s of a signature on P-256 by n - s. */
function withNegatedSignature(der: Buffer): Buffer {
  const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const integer = (at: number): Buffer => der.subarray(at + 2, at + 2 + (der[at + 1] ?? 0));
  // The signature is at the end: a bit string of a sequence of two numbers.
  const start = der.lastIndexOf(Buffer.from("300a06082a8648ce3d040302", "hex")) + 12;
  const bits = start + 2;
  const r = integer(bits + 3);
  const s = integer(bits + 5 + r.length);
  const negated = (ORDER - BigInt(`0x${s.toString("hex")}`)).toString(16).padStart(64, "0");
  const digits = Buffer.from(/^[89a-f]/.test(negated) ? `00${negated}` : negated, "hex");
  const element = (tag: number, ...parts: Buffer[]): Buffer => {
    const content = Buffer.concat(parts);
    return Buffer.concat([Buffer.from([tag, content.length]), content]);
  };
  const sequence = element(0x30, element(2, r), element(2, digits));
  const content = Buffer.concat([der.subarray(4, start), element(3, Buffer.alloc(1), sequence)]);
  return Buffer.concat([Buffer.from([0x30, 0x82, content.length >> 8, content.length & 0xff]), content]);
}
