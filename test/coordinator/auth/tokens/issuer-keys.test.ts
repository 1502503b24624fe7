import { expect, test } from "vitest";
import { IssuerKeys } from "../../../../src/coordinator/auth/tokens/issuer-keys.ts";
import { privateField } from "../../../support/private-fields.ts";
import { ec, identitiesOf, issuerOf, KeyServer, NOW_MS, TestTimers } from "./test-issuer.ts";

test("a failed read is logged for each issuer that has this URL, and for no other", async () => {
  const server = await KeyServer.start();
  server.fail();
  const lines: unknown[] = [];
  const keys = new IssuerKeys(new TestTimers(), (event, { issuer }) => void lines.push([event, issuer]));
  const at = (name: string, path = "") => issuerOf({ name, keys: null, jwksUrl: server.url + path });
  const identities = identitiesOf(at("people"), at("robots"), at("elsewhere", "/x"), issuerOf());
  await keys.get(at("robots"), identities, () => true, NOW_MS);
  expect(lines).toEqual([
    ["issuer_keys_failed", "people"],
    ["issuer_keys_failed", "robots"],
  ]);
});

test("[M6] only the URLs of the current identities are kept", async () => {
  const server = await KeyServer.start(ec.jwk);
  const keys = new IssuerKeys(new TestTimers(), () => {});
  const read = async (...paths: string[]): Promise<void> => {
    const issuers = paths.map((path) => issuerOf({ keys: null, jwksUrl: server.url + path }));
    const identities = identitiesOf(...issuers);
    for (const issuer of issuers) await keys.get(issuer, identities, () => true, NOW_MS);
  };
  await read("/a", "/b", "/c");
  await read("/b", "/d");
  // Those that stay are not read again.
  expect(server.paths).toEqual(["/jwks/a", "/jwks/b", "/jwks/c", "/jwks/d"]);
  const kept = privateField(keys, "#remote") as Map<string, unknown>;
  expect([...kept.keys()]).toEqual([`${server.url}/b`, `${server.url}/d`]);
});
