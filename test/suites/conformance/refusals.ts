/** Everything that a route refuses, for every route. It is the same code on every host, so it runs once. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import { Hmac } from "../../../src/coordinator/auth/secrets.ts";
import { makeKey } from "../../../src/coordinator/auth/key.ts";
import { routeIds, routes, type RouteId } from "../../../src/coordinator/api/contract.ts";
import { parameterNames, type Route } from "../../../src/coordinator/api/contract/route.ts";
import { cases, mintKeyOf, type Bad, type Request } from "./cases.ts";
import { claim, freshName } from "./leases.ts";
import type { MintedKey, Payload, Problem, Sent } from "./client.ts";
import { callOf, checkEach, keyOf, rolesOf } from "./route-calls.ts";
import { pathOf } from "./paths.ts";
import type { Coordinator, Open } from "./coordinator.ts";

const fieldsOf = (json: unknown): string[] => Object.keys(json ?? {}).toSorted();

/** Returns an operator's key with a wrong secret. */
async function forgedKey(): Promise<`lhk_${string}`> {
  const iat = Math.floor(Date.now() / 1_000) - 10;
  const payload = { v: 1, id: newUuid(), role: "operator", iat, exp: iat + 3_600 } as const;
  return (await makeKey(payload, new Hmac("some other secret that is long enough"))) as `lhk_${string}`;
}

const json = { "content-type": "application/json" };
const deep = `{"a":${"[".repeat(8)}${"]".repeat(8)}}`;

interface WrongBody {
  status: number;
  field?: string;
  raw: Payload;
  headers?: Record<string, string>;
}

const wrongBodies = (route: Route): Record<string, WrongBody> => ({
  "of another type": { status: 415, raw: "{}", headers: { "content-type": "text/plain" } },
  "of another character set": {
    status: 415,
    raw: "{}",
    headers: { "content-type": "application/json; charset=latin1" },
  },
  compressed: { status: 415, raw: "{}", headers: { ...json, "content-encoding": "gzip" } },
  "that is not JSON": { status: 400, field: "body", raw: "{" },
  "that is not UTF-8": { status: 400, field: "body", raw: new Uint8Array([0x22, 0xff, 0x22]) },
  "that is a list": { status: 400, field: "body", raw: "[]" },
  "that is null": { status: 400, field: "body", raw: "null" },
  ...(route === routes.classify
    ? {}
    : { "with an unknown field": { status: 400, field: "surprise", raw: '{"surprise":1}' } }),
  "with a key twice": { status: 400, field: "a", raw: '{"a":1,"a":2}' },
  "with a key twice, written differently": { status: 400, field: "a", raw: '{"a":1,"\\u0061":2}' },
  "with a key twice, deep inside": { status: 400, field: "a[1].b", raw: '{"a":[0,{"b":1,"b":1}]}' },
  "with __proto__": { status: 400, field: "__proto__", raw: '{"__proto__":{"reason":"x"}}' },
  "nested too deep": { status: 400, field: "body", raw: deep },
});

