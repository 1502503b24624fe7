/** Tests everything that the contract promises, for every route. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import { Hmac } from "../../../src/auth/hmac.ts";
import { makeKey } from "../../../src/auth/key.ts";
import { routeIds, routes, type RouteId } from "../../../src/http/contract.ts";
import { parameterNames, type Route } from "../../../src/http/contract/route.ts";
import { cases, mintKeyOf, type Bad, type Request } from "./cases.ts";
import { claim, freshName } from "./leases.ts";
import { linesIn } from "./lines.ts";
import type { MintedKey, Payload, Problem, Sent } from "./client.ts";
import { pathOf } from "./paths.ts";
import type { Coordinator, Open } from "./coordinator.ts";

const rolesOf = ({ roles }: Route): readonly string[] => (roles === "anyone" ? [] : roles);

const keyOf = (role: string): NonNullable<Sent["key"]> =>
  role === "cell" ? "cell 1" : (role as "operator" | "router");

/**
 * Returns a key that may use the route, not an operator's if possible. Operators may use every route, so
 * other keys show more.
 */
const someoneAllowed = (route: Route): Sent["key"] =>
  route.roles === "anyone" ? null : keyOf(rolesOf(route)[0] ?? "operator");

const fieldsOf = (json: unknown): string[] => Object.keys(json ?? {}).toSorted();

/** Returns an operator's key with a wrong secret. */
async function forgedKey(): Promise<`lhk_${string}`> {
  const iat = Math.floor(Date.now() / 1_000) - 10;
  const payload = { v: 1, id: newUuid(), role: "operator", iat, exp: iat + 3_600 } as const;
  return (await makeKey(payload, new Hmac("some other secret that is long enough"))) as `lhk_${string}`;
}

