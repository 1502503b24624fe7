/** Rules and routes together, against a coordinator in this process. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createClient } from "../../../../src/users/client/index.ts";
import { chooseCell, compileRuleset, createRoutes, type Routes } from "../../../../src/users/router/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";

let coordinator: TestCoordinator;
let routes: Routes;

beforeEach(async () => {
  coordinator = await startTestCoordinator();
  const { url, fetch, keys } = coordinator;
  routes = createRoutes({ url, key: keys.router, fetch });
});

afterEach(async () => {
  routes.close();
  await coordinator.close();
});

/** Claims names of type ROUTES for cell 2. */
async function claim(...values: string[]): Promise<void> {
  const { url, fetch, keys } = coordinator;
  const { leases } = createClient({ url, key: keys.cell("2"), fetch, cell: "2" });
  const { uuid } = await leases.begin({
    creates: values.map((value) => ({
      bucket: { type: "ROUTES", value },
      subject: { type: "NAMESPACE", id: "1" },
      source: { type: "RAILS_TABLE_ROUTES", id: value },
    })),
  });
  await leases.commit(uuid);
}

const rules = (type = "ROUTES"): unknown => [
  {
    id: "paths",
    match: { type: "path", pattern: "/*path" },
    action: "classify",
    classify: { type, value: "${path}", prefixDepth: 5 },
    onNotFound: "next",
  },
  { id: "default", action: "first_cell" },
];

const choose = (path: string, type?: string) =>
  chooseCell(compileRuleset(rules(type)), new Request(`https://app.example.com${path}`), routes);

describe("a request", () => {
  it("goes to the cell of the longest name that exists", async () => {
    await claim("acme", "acme/web");
    expect(await choose("/acme/web/issues/7")).toMatchObject({
      kind: "cell",
      cell: { id: "2" },
      matchedName: { type: "ROUTES", value: "acme/web" },
      isFallback: false,
    });
    expect(await choose("/acme")).toMatchObject({ matchedName: { value: "acme" } });
  });

  it("passes over values that no name can have, also among names that exist", async () => {
    await claim("acme");
    const impossible = encodeURIComponent("\u202e");
    expect(await choose(`/acme/${impossible}`)).toMatchObject({
      kind: "cell",
      matchedName: { value: "acme" },
    });
    expect(await choose(`/acme/${"a".repeat(3_000)}`)).toMatchObject({ kind: "cell", cell: { id: "2" } });
  });

  it("goes to the first cell if no name exists, because a rule says so", async () => {
    expect(await choose("/nobody/here")).toMatchObject({ kind: "cell", cell: { id: "1" }, isFallback: true });
  });

  it.each(["/acme", "/acme/web"])(
    "is misconfigured, and doesn't go to the default cell, if a type is not declared: %s",
    async (path) => {
      expect(await choose(path, "NAMES")).toMatchObject({ kind: "misconfigured", rule: "paths" });
    },
  );

  it("Q8 is unavailable, and doesn't go to the default cell, if the coordinator doesn't answer", async () => {
    expect(await choose("/")).toMatchObject({ isFallback: true });
    await coordinator.close();
    expect(await choose("/acme/web")).toMatchObject({ kind: "unavailable", rule: "paths" });
  });
});
