/** Client certificates in the runtime of Workers, whose WebCrypto differs from that of Node. */
import { expect, test } from "vitest";
import { CertificateVerifier } from "../../../src/coordinator/auth/certificates/certificate-verifier.ts";
import { readAuthority } from "../../../src/coordinator/auth/certificates/authority.ts";
import type { Identities } from "../../../src/coordinator/capabilities/identities/identities.ts";
import { defaultLimits } from "../../../src/common/limits.ts";
// openssl isn't there in workerd. `test/hosts/grpc/certificates.ts` made these, one pair per kind of key.
import made from "./certificates/made.json" with { type: "json" };

const DAY_MS = 86_400_000;
const nowMs = made.madeMs + DAY_MS;

test.each(made.signed)("[A4] workerd verifies certificates with keys of $kind", async (pair) => {
  const { kind, authority, client } = pair;
  expect(await readAuthority(authority, nowMs)).toMatchObject({ ok: true, value: { subject: `CN=${kind}` } });
  const identities: Identities = {
    issuers: [],
    authorities: made.signed.map(({ kind: name, authority: certificate }) => {
      const rule = { kind: "dns", name: "cell-1.test", role: "cell", cell: "1" } as const;
      return { name, certificate, expiresAtMs: 0, rules: [rule] };
    }),
  };
  const verifier = new CertificateVerifier(defaultLimits);
  const der = Uint8Array.from(atob(client), (character) => character.charCodeAt(0));
  const verified = await verifier.verify(der, identities, nowMs);
  expect(verified).toMatchObject({ ok: true, value: { role: "cell", cell: "1" } });
  expect(await verifier.verify(der, identities, nowMs)).toEqual(verified);
  expect(await verifier.verify(der, identities, nowMs + 40 * DAY_MS)).toMatchObject({ ok: false });
  const changed = der.with(der.length - 1, (der.at(-1) ?? 0) ^ 1);
  expect(await verifier.verify(changed, identities, nowMs)).toMatchObject({ ok: false });
});
