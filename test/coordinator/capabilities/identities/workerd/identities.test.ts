/** Callers with a token or a client certificate instead of a key, and what each of them may call (A4). */
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { isAllowed, type Principal } from "../../../../../src/coordinator/auth/principal.ts";
import { deploy } from "../../../../../src/coordinator/isolate/deployment.ts";
import { serveRequest } from "../../../../../src/coordinator/api/web-request.ts";
import { routeIds, routes } from "../../../../../src/coordinator/api/contract.ts";
import type { Route } from "../../../../../src/coordinator/api/contract/route.ts";
import { defaultRuntime } from "../../../../../src/coordinator/runtime.ts";
import { createExecutionContext } from "cloudflare:test";
import { pathOf } from "../../../../suites/conformance/paths.ts";
import { freshName, claim } from "../../../../suites/conformance/leases.ts";
import { env, signedKey, startDeployment } from "../../../../support/workerd/api.ts";
import { counting } from "../../../../support/workerd/counting.ts";
// openssl made these. They are valid for some days from then on.
import made from "../../../auth/certificates/made.json" with { type: "json" };

const DAY_MS = 86_400_000;
const NOW_MS = made.madeMs + DAY_MS;
const NOW_S = Math.floor(NOW_MS / 1_000);
const ISS = "https://forge.example";
const AUDIENCE = "https://leasehold.example";

const roles = ["cell", "router", "operator", "viewer", "scraper"] as const;
type Role = (typeof roles)[number];

/** How a request proves who sends it. */
interface Proof {
  headers?: Record<string, string>;
  cf?: object;
}

let operator: string;
let sign: (role: string, more?: Record<string, unknown>) => Promise<string>;
let issuer: object;

