import { expect, test } from "vitest";
import { isAllowed, type Roles, isCellId, type Principal } from "../../../src/coordinator/auth/principal.ts";
import { routeIds, routes, type RouteId } from "../../../src/coordinator/api/contract.ts";

const key = { keyId: "k", expiresAtMs: Infinity, cell: null, credential: { kind: "key" } } as const;
const cell: Principal = { ...key, role: "cell", cell: "1" };
const router: Principal = { ...key, role: "router" };
const scraper: Principal = { ...key, role: "scraper" };
const bridge: Principal = { ...key, role: "bridge" };
const viewer: Principal = { ...key, role: "viewer" };
const operator: Principal = { ...key, role: "operator" };
const everyone: Roles = ["cell", "router", "operator"];

test.each<[string, Principal, Roles, string | undefined, boolean]>([
  ["a cell on its own path", cell, ["cell", "operator"], "1", true],
  ["a cell on another's path", cell, ["cell", "operator"], "2", false],
  ["a cell on its own path, written differently", cell, ["cell"], "01", false],
  ["a cell on an empty path", cell, ["cell"], "", false],
  ["a cell on a path without a cell", cell, everyone, undefined, true],
  ["a cell on its own path, on a route for operators only", cell, ["operator"], "1", false],
  ["an operator on any cell's path", operator, ["cell", "operator"], "2", true],
  ["a router on a cell's path", router, ["cell", "operator"], "1", false],
  ["a router on a route for every role", router, everyone, undefined, true],
  ["a router on a route for anyone", router, "anyone", "7", true],
  ["a scraper on a route for scrapers", scraper, ["operator", "scraper"], undefined, true],
  ["a scraper on a route for all other roles", scraper, everyone, undefined, false],
  ["a scraper on a cell's path", scraper, ["cell", "operator"], "1", false],
  ["an operator on a route for no role", operator, [], undefined, false],
])("%s", (_, principal, roles, pathCell, allowed) => {
  expect(isAllowed(principal, roles, pathCell)).toBe(allowed);
});

test("a scraper may use one route, and no route is for scrapers alone", () => {
  const open = routeIds.filter((id) => isAllowed(scraper, routes[id].roles, undefined));
  expect(open.filter((id) => routes[id].roles !== "anyone")).toEqual(["getMetrics"]);
  expect(routes.getMetrics.roles).toContain("operator");
});

test("[A4] a bridge may use only the routes that need no key", () => {
  for (const id of routeIds)
    expect([id, isAllowed(bridge, routes[id].roles, "7")]).toEqual([id, routes[id].roles === "anyone"]);
});

test("a viewer may use every route that an operator may use to read, and no other", () => {
  const readingPosts = new Set<RouteId>([
    "lookupRecords",
    "lookupRoutes",
    "planTransfer",
    "digestRecords",
    "classify",
    "explainIdentity",
  ]);
  const reads = (id: RouteId): boolean => routes[id].method === "GET" || readingPosts.has(id);
  for (const id of routeIds)
    expect([id, isAllowed(viewer, routes[id].roles, "7")]).toEqual([
      id,
      reads(id) && isAllowed(operator, routes[id].roles, "7"),
    ]);
});

test.each(["1", "9", "10", "9223372036854775807"])("%s is a cell id", (id) =>
  expect(isCellId(id)).toBe(true),
);
test.each(["", "0", "01", "-1", "1.0", "1e3", " 1", "1\n", "9223372036854775808", "१", "1".repeat(20)])(
  "%j is not a cell id",
  (id) => expect(isCellId(id)).toBe(false),
);
