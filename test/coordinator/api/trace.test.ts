import { afterEach, expect, test, vi } from "vitest";
import { isLogged, type AnalyticsDataset } from "../../../src/coordinator/api/trace.ts";
import { claim, freshName } from "../../suites/conformance/leases.ts";
import { Api, startDeployment } from "../../support/workerd/api.ts";

const operator = { role: "operator", keyId: "k", cell: null, expiresAtMs: 0, credential: null } as const;
const cell = { role: "cell", keyId: "k", cell: "1", expiresAtMs: 0, credential: null } as const;

afterEach(() => void vi.restoreAllMocks());

test("failures of the service and changes by operators are always logged", () => {
  expect(isLogged({ principal: cell }, "PUT", 503, 0)).toBe(true);
  expect(isLogged({}, "GET", 500, 0)).toBe(true);
  expect(isLogged({ principal: operator }, "POST", 200, 0)).toBe(true);
  expect(isLogged({ principal: operator }, "POST", 409, 0)).toBe(true);
  expect(isLogged({ principal: operator }, "GET", 200, 0)).toBe(false);
  expect(isLogged({ principal: cell }, "PUT", 201, 0)).toBe(false);
  expect(isLogged({}, "GET", 401, 0)).toBe(false);
  expect(isLogged({}, "GET", 200, 1)).toBe(true);
});

test("a share of the others is logged at random", () => {
  const logged = [0, 0.009, 0.01, 0.5, 0.999].filter((drawn) => {
    vi.spyOn(Math, "random").mockReturnValue(drawn);
    return isLogged({ principal: cell }, "GET", 200, 0.01);
  });
  expect(logged).toEqual([0, 0.009]);
});

type Point = Parameters<AnalyticsDataset["writeDataPoint"]>[0];

/** The platform's local datasets drop what they get, so these tests keep the data points themselves. */
async function startCounted(): Promise<{ api: Api; points: Point[] }> {
  await startDeployment("7");
  const points: Point[] = [];
  const dataset: AnalyticsDataset = { writeDataPoint: (point) => void points.push(point) };
  return { api: new Api({ ANALYTICS: dataset }), points };
}

test("each request writes one data point, whatever its answer", async () => {
  const { api, points } = await startCounted();
  const name = freshName();
  const options = { key: "cell 7" as const, body: { creates: [claim(name)] } };
  await api.json(201, "POST", "/v1/cells/7/leases", options);
  await api.json(409, "POST", "/v1/cells/7/leases", options);
  await api.json(401, "GET", `/v1/records/ROUTES/${name}`, { key: "lhk_wrong" });
  await api.json(404, "GET", "/v1/nothing");

  expect(points.map(({ indexes, blobs, doubles }) => [indexes, blobs.slice(0, 6), doubles[0]])).toEqual([
    [["7"], ["beginLeaseWithNewId", "POST", "OK", "", "cell", "7"], 201],
    [["7"], ["beginLeaseWithNewId", "POST", "ABORTED", "", "cell", "7"], 409],
    [["none"], ["getRecord", "GET", "UNAUTHENTICATED", "", "", ""], 401],
    [["none"], ["none", "GET", "NOT_FOUND", "ROUTE_UNKNOWN", "", ""], 404],
  ]);
  expect(points[0]?.blobs).toHaveLength(7);
  expect(points[0]?.blobs[6]).toMatch(/^[0-9a-f-]{36}$/);
  expect(points.every(({ doubles }) => (doubles[1] ?? -1) >= 0)).toBe(true);
});

test("no data point has a name or a key", async () => {
  const { api, points } = await startCounted();
  const name = freshName();
  await api.json(201, "POST", "/v1/cells/7/leases", { key: "cell 7", body: { creates: [claim(name)] } });
  await api.json(200, "GET", `/v1/records/ROUTES/${name}`, { key: "router" });
  expect(points).toHaveLength(2);
  expect(JSON.stringify(points)).not.toContain(name);
  expect(JSON.stringify(points)).not.toContain("lhk_");
});