/** An isolate whose clock shows a time at which the certificates are valid. */
function newIsolate(changes: object = {}) {
  const own = { ...env, ...changes };
  deploy(own, { ...defaultRuntime, clock: { ...defaultRuntime.clock, now: () => NOW_MS } });
  return async (method: string, path: string, { headers = {}, cf }: Proof, body?: unknown) => {
    const request = new Request(`https://leasehold.test${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(cf === undefined ? {} : { cf }),
    } as RequestInit);
    const answer = await serveRequest(request, own, createExecutionContext());
    const text = new TextDecoder().decode(await answer.arrayBuffer());
    return { status: answer.status, text };
  };
}

let send: ReturnType<typeof newIsolate>;

const bearer = (token: string): Proof => ({ headers: { authorization: `Bearer ${token}` } });
const keyOfRole = (role: string): Promise<string> =>
  signedKey({ role: role as Role, ...(role === "cell" ? { cell: "1" } : {}), iat: NOW_S, exp: NOW_S + 600 });
/** Each role has an authority and a certificate of its own. */
const clientOf = (role: Role): string => made.signed[roles.indexOf(role)]?.client ?? "";
const presented = (base64: string, more: object = {}): Proof => ({
  cf: {
    tlsClientAuth: {
      certPresented: "1",
      certVerified: "SUCCESS",
      certRevoked: "0",
      certRFC9440: `:${base64}:`,
      certRFC9440TooLarge: false,
      ...more,
    },
  },
});

async function declare(document: { issuers: object[]; authorities: object[] }): Promise<void> {
  const read = await send("GET", "/v1/admin/identities", bearer(operator));
  const { version } = JSON.parse(read.text) as { version: number };
  const put = await send("PUT", "/v1/admin/identities", bearer(operator), { version, ...document });
  expect(put).toMatchObject({ status: 200 });
}

const granted = (role: Role): object => ({ role, ...(role === "cell" ? { cell_id: "1" } : {}) });
const authorities = (): object[] =>
  roles.map((role, index) => ({
    name: role,
    certificate: made.signed[index]?.authority,
    rules: [{ dns: "cell-1.test", ...granted(role) }],
  }));

beforeAll(async () => {
  await startDeployment("1", "2");
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const { kty, crv, x, y } = await exportJWK(publicKey);
  sign = (role, more = {}) =>
    new SignJWT({ role, iat: NOW_S, exp: NOW_S + 600, iss: ISS, aud: AUDIENCE, sub: `${role}-job`, ...more })
      .setProtectedHeader({ alg: "ES256", kid: "1" })
      .sign(privateKey);
  issuer = {
    name: "forge",
    issuer: ISS,
    audience: AUDIENCE,
    algorithms: ["ES256"],
    keys: [{ kty, crv, x, y, kid: "1" }],
    rules: roles.map((role) => ({ claims: { role }, ...granted(role) })),
  };
  operator = await keyOfRole("operator");
  send = newIsolate();
  await declare({ issuers: [issuer], authorities: authorities() });
});

describe("[A4] every route with every identity and role", () => {
  const proofs: [string, Role | "bridge", () => Promise<Proof>][] = [
    ...roles.flatMap((role): [string, Role, () => Promise<Proof>][] => [
      ["a key", role, async () => bearer(await keyOfRole(role))],
      ["a token", role, async () => bearer(await sign(role))],
      ["a certificate", role, async () => presented(clientOf(role))],
    ]),
    ["a key", "bridge", async () => bearer(await keyOfRole("bridge"))],
  ];
  test.each(proofs)("%s of the role %s", async (_, role, prove) => {
    const proof = await prove();
    const principal: Principal = {
      role,
      keyId: "",
      expiresAtMs: 0,
      cell: role === "cell" ? "1" : null,
      credential: null,
    };
    for (const id of routeIds) {
      const route: Route = routes[id];
      for (const cell of route.path.includes("{cell}") ? ["1", "2"] : [undefined]) {
        // The form of the query is checked after the role, and before anything happens.
        const path = pathOf(route, { params: cell === undefined ? {} : { cell }, query: "unknown=1" });
        const { status, text } = await send(route.method, path, proof);
        const expected = isAllowed(principal, route.roles, cell) ? 400 : 403;
        expect([id, cell, status], text).toEqual([id, cell, expected]);
      }
    }
  });

  test("nobody", async () => {
    for (const id of routeIds) {
      const route: Route = routes[id];
      const { status } = await send(route.method, pathOf(route, { query: "unknown=1" }), {});
      expect([id, status]).toEqual([id, route.roles === "anyone" ? 400 : 401]);
    }
  });
});

const leases = "/v1/cells/1/leases";
const oneClaim = () => ({ creates: [claim(freshName())] });

test("[A4] a cell begins with its certificate or token, in HTTP and over the wire", async () => {
  for (const proof of [presented(clientOf("cell")), bearer(await sign("cell"))]) {
    expect(await send("POST", leases, proof, oneClaim())).toMatchObject({ status: 201 });
    const method = "/grpc/gitlab.cells.topology_service.claims.v1.ClaimService/ListLeases";
    expect(await send("POST", method, proof, { cellId: "1" })).toMatchObject({ status: 200 });
    expect(await send("POST", method, proof, { cellId: "2" })).toMatchObject({ status: 403 });
    expect(await send("POST", "/v1/cells/2/leases", proof, oneClaim())).toMatchObject({ status: 403 });
  }
});

test("certificates and subjects are in the list of uses, also after calls over the wire", async () => {
  const hourMs = NOW_MS - (NOW_MS % 3_600_000);
  const used = {
    first_used_at: new Date(hourMs).toISOString(),
    last_used_at: new Date(hourMs).toISOString(),
  };
  await env.DB.prepare("DELETE FROM credential_uses").run();
  send = newIsolate();
  await send("GET", "/v1/limits", presented(clientOf("router")));
  const method = "/grpc/gitlab.cells.topology_service.claims.v1.ClaimService/ListLeases";
  expect(await send("POST", method, bearer(await sign("cell")), { cellId: "1" })).toMatchObject({
    status: 200,
  });
  const listed = async (kind: string): Promise<unknown> => {
    const { text } = await send("GET", `/v1/admin/credential-uses?kind=${kind}`, bearer(operator));
    return (JSON.parse(text) as { uses: unknown }).uses;
  };
  await vi.waitFor(async () => {
    expect(await listed("certificate")).toMatchObject([
      { role: "router", cell_id: null, issued_by: "router", name: "cell-1.test", ...used },
    ]);
    expect(await listed("token")).toMatchObject([
      { role: "cell", cell_id: "1", issued_by: "forge", name: "cell-job", expires_at: null, ...used },
    ]);
  });
  const stored = await env.DB.prepare(
    "SELECT issued_at_ms, expires_at_ms FROM credential_uses WHERE kind = 'certificate'",
  ).first<{ issued_at_ms: number; expires_at_ms: number }>();
  expect(stored?.issued_at_ms).toBeLessThanOrEqual(NOW_MS);
  expect(stored?.expires_at_ms).toBeGreaterThan(NOW_MS);
});

test("[A4] [A1] a certificate or a subject is revoked like a key, for a cell at once", async () => {
  const audit = async (proof: Proof) => {
    const { text } = await send("GET", "/v1/cells/1/records?source_type=NONE", proof);
    return text;
  };
  for (const proof of [presented(clientOf("cell")), bearer(await sign("cell"))]) {
    expect(await audit(proof)).not.toContain("UNAUTHENTICATED");
    const id = await idOf(proof);
    const body = { cell_id: "1", reason: "a test" };
    expect(await send("POST", `/v1/admin/keys/${id}/revoke`, bearer(operator), body)).toMatchObject({
      status: 200,
    });
    // Another isolate has not heard of it, but the ledger has.
    const begun = await newIsolate()("POST", leases, proof, oneClaim());
    expect(begun).toMatchObject({ status: 401, text: expect.stringContaining("KEY_REVOKED") as unknown });
  }
});

test("[A4] [A1] a subject revoked without its cell is refused for the cell, too, and for good", async () => {
  for (const [subject, cell] of [
    ["revoked without a cell", undefined],
    ["revoked for another cell", "2"],
  ]) {
    const proof = bearer(await sign("cell", { sub: subject }));
    expect(await send("POST", leases, proof, oneClaim())).toMatchObject({ status: 201 });
    const body = { reason: "a test", ...(cell === undefined ? {} : { cell_id: cell }) };
    const revoke = `/v1/admin/keys/${await idOf(proof)}/revoke`;
    // A revocation is forgotten only after it has expired, and the subject can get new tokens at any time.
    expect(await send("POST", revoke, bearer(operator), body)).toMatchObject({
      status: 200,
      text: expect.stringContaining('"expires_at":"9999-12-31T23:59:59.999Z"') as unknown,
    });
    const begun = await send("POST", leases, proof, oneClaim());
    expect(begun).toMatchObject({ status: 401, text: expect.stringContaining("KEY_REVOKED") as unknown });
  }
});

/** The id of a caller's key or identity, as the log has it. */
async function idOf(proof: Proof): Promise<string> {
  const lines: string[] = [];
  const own = { ...env, LEASEHOLD_REQUEST_LOG: "all" };
  const clock = { ...defaultRuntime.clock, now: () => NOW_MS };
  deploy(own, { clock, log: (_, fields) => void lines.push(String(fields["key_id"])) });
  const request = new Request("https://leasehold.test/v1/limits", { ...proof } as RequestInit);
  await serveRequest(request, own, createExecutionContext());
  return lines.at(-1) ?? "";
}

describe("[A4] nothing is called for a caller who", () => {
  const cases: [string, () => Proof | Promise<Proof>][] = [
    [
      "has a token of no issuer",
      async () => bearer(await sign("operator", { iss: "https://other.example" })),
    ],
    ["has a token for another audience", async () => bearer(await sign("operator", { aud: "other" }))],
    ["has an expired token", async () => bearer(await sign("operator", { exp: NOW_S - 1 }))],
    ["has a token that is not valid yet", async () => bearer(await sign("operator", { nbf: NOW_S + 600 }))],
    [
      "has a token that is valid for too long",
      async () => bearer(await sign("operator", { exp: NOW_S * 2 })),
    ],
    [
      "has a token with another key's signature",
      async () =>
        bearer(
          await new SignJWT({ role: "operator", iss: ISS, aud: AUDIENCE, sub: "x", exp: NOW_S + 60 })
            .setProtectedHeader({ alg: "ES256", kid: "1" })
            .sign((await generateKeyPair("ES256")).privateKey),
        ),
    ],
    [
      "has a token without a signature",
      () => {
        const part = (value: object): string => btoa(JSON.stringify(value)).replaceAll("=", "");
        const payload = { role: "operator", iss: ISS, aud: AUDIENCE, sub: "x", exp: NOW_S + 60 };
        return bearer(`${part({ alg: "none", kid: "1" })}.${part(payload)}.`);
      },
    ],
    [
      "has a certificate that Cloudflare did not verify",
      () => presented(clientOf("operator"), { certVerified: "FAILED" }),
    ],
    [
      "has a certificate that Cloudflare has as revoked",
      () => presented(clientOf("operator"), { certRevoked: "1" }),
    ],
    ["has a certificate that is too large", () => presented("", { certRFC9440TooLarge: true })],
    ["has a certificate that cannot be read", () => presented("AAAA")],
    ["sends a certificate in a header", () => ({ headers: { "client-cert": `:${clientOf("operator")}:` } })],
    [
      "sends a certificate in a header beside a key of a router",
      async () => ({
        headers: {
          "client-cert": `:${clientOf("operator")}:`,
          authorization: `Bearer ${await keyOfRole("router")}`,
        },
      }),
    ],
  ];
  test.each(cases)("%s", async (what, prove) => {
    const counted = counting(env);
    const ask = newIsolate(counted.env);
    const { status, text } = await ask("GET", "/v1/admin/keys", await prove());
    expect([status, text]).toEqual([what.includes("router") ? 403 : 401, expect.any(String)]);
    expect(text).not.toMatch(/forge|operator-job|fleet/);
    expect(counted.calls.filter((call) => call !== "DIRECTORY.snapshot")).toEqual([]);
  });
});

test("[A4] a caller whom no rule fits is refused as one without permission", async () =>
  expect(await send("GET", "/v1/limits", bearer(await sign("stranger")))).toMatchObject({ status: 403 }));

test("[A4] a bridge passes on a certificate, and is refused without one or once it is revoked", async () => {
  const id = "a-bridge";
  const key = await signedKey({ id, role: "bridge", iat: NOW_S, exp: NOW_S + 600 });
  const withCertificate = (role: Role): Proof => ({
    headers: { authorization: `Bearer ${key}`, "client-cert": `:${clientOf(role)}:` },
  });
  expect(await send("GET", "/v1/admin/keys", withCertificate("viewer"))).toMatchObject({ status: 200 });
  expect(await send("GET", "/v1/admin/keys", withCertificate("router"))).toMatchObject({ status: 403 });
  expect(await send("GET", "/v1/admin/keys", bearer(key))).toMatchObject({ status: 403 });
  const broken = { headers: { authorization: `Bearer ${key}`, "client-cert": "no" } };
  expect(await send("GET", "/v1/admin/keys", broken)).toMatchObject({ status: 401 });
  await send("POST", `/v1/admin/keys/${id}/revoke`, bearer(operator), { reason: "a test" });
  const refused = { status: 401, text: expect.stringContaining("KEY_REVOKED") as unknown };
  expect(await send("GET", "/v1/admin/keys", withCertificate("viewer"))).toMatchObject(refused);
});

test("[A4] a key counts before a certificate", async () => {
  const both = { ...presented(clientOf("operator")), ...bearer(await keyOfRole("router")) };
  expect(await send("GET", "/v1/admin/keys", both)).toMatchObject({ status: 403 });
});

test("[A4] a page of another site can't use the certificate of its browser", async () => {
  const certificate = presented(clientOf("operator"));
  const freeze = async (proof: Proof, headers: Record<string, string>) =>
    send("POST", "/v1/admin/cells/2/freeze", { ...proof, headers: { ...proof.headers, ...headers } }, {});
  const elsewhere = { "sec-fetch-site": "cross-site", origin: "https://evil.example" };
  expect(await freeze(certificate, elsewhere)).toMatchObject({
    status: 403,
    text: expect.stringContaining("page of another site") as unknown,
  });
  expect(await freeze(certificate, { origin: "https://evil.example" })).toMatchObject({ status: 403 });
  const own = { "sec-fetch-site": "same-origin", origin: "https://leasehold.test" };
  for (const [proof, headers] of [
    [certificate, {}],
    [certificate, own],
    [{ ...certificate, ...bearer(operator) }, elsewhere],
  ] as const)
    expect(await freeze(proof, headers)).toMatchObject({ status: 200 });
});

test("[A4] the id that revokes a certificate or a subject is that of their requests", async () => {
  const explain = async (question: object): Promise<unknown> => {
    const { status, text } = await send("POST", "/v1/admin/identities/explain", bearer(operator), question);
    expect(status).toBe(200);
    return JSON.parse(text);
  };
  const pem = (base64: string): string =>
    `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`;
  const proof = presented(clientOf("viewer"));
  expect(await explain({ certificate: pem(clientOf("viewer")) })).toEqual({
    id: await idOf(proof),
    role: "viewer",
    cell_id: null,
    expires_at: expect.stringMatching(/^20/),
    refusal: null,
  });
  expect(await explain({ certificate: pem(clientOf("cell")) })).toMatchObject({ refusal: "It is revoked." });
  expect(await explain({ certificate: made.signed[0]?.authority })).toMatchObject({
    id: expect.stringMatching(/^[\da-f-]{36}$/),
    role: null,
    refusal: expect.stringContaining("authority") as unknown,
  });
  const token = bearer(await sign("viewer"));
  const nobody = { role: null, cell_id: null, expires_at: null };
  expect(await explain({ issuer: ISS, subject: "viewer-job" })).toEqual({
    id: await idOf(token),
    ...nobody,
    refusal: null,
  });
  expect(await explain({ issuer: "https://other.example", subject: "viewer-job" })).toMatchObject({
    refusal: "The issuer is not accepted.",
  });
});

test("[A4] a change of the identities counts at once in the isolate that made it", async () => {
  const proof = bearer(await sign("viewer"));
  expect(await send("GET", "/v1/admin/keys", proof)).toMatchObject({ status: 200 });
  await declare({ issuers: [], authorities: authorities() });
  expect(await send("GET", "/v1/admin/keys", proof)).toMatchObject({ status: 401 });
  expect(await send("GET", "/v1/admin/keys", presented(clientOf("viewer")))).toMatchObject({ status: 200 });
  await declare({ issuers: [issuer], authorities: [] });
  expect(await send("GET", "/v1/admin/keys", presented(clientOf("viewer")))).toMatchObject({ status: 401 });
  expect(await send("GET", "/v1/admin/keys", proof)).toMatchObject({ status: 200 });
});

test("[A4] a key that could verify nothing is refused when it is declared", async () => {
  const { kty, crv, x, y } = await exportJWK((await generateKeyPair("ES256")).publicKey);
  const keys: Record<string, unknown>[] = [
    { kty: "RSA", kid: "1", n: "AQAB" },
    { kty, crv, x, kid: "1" },
    { kty, crv: "secp256k1", x, y, kid: "1" },
    { kty, crv, x, y, kid: "1", use: "enc" },
  ];
  for (const key of keys) {
    const given = { ...issuer, keys: [{ kty, crv, x, y, kid: "2" }, key] };
    const document = { version: 0, issuers: [given], authorities: [], dry_run: true };
    expect(await send("PUT", "/v1/admin/identities", bearer(operator), document)).toMatchObject({
      status: 400,
      text: expect.stringContaining("`issuers[0].keys[1]` must be a public key for signatures") as unknown,
    });
  }
});

test("[A4] a dry run refuses a cell that is not registered, as the change does", async () => {
  const read = await send("GET", "/v1/admin/identities", bearer(operator));
  const { version } = JSON.parse(read.text) as { version: number };
  const rules = [{ claims: { sub: "x" }, role: "cell", cell_id: "987" }];
  const document = { version, issuers: [{ ...issuer, rules }], authorities: [] };
  const refusal = { status: 404, text: expect.stringContaining("Cell 987 is not registered") as unknown };
  for (const isDry of [true, false]) {
    const body = { ...document, dry_run: isDry };
    expect(await send("PUT", "/v1/admin/identities", bearer(operator), body)).toMatchObject(refusal);
  }
});

test("the refusal of an authority's certificate is a sentence about the field", async () => {
  const document = {
    version: 0,
    issuers: [],
    authorities: [{ name: "a", certificate: "no PEM", rules: [] }],
  };
  expect(await send("PUT", "/v1/admin/identities", bearer(operator), document)).toMatchObject({
    status: 400,
    text: expect.stringContaining("`authorities[0].certificate` is not valid: the PEM must have") as unknown,
  });
});

test("the identities have a limit in bytes", async () => {
  const read = await send("GET", "/v1/admin/identities", bearer(operator));
  const { version } = JSON.parse(read.text) as { version: number };
  const rules = Array.from({ length: 400 }, () => ({ claims: { sub: "x".repeat(1_000) }, role: "viewer" }));
  const document = { version, issuers: [{ ...issuer, rules }], authorities: [] };
  expect(await send("PUT", "/v1/admin/identities", bearer(operator), document)).toMatchObject({
    status: 400,
    text: expect.stringContaining("bytes of identities; at most 262144 are kept") as unknown,
  });
});
