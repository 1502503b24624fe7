/** The cache that routers share, with the Cache API of workerd. */
import { expect, test } from "vitest";
import { createRoutes, workersCache, type Routes } from "../../../src/users/router/index.ts";

const key = "https://routes.leasehold.invalid/1/test/ROUTES/a";

test("an entry comes back, and is at least as old as it can be", async () => {
  const shared = workersCache();
  await shared.put(key, "value", 60_000);
  const hit = await shared.get(key);
  expect(hit?.value).toBe("value");
  expect(hit?.ageMs).toBeGreaterThanOrEqual(1_000);
  expect(hit?.ageMs).toBeLessThanOrEqual(121_000);
  expect(await shared.get(`${key}b`)).toBeUndefined();
  expect(await workersCache({ cache: caches.default }).get(key)).toEqual(hit);
  expect(await workersCache({ cache: () => caches.open("other") }).get(key)).toBeUndefined();
});

/** A router over a coordinator that has only one name, and whose other routes fail. */
function routerOf(sharedCache: boolean, reports: boolean): { routes: Routes; asked: string[] } {
  const asked: string[] = [];
  const facts = { key: "9f2c47d1a05be836", shard: 3, position: 4_711, settled: true, age_ms: 0 };
  const cell = { id: "7", address: "https://cell-7.example.com" };
  const page = { shard: 3, after: 4_711, through: 4_711, held: [], has_more: false, age_ms: 0 };
  const answers: Record<string, [status: number, body: unknown]> = {
    "/v1/route/ROUTES/a": [200, { cell, epoch: 12, ...facts }],
    "/v1/route/ROUTES/b": [404, { code: "NOT_FOUND", route: facts }],
    "/v1/reports/3": [200, page],
  };
  const routes = createRoutes({
    url: "https://leasehold.example.com",
    key: "secret",
    reports,
    fetch: async (url) => {
      const { pathname } = new URL(url);
      asked.push(pathname);
      const [status, body] = answers[pathname] ?? [503, {}];
      return Response.json(body, { status });
    },
    ...(sharedCache ? { sharedCache: workersCache() } : {}),
  });
  return { routes, asked };
}

test.each([true, false])(
  "answers are the same with the cache and without it; reports: %j",
  async (reports) => {
    const background: Promise<unknown>[] = [];
    const waitUntil = (work: Promise<unknown>): void => void background.push(work);
    const answersOf = async ({ routes }: { routes: Routes }): Promise<unknown[]> => {
      const found = [];
      for (const value of ["a", "b", "a", "c"])
        found.push(await routes.find({ type: "ROUTES", value }, { waitUntil }));
      await Promise.all(background);
      routes.close();
      return found.map(({ ...answer }) => ({ ...answer, ageMs: 0, layer: "any" }));
    };
    const alone = await answersOf(routerOf(false, reports));
    const first = await answersOf(routerOf(true, reports));
    const second = await answersOf(routerOf(true, reports));
    expect(first).toEqual(alone);
    expect(second).toEqual(alone);
    expect(alone.map((answer) => (answer as { kind: string }).kind)).toEqual([
      "found",
      "none",
      "found",
      "unavailable",
    ]);
  },
);
