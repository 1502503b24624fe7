/** Tokens in the header that Cloudflare Access adds to requests, and who may not use them (A4). */
import { createExecutionContext } from "cloudflare:test";
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from "jose";
import { beforeAll, describe, expect, test } from "vitest";
import { serveRequest } from "../../../src/coordinator/api/web-request.ts";
import { claim, freshName } from "../../suites/conformance/leases.ts";
import { env, signedKey, startDeployment } from "../../support/workerd/api.ts";

const HEADER = "cf-access-jwt-assertion";
const ORIGIN = "https://leasehold.test";
const TEAM = "https://acme.cloudflareaccess.com";
const FORGE = "https://forge.example";
const AUDIENCE = "leasehold";

type Headers = Record<string, string>;

let operator: string;
let router: string;
let privateKey: CryptoKey;
let issuers: { access: object; forge: object };

/** Sends a request. Without a body, it has no content type. */
async function send(method: string, path: string, headers: Headers, body?: unknown, cf?: object) {
  const request = new Request(`${ORIGIN}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(cf === undefined ? {} : { cf }),
  } as RequestInit);
  const answer = await serveRequest(request, env, createExecutionContext());
  return { status: answer.status, text: await answer.text() };
}

const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

async function declare(...declared: object[]): Promise<void> {
  const { text } = await send("GET", "/v1/admin/identities", bearer(operator));
  const { version } = JSON.parse(text) as { version: number };
  const document = { version, issuers: declared, authorities: [] };
  const put = await send("PUT", "/v1/admin/identities", bearer(operator), document);
  expect(put, put.text).toMatchObject({ status: 200 });
}

const sign = (name: string, more: Record<string, unknown> = {}, key = privateKey): Promise<string> => {
  const nowS = Math.floor(Date.now() / 1_000);
  const claims = { iss: TEAM, aud: [AUDIENCE], sub: "", common_name: name, iat: nowS, exp: nowS + 600 };
  return new SignJWT({ ...claims, ...more }).setProtectedHeader({ alg: "ES256", kid: "1" }).sign(key);
};

const added = async (...given: Parameters<typeof sign>): Promise<Headers> => ({
  [HEADER]: await sign(...given),
});

beforeAll(async () => {
  await startDeployment("1", "2");
  operator = await signedKey({ role: "operator" });
  router = await signedKey({ role: "router" });
  const pair = await generateKeyPair("ES256", { extractable: true });
  privateKey = pair.privateKey;
  const { kty, crv, x, y } = await exportJWK(pair.publicKey);
  const common = {
    audience: AUDIENCE,
    algorithms: ["ES256"],
    keys: [{ kty, crv, x, y, kid: "1" }],
    rules: [
      { claims: { common_name: "cell.access" }, role: "cell", cell_id: "1" },
      { claims: { common_name: "operator.access" }, role: "operator" },
    ],
  };
  issuers = {
    access: { name: "access", issuer: TEAM, ...common, token_header: HEADER },
    forge: { name: "forge", issuer: FORGE, ...common },
  };
  await declare(issuers.access, issuers.forge);
});

const leases = "/v1/cells/1/leases";
const admin = "/v1/admin/keys";
const oneClaim = () => ({ creates: [claim(freshName())] });

test("[A4] a service token gives its role and cell, also as a bearer", async () => {
  for (const headers of [await added("cell.access"), bearer(await sign("cell.access"))]) {
    expect(await send("POST", leases, headers, oneClaim())).toMatchObject({ status: 201 });
    expect(await send("GET", leases, headers)).toMatchObject({ status: 200 });
    expect(await send("GET", admin, headers)).toMatchObject({ status: 403 });
    expect(await send("POST", "/v1/cells/2/leases", headers, oneClaim())).toMatchObject({ status: 403 });
  }
});

test("the document says which issuers have the header", async () => {
  const { text } = await send("GET", "/v1/admin/identities", bearer(operator));
  const read = JSON.parse(text) as { issuers: object[] };
  expect(read.issuers).toEqual([issuers.access, issuers.forge]);
});

test("[A4] with `Authorization`, the header means nothing", async () => {
  const headers = await added("operator.access");
  expect(await send("GET", admin, headers)).toMatchObject({ status: 200 });
  expect(await send("GET", admin, { ...headers, ...bearer(router) })).toMatchObject({ status: 403 });
  for (const authorization of ["", "Basic YTpi", "Bearer no", "Bearer a.b.c"])
    expect(await send("GET", admin, { ...headers, authorization })).toMatchObject({ status: 401 });
  // A page of another site may use a key that it has.
  const crossSite = { ...headers, ...bearer(operator), "sec-fetch-site": "cross-site" };
  expect(await send("GET", admin, crossSite)).toMatchObject({ status: 200 });
});

describe("[A4] refused is a token in the header", () => {
  const nowS = Math.floor(Date.now() / 1_000);
  test.each<[string, number, () => Promise<Headers>]>([
    ["of an issuer without it", 401, () => added("operator.access", { iss: FORGE })],
    ["of an unknown issuer", 401, () => added("operator.access", { iss: "https://evil.example" })],
    ["for another audience", 401, () => added("operator.access", { aud: ["other"] })],
    ["that has expired", 401, () => added("operator.access", { exp: nowS - 1 })],
    ["that no rule fits", 403, () => added("stranger.access")],
    [
      "with a wrong signature",
      401,
      async () => added("operator.access", {}, (await generateKeyPair("ES256")).privateKey),
    ],
    ["that is empty", 401, () => Promise.resolve({ [HEADER]: "" })],
    ["that is a key", 401, () => Promise.resolve({ [HEADER]: operator })],
    [
      "twice",
      401,
      async () => {
        const token = await sign("operator.access");
        return { [HEADER]: `${token}, ${token}` };
      },
    ],
  ])("%s", async (_, status, headersOf) => {
    expect(await send("GET", admin, await headersOf())).toMatchObject({ status });
  });

  test("in another header", async () => {
    const token = await sign("operator.access");
    for (const headers of [
      { cookie: `CF_Authorization=${token}` },
      { "x-cf-access-jwt-assertion": token },
      { "cf-authorization": token },
    ])
      expect(await send("GET", admin, headers)).toMatchObject({ status: 401 });
  });

  test("on the wire", async () => {
    const method = "/grpc/gitlab.cells.topology_service.claims.v1.ClaimService/ListLeases";
    const ask = async (headers: Headers) => send("POST", method, headers, { cellId: "1" });
    expect(await ask(await added("cell.access"))).toMatchObject({ status: 401 });
    expect(await ask(bearer(await sign("cell.access")))).toMatchObject({ status: 200 });
  });
});

describe("[A4] a browser's session", () => {
  const table: [string, Headers, boolean][] = [
    ["a program", {}, true],
    ["a page of this host", { "sec-fetch-site": "same-origin", origin: ORIGIN }, true],
    ["a page of this host behind TLS of a proxy", { origin: "http://leasehold.test" }, true],
    ["an address that was typed", { "sec-fetch-site": "none" }, true],
    ["another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }, false],
    ["another site without an origin", { "sec-fetch-site": "cross-site" }, false],
    ["another host of the site", { "sec-fetch-site": "same-site", origin: "https://x.test" }, false],
    ["an older browser on another site", { origin: "https://evil.example" }, false],
    ["another port", { origin: `${ORIGIN}:8443` }, false],
    ["a sandboxed page", { origin: "null" }, false],
    ["an origin that is none", { origin: "evil" }, false],
    ["a value that is not known", { "sec-fetch-site": "elsewhere" }, false],
    ["contradicting headers", { "sec-fetch-site": "same-origin", origin: "https://evil.example" }, false],
  ];
  test.each(table)("of %s", async (_, headers, isAllowed) => {
    const own = { ...(await added("operator.access")), ...headers };
    const body = { reason: "a test" };
    const frozen = await send("POST", "/v1/admin/cells/2/freeze", own, body);
    expect(frozen.status, frozen.text).toBe(isAllowed ? 200 : 403);
    expect(await send("GET", admin, own)).toMatchObject({ status: isAllowed ? 200 : 403 });
    if (!isAllowed) expect(frozen.text).toContain("page of another site");
  });

  test("is not offered to scripts of other sites", async () => {
    const wire = "/grpc/gitlab.cells.topology_service.claims.v1.ClaimService/ListLeases";
    for (const path of [leases, "/v1/classify", wire]) {
      const asking = { origin: "https://evil.example", "access-control-request-method": "POST" };
      const preflight = new Request(`${ORIGIN}${path}`, { method: "OPTIONS", headers: asking });
      const { status, headers } = await serveRequest(preflight, env, createExecutionContext());
      expect([path, status]).toEqual([path, 405]);
      expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
    }
  });

  test("changes nothing without the content type that no form can have", async () => {
    const begun = await send("POST", leases, await added("cell.access"), oneClaim());
    const { lease } = JSON.parse(begun.text) as { lease: { uuid: string } };
    const commit = async (headers: Headers) =>
      send("POST", `${leases}/${lease.uuid}/commit`, { ...(await added("cell.access")), ...headers });
    for (const headers of [
      {},
      { "content-type": "text/plain" },
      { "content-type": "application/x-www-form-urlencoded" },
      { "content-type": "multipart/form-data; boundary=x" },
    ] as Headers[])
      expect(await commit(headers)).toMatchObject({ status: 415 });
    expect(await commit({ "content-type": "application/json" })).toMatchObject({ status: 200 });
    // A bearer is never added by a browser.
    expect(await commit({ ...bearer(await sign("cell.access")) })).toMatchObject({ status: 200 });
  });
});

test("[A4] the header counts before a client certificate, if an issuer has it", async () => {
  const unreadable = { tlsClientAuth: { certPresented: "1", certVerified: "SUCCESS", certRFC9440: "no" } };
  const ask = async () => send("GET", admin, await added("operator.access"), undefined, unreadable);
  expect(await ask()).toMatchObject({ status: 200 });
  await declare(issuers.forge);
  const { status, text } = await ask();
  expect([status, text]).toEqual([401, expect.stringContaining("o client certificate that can be read")]);
});

test("[A4] without an issuer that has it, the header means nothing", async () => {
  const { token_header: _, ...withoutHeader } = issuers.access as Record<string, unknown>;
  await declare(withoutHeader);
  const { status, text } = await send("GET", admin, await added("operator.access"));
  expect([status, text]).toEqual([401, expect.stringContaining("he key is missing")]);
  expect(await send("GET", admin, bearer(await sign("operator.access")))).toMatchObject({ status: 200 });
});

test("[A1] a subject is revoked for the header, too", async () => {
  await declare(issuers.access);
  const question = { issuer: TEAM, subject: "operator.access" };
  const { text } = await send("POST", "/v1/admin/identities/explain", bearer(operator), question);
  const { id } = JSON.parse(text) as { id: string };
  expect(await send("GET", admin, await added("operator.access"))).toMatchObject({ status: 200 });
  await send("POST", `/v1/admin/keys/${id}/revoke`, bearer(operator), { reason: "a test" });
  expect(await send("GET", admin, await added("operator.access"))).toMatchObject({ status: 401 });
});