export function routeSuite(open: Open): void {
  let api: Coordinator;
  let minted: Record<"viewer" | "scraper" | "bridge", MintedKey>;

  beforeAll(async () => {
    api = await open();
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
    const good: Request = {
      ...first,
      ...(first.body === undefined && route.body?.required ? { body: route.example.body } : {}),
    };
    const fine = (changes: Request = {}): [path: string, sent: Sent] => {
      const { params, query, raw, ...sent } = { ...good, key: someoneAllowed(route), ...changes };
      return [
        pathOf(route, { params: { ...good.params, ...params }, ...(query === undefined ? {} : { query }) }),
        raw === undefined ? sent : { ...sent, raw, body: undefined },
      ];
    };

    if (route.roles !== "anyone")
      describe("keys", () => {
        const [path, sent] = fine();

        test("none: 401", async () => {
          const refused = await refusedUnasked(401, route, path, { ...sent, key: null });
          expect(refused).toMatchObject({ code: "UNAUTHENTICATED", retryable: false });
        });

        test("a forged one: 401", () =>
          forgedKey().then((key) => refusedUnasked(401, route, path, { ...sent, key })));

        const others = ["cell", "router", "operator", "viewer", "scraper", "bridge"].filter(
          (role) => !rolesOf(route).includes(role),
        );
        test.each(others)("of the role %s: 403", async (role) => {
          const refused = await refusedUnasked(403, route, path, {
            ...sent,
            key: role === "viewer" || role === "scraper" || role === "bridge" ? minted[role] : keyOf(role),
          });
          expect(refused).toMatchObject({ code: "PERMISSION_DENIED", retryable: false });
        });

        if (rolesOf(route).includes("cell") && parameterNames(route).includes("cell"))
          test.each(["2", "77", "nonsense", "01", "1%20", "%31"])(
            "of cell 1 for cell %s, registered or not: 403 with the same problem",
            async (cell) => {
              const { request_id: _, ...foreign } = await refusedUnasked(
                403,
                route,
                ...fine({ key: "cell 1", params: { cell } }),
              );
              expect(foreign).toMatchObject({
                code: "PERMISSION_DENIED",
                detail: "A key of cell 1 may not call this route.",
              });
            },
          );
      });

    const invalid = Object.entries(bad);
    const expectRefused = async ({ field, isUndeclared = false, ...request }: Bad): Promise<void> => {
      const allowed = ["DIRECTORY.snapshot", ...(isUndeclared ? ["DIRECTORY.types"] : [])];
      const refused = await refusedAfter(allowed, 400, route, ...fine(request));
      expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", field, retryable: false });
      expect(refused.detail).toContain(`\`${field}\``);
    };

    const undeclared = invalid.filter(([, { isUndeclared }]) => isUndeclared === true);
    if (undeclared.length > 0)
      describe("a type that is not declared is refused after the directory was read", () => {
        test.each(undeclared)("[T4] %s", (_, request) => expectRefused(request));
      });

    describe("an invalid request is refused before any object is called", () => {
      test.each(invalid.filter(([, { isUndeclared }]) => isUndeclared !== true))("[B1] %s", (_, request) =>
        expectRefused(request),
      );

      test.each(["surprise", "__proto__", "constructor", "%C3%A9"])(
        "an unknown query parameter %s",
        async (name) => {
          const query = `${good.query === undefined ? "" : `${good.query}&`}${name}=1`;
          expect(await refusedUnasked(400, route, ...fine({ query }))).toMatchObject({
            field: decodeURIComponent(name),
          });
        },
      );

      test("bad percent-encoding of a query parameter's name", async () => {
        expect(await refusedUnasked(400, route, ...fine({ query: "%zz=1" }))).toMatchObject({
          field: "query",
        });
      });

      const query = (first.query ?? "").split("&")[0] ?? "";
      if (query !== "")
        test("a query parameter twice", async () => {
          expect(await refusedUnasked(400, route, ...fine({ query: `${query}&${query}` }))).toMatchObject({
            field: query.split("=")[0],
          });
        });

      // The path of a cell's key is compared as it is written, so only an operator's request gets to the
      // decoding.
      const decoded = route.roles === "anyone" || route.roles.includes("operator");
      test.each(decoded ? parameterNames(route) : [])(
        "bad percent-encoding of the path's %s",
        async (name) => {
          const key = route.roles === "anyone" ? null : ("operator" as const);
          expect(
            await refusedUnasked(400, route, ...fine({ key, params: { [name]: "%e2%28" } })),
          ).toMatchObject({ field: name });
        },
      );
    });

    const { body } = route;
    if (body !== undefined)
      describe("the body", () => {
        const json = { "content-type": "application/json" };
        const deep = `{"a":${"[".repeat(8)}${"]".repeat(8)}}`;
        const wrong: Record<
          string,
          [status: number, field: string | undefined, raw: Payload, headers?: Record<string, string>]
        > = {
          "of another type": [415, undefined, "{}", { "content-type": "text/plain" }],
          "of another character set": [
            415,
            undefined,
            "{}",
            { "content-type": "application/json; charset=latin1" },
          ],
          compressed: [415, undefined, "{}", { ...json, "content-encoding": "gzip" }],
          "that is not JSON": [400, "body", "{"],
          "that is not UTF-8": [400, "body", new Uint8Array([0x22, 0xff, 0x22])],
          "that is a list": [400, "body", "[]"],
          "that is null": [400, "body", "null"],
          ...(route === routes.classify
            ? {}
            : { "with an unknown field": [400, "surprise", '{"surprise":1}'] }),
          "with a key twice": [400, "a", '{"a":1,"a":2}'],
          "with a key twice, written differently": [400, "a", '{"a":1,"\\u0061":2}'],
          "with a key twice, deep inside": [400, "a[1].b", '{"a":[0,{"b":1,"b":1}]}'],
          "with __proto__": [400, "__proto__", '{"__proto__":{"reason":"x"}}'],
          "nested too deep": [400, "body", deep],
        };

        test.each(Object.entries(wrong))("%s", async (_, [status, field, raw, headers = json]) => {
          const refused = await refusedUnasked(status, route, ...fine({ raw, headers }));
          expect(refused.code).toBe("INVALID_ARGUMENT");
          expect(refused.field).toBe(field);
        });

        if (body.required)
          test("left out", async () => {
            await refusedUnasked(415, route, ...fine({ body: undefined }));
            const refused = await refusedUnasked(400, route, ...fine({ body: undefined, headers: json }));
            expect(refused.field).toBe("body");
          });
      });

    test.each(success.map((each, index) => [`${each.status} (${index + 1})`, each] as const))(
      "succeeds: %s",
      async (_, { status, before, ...request }) => {
        const { params, query, ...sent } = { ...request, ...(await before?.(api)) };
        const address: Request = {
          ...(params === undefined ? {} : { params }),
          ...(query === undefined ? {} : { query }),
        };
        const received = await api.send(route.method, pathOf(route, address), sent);
        expect(`${received.status} ${received.text}`).toMatch(new RegExp(`^${status} `));
        const response = route.responses[status];
        expect(response).toBeDefined();
        if (response?.lines === true) for (const line of linesIn(received.text)) response.schema.parse(line);
        else response?.schema.parse(response.mediaType === undefined ? received.json : received.text);
        const caching = received.headers.get("cache-control") ?? "none";
        if (response?.cached === undefined) expect(caching).toBe("no-store");
        else if (route.roles === "anyone") expect(caching).toMatch(/^public, max-age=\d+$/);
        else expect(caching).toMatch(/^(?:no-store|private, max-age=\d+(?:, immutable)?)$/);
        expect(received.headers.get("content-type")).toContain(response?.mediaType ?? "application/json");
        if (response?.mediaType === undefined) expect(received.text).toMatch(/\}\n$/);
      },
    );

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
      const hasInput =
        parameterNames(route).length > 0 || route.body !== undefined || route.example.query !== undefined;
      if (hasInput) expect(Object.keys(bad)).not.toEqual([]);
    });

    if (route.method !== "GET" && route.body === undefined)
      test("a body on a route without one", async () => {
        expect(await refusedUnasked(400, route, ...fine({ body: { surprise: 1 } }))).toMatchObject({
          field: "surprise",
        });
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

    if (route.method === "GET")
      test("HEAD answers like GET, without a body", async () => {
        const [path] = fine();
        const got = await api.send("GET", path, { key: null });
        const head = await api.send("HEAD", path, { key: null });
        expect(head.status).toBe(got.status);
        expect(head.text).toBe("");
      });
  });
}