export function refusalSuite(open: Open): void {
  let api: Coordinator;
  let minted: Record<"viewer" | "scraper" | "bridge", MintedKey>;
  let forged: MintedKey;

  beforeAll(async () => {
    api = await open();
    forged = await forgedKey();
    minted = {
      viewer: await mintKeyOf("viewer", api),
      scraper: await mintKeyOf("scraper", api),
      bridge: await mintKeyOf("bridge", api),
    };
    // Types that are in use need no further message (T4), and neither does a copy of the directory.
    const body = { creates: [claim(freshName()), claim(`${freshName()}@example.com`, "1", "EMAILS")] };
    await api.json(201, "POST", "/v1/cells/1/leases", { key: "cell 1", body });
    await api.problem(404, "GET", `/v1/records/ROUTES/${freshName()}`, { key: "router" });
  });

  /** Sends a request. Expects the problem, and no call of an object or database but these. */
  async function refusedAfter(
    allowed: readonly string[],
    status: number,
    route: Route,
    path: string,
    sent: Sent,
  ): Promise<Problem> {
    const before = api.asked()?.length;
    const refused = await api.problem(status, route.method, path, sent);
    // Before the handler, the check for revocation may refresh the copy of the directory.
    const isOther = (call: string): boolean => allowed.length === 0 || call !== "DIRECTORY.snapshot";
    const asked = api.asked()?.slice(before).filter(isOther);
    if (asked !== undefined) expect(asked).toEqual(allowed.filter(isOther));
    return refused;
  }

  /** Sends a request. Expects the problem, and that no object and no database was called. */
  const refusedUnasked = (status: number, route: Route, path: string, sent: Sent): Promise<Problem> =>
    refusedAfter([], status, route, path, sent);

  describe.each(routeIds)("%s", (id: RouteId) => {
    const route: Route = routes[id];
    const { success, bad, elsewhere } = cases[id];
    const [first] = success;
    const names = parameterNames(route);
    const fine = (changes: Request = {}) => callOf(id, changes);

    if (route.roles !== "anyone")
      test("keys: none, a forged one: 401; of other roles: 403", async () => {
        const [path, sent] = fine();
        const refused = await refusedUnasked(401, route, path, { ...sent, key: null });
        expect(refused).toMatchObject({ code: "UNAUTHENTICATED", retryable: false });
        await refusedUnasked(401, route, path, { ...sent, key: forged });
        const others = ["cell", "router", "operator", "viewer", "scraper", "bridge"].filter(
          (role) => !rolesOf(route).includes(role),
        );
        await checkEach(
          others.map((role) => [role, role]),
          async (role) => {
            const key =
              role === "viewer" || role === "scraper" || role === "bridge" ? minted[role] : keyOf(role);
            expect(await refusedUnasked(403, route, path, { ...sent, key })).toMatchObject({
              code: "PERMISSION_DENIED",
              retryable: false,
            });
          },
        );
      });

    if (rolesOf(route).includes("cell") && names.includes("cell"))
      test("a key of cell 1 for other cells, registered or not: 403 with the same problem", () =>
        checkEach(
          ["2", "77", "nonsense", "01", "1%20", "%31"].map((cell) => [cell, cell]),
          async (cell) =>
            expect(
              await refusedUnasked(403, route, ...fine({ key: "cell 1", params: { cell } })),
            ).toMatchObject({
              code: "PERMISSION_DENIED",
              detail: "A key of cell 1 may not call this route.",
            }),
        ));

    const invalid = Object.entries(bad);
    const expectRefused = async ({ field, isUndeclared = false, ...request }: Bad): Promise<void> => {
      const allowed = ["DIRECTORY.snapshot", ...(isUndeclared ? ["DIRECTORY.types"] : [])];
      const refused = await refusedAfter(allowed, 400, route, ...fine(request));
      expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", field, retryable: false });
      expect(refused.detail).toContain(`\`${field}\``);
    };

    const undeclared = invalid.filter(([, { isUndeclared }]) => isUndeclared === true);
    const malformed = invalid.filter(([, { isUndeclared }]) => isUndeclared !== true);
    if (undeclared.length > 0)
      test("[T4] a type that is not declared is refused after the directory was read", () =>
        checkEach(undeclared, expectRefused));

    if (malformed.length > 0)
      test("[B1] an invalid request is refused before any object is called", () =>
        checkEach(malformed, expectRefused));

    test("[B1] a query or path that can't be read is refused before any object is called", async () => {
      const query = (first.query ?? "").split("&")[0] ?? "";
      const wrong: [name: string, changes: Request, field: string | undefined][] = [
        ...["surprise", "__proto__", "constructor", "%C3%A9"].map((name): [string, Request, string] => [
          `an unknown query parameter ${name}`,
          { query: `${first.query === undefined ? "" : `${first.query}&`}${name}=1` },
          decodeURIComponent(name),
        ]),
        ["bad percent-encoding of a query parameter's name", { query: "%zz=1" }, "query"],
      ];
      if (query !== "")
        wrong.push(["a query parameter twice", { query: `${query}&${query}` }, query.split("=")[0]]);
      // The path of a cell's key is compared as it is written, so only an operator's request gets to the
      // decoding.
      if (route.roles === "anyone" || route.roles.includes("operator"))
        for (const name of names) {
          const key = route.roles === "anyone" ? null : ("operator" as const);
          wrong.push([`bad percent-encoding of ${name}`, { key, params: { [name]: "%e2%28" } }, name]);
        }
      await checkEach(
        wrong.map(([name, changes, field]) => [name, { changes, field }]),
        async ({ changes, field }) =>
          expect(await refusedUnasked(400, route, ...fine(changes))).toMatchObject({ field }),
      );
    });

    const { body } = route;
    if (body !== undefined)
      test("a wrong body is refused before any object is called", async () => {
        await checkEach(
          Object.entries(wrongBodies(route)),
          async ({ status, field, raw, headers = json }) => {
            const refused = await refusedUnasked(status, route, ...fine({ raw, headers }));
            expect(refused.code).toBe("INVALID_ARGUMENT");
            expect(refused.field).toBe(field);
          },
        );
        if (!body.required) return;
        await refusedUnasked(415, route, ...fine({ body: undefined }));
        const refused = await refusedUnasked(400, route, ...fine({ body: undefined, headers: json }));
        expect(refused.field).toBe("body");
      });
    else if (route.method !== "GET")
      test("a body on a route without one", async () => {
        expect(await refusedUnasked(400, route, ...fine({ body: { surprise: 1 } }))).toMatchObject({
          field: "surprise",
        });
      });

    if (rolesOf(route).includes("viewer"))
      test("a viewer gets the operator's answer", async () => {
        const { before, status, ...request } = first;
        const { params, query, ...sent } = { ...request, ...(await before?.(api)) };
        const path = pathOf(route, { params: params ?? {}, ...(query === undefined ? {} : { query }) });
        const [byViewer, byOperator] = [
          await api.send(route.method, path, { ...sent, key: minted.viewer }),
          await api.send(route.method, path, { ...sent, key: "operator" }),
        ];
        expect(`${byViewer.status} ${byViewer.text}`).toMatch(new RegExp(`^${status} `));
        expect(fieldsOf(byViewer.json)).toEqual(fieldsOf(byOperator.json));
      });

    test("every success status is tested", () => {
      expect(new Set([...success.map(({ status }) => status), ...(elsewhere?.statuses ?? [])])).toEqual(
        new Set(Object.keys(route.responses).map(Number)),
      );
      const hasInput = names.length > 0 || body !== undefined || route.example.query !== undefined;
      if (hasInput) expect(invalid).not.toEqual([]);
    });

    test("other methods: 405, with the allowed methods", async () => {
      const known = routeIds
        .filter((other) => routes[other].path === route.path)
        .map((other) => routes[other].method as string);
      const allowed = known.includes("GET") ? [...known, "HEAD"] : known;
      for (const method of ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]) {
        if (allowed.includes(method)) continue;
        const [path] = fine();
        const received = await api.send(method, path, { key: null });
        expect([method, received.status]).toEqual([method, 405]);
        expect(new Set(received.headers.get("allow")?.split(", "))).toEqual(new Set(allowed));
      }
    });
  });
}
