/** What each host shows for every route: its successes, and one refusal of each kind. */
import { beforeAll, describe, expect, test } from "vitest";
import { routeIds, routes, type RouteId } from "../../../src/coordinator/api/contract.ts";
import type { Route } from "../../../src/coordinator/api/contract/route.ts";
import { cases, type Request } from "./cases.ts";
import { linesIn } from "./lines.ts";
import { pathOf } from "./paths.ts";
import { callOf, keyOf, rolesOf } from "./route-calls.ts";
import type { Coordinator, Open } from "./coordinator.ts";

export function routeSuite(open: Open): void {
  let api: Coordinator;

  beforeAll(async () => {
    api = await open();
  });

  describe.each(routeIds)("%s", (id: RouteId) => {
    const route: Route = routes[id];
    const { success } = cases[id];

    test("refuses no key, another role, an unknown query parameter, and a wrong body", async () => {
      const refuse = (status: number, changes: Request) =>
        api.problem(status, route.method, ...callOf(id, changes));
      if (route.roles !== "anyone") await refuse(401, { key: null });
      const other = ["router", "cell"].find((role) => !rolesOf(route).includes(role));
      if (route.roles !== "anyone" && other !== undefined) await refuse(403, { key: keyOf(other) });
      const query = [success[0].query, "surprise=1"].filter((part) => part !== undefined).join("&");
      expect(await refuse(400, { query })).toMatchObject({ field: "surprise" });
      if (route.body === undefined) return;
      const headers = { "content-type": "application/json" };
      const raw = new Uint8Array([0x22, 0xff, 0x22]);
      expect(await refuse(400, { raw, headers })).toMatchObject({ field: "body" });
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

    if (route.method === "GET")
      test("HEAD answers like GET, without a body", async () => {
        const [path] = callOf(id);
        const got = await api.send("GET", path, { key: null });
        const head = await api.send("HEAD", path, { key: null });
        expect(head.status).toBe(got.status);
        expect(head.text).toBe("");
      });
  });
}
