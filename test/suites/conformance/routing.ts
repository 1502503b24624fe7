/** Tests of what routers are told. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import type { Client, KeyName, Received } from "./client.ts";
import { problemIn } from "./client.ts";
import type { Open } from "./coordinator.ts";
import { addressOf, begun, claim, committed, freshName } from "./leases.ts";

interface Facts {
  key: string;
  shard: number;
  position: number;
  settled: boolean;
  age_ms: number;
}

interface Found extends Facts {
  cell: { id: string; address: string };
  epoch?: number;
}

interface Report {
  shard: number;
  after: number;
  through: number;
  held: [distance: number, keys: string[]][];
  has_more: boolean;
}

const KEPT = {
  "cache-control": "private, max-age=5",
  vary: "authorization, cf-access-jwt-assertion, cf-access-client-id, cookie",
};

const pathOf = (value: string, query = ""): string => `/v1/route/ROUTES/${value}${query}`;

const cachingOf = ({ headers }: Pick<Received, "headers">): Record<string, string | null> => ({
  "cache-control": headers.get("cache-control"),
  vary: headers.get("vary"),
});

const NOT_KEPT = { "cache-control": "no-store", vary: null };

export function routingSuite(open: Open): void {
  let api: Client;

  beforeAll(async () => {
    api = await open();
  });

  const find = (value: string, key: KeyName = "router"): Promise<Found> =>
    api.json<Found>(200, "GET", pathOf(value), { key });

  /** Asks until the shard has applied the decision about the name. */
  async function settled(value: string): Promise<Found> {
    await expect.poll(async () => (await find(value)).settled).toBe(true);
    return find(value);
  }

  /** What the answer is worth that no cell has a name. */
  async function absent(value: string): Promise<Facts> {
    const { route } = await api.problem(404, "GET", pathOf(value), { key: "router" });
    if (route === undefined) throw new Error("the answer has no position");
    return route;
  }

  const report = (shard: number, after?: number): Promise<Report> =>
    api.json(200, "GET", `/v1/reports/${shard}${after === undefined ? "" : `?after=${after}`}`, {
      key: "router",
    }) as unknown as Promise<Report>;

  const keysIn = ({ held }: Report): string[] => held.flatMap(([, keys]) => keys);

  describe("a route", () => {
    test("[Q2] is found as soon as its lease is granted, and is kept only once it is settled", async () => {
      const { uuid, value } = await begun(api);
      const granted = await api.send("GET", pathOf(value), { key: "router" });
      expect(granted.json).toMatchObject({
        cell: { id: "1", address: addressOf("1") },
        epoch: expect.any(Number),
        settled: false,
        age_ms: 0,
      });
      expect(cachingOf(granted)).toEqual(NOT_KEPT);
      await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
      const permanent = await settled(value);
      const { position, epoch } = granted.json as Found;
      expect(permanent).toEqual({ ...(granted.json as Found), settled: true, position: expect.any(Number) });
      expect(permanent.position).toBeGreaterThan(position);
      expect(permanent.epoch).toBe(epoch);
      expect(cachingOf(await api.send("GET", pathOf(value), { key: "router" }))).toEqual(KEPT);
    });

    test("[Q2] of a free name has a position too, and is kept for a second", async () => {
      const value = freshName();
      const answer = await api.send("GET", pathOf(value), { key: "router" });
      const { route } = problemIn(answer);
      expect(route).toMatchObject({ settled: true, age_ms: 0, key: expect.stringMatching(/^[\da-f]{16}$/) });
      expect(cachingOf(answer)).toEqual({ ...KEPT, "cache-control": "private, max-age=1" });
      await committed(api, value);
      const found = await settled(value);
      expect(found).toMatchObject({ key: route?.key, shard: route?.shard });
      expect(found.position).toBeGreaterThan(route?.position ?? Infinity);
    });

    test("[Q2] of a name that is destroyed remains until the commit, and is not kept meanwhile", async () => {
      const { value } = await committed(api);
      await settled(value);
      const uuid = newUuid();
      const body = { destroys: [{ bucket: { type: "ROUTES", value } }] };
      await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, { key: "cell 1", body });
      expect(await find(value)).toMatchObject({ cell: { id: "1" }, settled: false });
      await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
      await absent(value);
      await expect.poll(async () => (await absent(value)).settled).toBe(true);
    });

    test("is the same in every spelling, with slashes raw or percent-encoded", async () => {
      const top = freshName();
      await committed(api, `${top}/app`);
      const route = await settled(`${top}/app`);
      for (const spelling of [`${top.toUpperCase()}/App`, `${top}%2Fapp`, `${top}%2fapp`])
        expect(await find(spelling)).toEqual(route);
      const names = [`${top}/APP`, top].map((value) => ({ type: "ROUTES", value }));
      const { results } = await api.json<{ results: unknown[] }>(200, "POST", "/v1/route", {
        key: "router",
        body: { names },
      });
      expect(results).toMatchObject([
        { name: names[0], found: true, ...route },
        { name: names[1], found: false, settled: true },
      ]);
      expect(results[1]).not.toHaveProperty("cell");
      expect(results[1]).not.toHaveProperty("epoch");
    });

    test("shows a cell no epoch of another cell's name", async () => {
      const { value } = await committed(api);
      const { epoch, ...rest } = await settled(value);
      expect(epoch).toBeGreaterThan(0);
      expect(await find(value, "operator")).toEqual({ epoch, ...rest });
      expect(await find(value, "cell 1")).toEqual({ epoch, ...rest });
      expect(await find(value, "cell 2")).toEqual(rest);
      const body = { names: [{ type: "ROUTES", value }] };
      const { results } = await api.json<{ results: object[] }>(200, "POST", "/v1/route", {
        key: "cell 2",
        body,
      });
      expect(results).toEqual([{ name: body.names[0], found: true, ...rest }]);
    });

    test("case 12: is never for shared caches, and caches tell callers apart", async () => {
      const { value } = await committed(api);
      await settled(value);
      for (const key of ["router", "operator", "cell 1", "cell 2"] as const)
        expect(cachingOf(await api.send("GET", pathOf(value), { key }))).toEqual(KEPT);
      for (const key of [null, "lhk_no.key"] as const)
        expect(cachingOf(await api.send("GET", pathOf(value), { key }))).toEqual(NOT_KEPT);
      const body = { names: [{ type: "ROUTES", value }] };
      expect(cachingOf(await api.send("POST", "/v1/route", { key: "router", body }))).toEqual(NOT_KEPT);
    });

    test.each([
      ["x-forwarded-host", "evil.example"],
      ["x-forwarded-scheme", "http"],
      ["x-original-url", "/v1/route/ROUTES/other"],
      ["x-rewrite-url", "/v1/route/ROUTES/other"],
      ["x-http-method-override", "POST"],
      ["forwarded", "host=evil.example"],
      ["accept", "text/html"],
      ["accept-language", "de"],
      ["origin", "https://evil.example"],
      ["cookie", "leasehold-position=0:1; force-cell=2"],
      ["cache-control", "no-cache"],
      ["if-none-match", "*"],
      ["range", "bytes=0-1"],
      ["leasehold-cell", "2"],
    ])("case 12: is not changed by the header %s", async (name, value) => {
      const lease = await committed(api);
      await settled(lease.value);
      const plain = await api.send("GET", pathOf(lease.value), { key: "router" });
      const other = await api.send("GET", pathOf(lease.value), { key: "router", headers: { [name]: value } });
      expect([other.status, other.json, cachingOf(other)]).toEqual([200, plain.json, cachingOf(plain)]);
    });
  });

  describe("positions", () => {
    interface Placed {
      positions?: Record<string, number>;
    }

    const begin = (value: string, uuid: string): Promise<Placed> =>
      api.json<Placed>(201, "PUT", `/v1/cells/1/leases/${uuid}`, {
        key: "cell 1",
        body: { creates: [claim(value)] },
      });

    test("[Q9] a begin and its commit have the position from which on routers see the lease", async () => {
      const [value, uuid] = [freshName(), newUuid()];
      const before = await absent(value);
      const { positions = {} } = await begin(value, uuid);
      expect(Object.keys(positions)).toEqual([String(before.shard)]);
      const position = positions[before.shard] ?? 0;
      expect(position).toBeGreaterThan(before.position);
      const path = `/v1/cells/1/leases/${uuid}/commit`;
      expect((await api.json<Placed>(200, "POST", path, { key: "cell 1" })).positions).toEqual(positions);
      const query = `?min_position=${before.shard}:${position}`;
      const found = await api.json<Found>(200, "GET", pathOf(value, query), { key: "router" });
      expect(found.position).toBeGreaterThanOrEqual(position);
    });

    test("[Q9] a shard that has not reached its position says nothing about a name", async () => {
      const { value } = await committed(api);
      const { shard } = await settled(value);
      let free = freshName();
      while ((await absent(free)).shard !== shard) free = freshName();
      const wanted = `${shard}:${Number.MAX_SAFE_INTEGER}`;
      const refusals = await Promise.all(
        [value, free].map((name) =>
          api.send("GET", pathOf(name, `?min_position=${wanted}`), { key: "router" }),
        ),
      );
      refusals.push(
        await api.send("POST", "/v1/route", {
          key: "router",
          body: {
            names: [free, value].map((name) => ({ type: "ROUTES", value: name })),
            min_position: wanted,
          },
        }),
      );
      const [first, ...others] = refusals.map((refusal) => {
        expect(cachingOf(refusal)).toEqual(NOT_KEPT);
        expect(refusal.headers.get("retry-after")).toBe("1");
        const { request_id: _, ...said } = problemIn(refusal);
        return said;
      });
      expect(first).toMatchObject({
        status: 503,
        code: "UNAVAILABLE",
        field: "min_position",
        retryable: true,
      });
      for (const other of others) expect(other).toEqual(first);
      // The word of a router is no proof of a loss (H4).
      expect(await find(value)).toMatchObject({ cell: { id: "1" } });
      await begun(api);
    });

    test("[Q9] of many names, those whose shard has not reached its position are unavailable", async () => {
      const { value } = await committed(api);
      const known = await settled(value);
      let other = freshName();
      while ((await absent(other)).shard === known.shard) other = freshName();
      const { shard } = await absent(other);
      const names = [other, value].map((each) => ({ type: "ROUTES", value: each }));
      const body = { names, min_position: `${shard}:${Number.MAX_SAFE_INTEGER}` };
      const { results } = await api.json<{ results: object[] }>(200, "POST", "/v1/route", {
        key: "router",
        body,
      });
      const unavailable = {
        code: "UNAVAILABLE",
        field: "min_position",
        detail: expect.stringContaining(`hard ${shard} has not reached its position`) as string,
        retry_after_ms: 1_000,
      };
      expect(results).toEqual([
        { name: names[0], shard, unavailable },
        { name: names[1], found: true, ...known },
      ]);
    });

    test("[Q9] positions of other shards have no effect", async () => {
      const { value } = await committed(api);
      const { shard, position } = await settled(value);
      const other = shard === 0 ? 1 : 0;
      const query = `?min_position=${other}:${Number.MAX_SAFE_INTEGER},${shard}:${position}`;
      await api.json(200, "GET", pathOf(value, query), { key: "router" });
    });
  });

  describe("a report", () => {
    test("[Q3] lists the names that were put on hold after a position", async () => {
      const value = freshName();
      const { key, shard, position } = await absent(value);
      expect(await report(shard)).toMatchObject({ shard, held: [], has_more: false });
      const { uuid } = await begun(api, value);
      const page = await report(shard, position);
      expect(page).toMatchObject({ shard, after: position, has_more: false });
      expect(keysIn(page)).toContain(key);
      const positions = page.held.map(([distance]) => page.after + distance);
      expect(positions).toEqual(positions.toSorted((a, b) => a - b));
      for (const each of positions) {
        expect(each).toBeGreaterThan(position);
        expect(each).toBeLessThanOrEqual(page.through);
      }
      await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
      const after = await settled(value);
      // An answer from after the hold is not in doubt.
      expect(keysIn(await report(shard, after.position))).not.toContain(key);
    });

    test("[Q3] case 7: a full page never changes, and only it may be kept for long", async () => {
      const { shard, position: after } = await absent(freshName());
      const path = `/v1/reports/${shard}?after=${after}`;
      const tail = await api.send("GET", path, { key: "router" });
      expect(cachingOf(tail)).toEqual({ ...KEPT, "cache-control": "private, max-age=1" });
      for (let batch = 0; batch < 16 && !(await report(shard, after)).has_more; batch += 1) {
        const creates = Array.from({ length: 500 }, (_, id) => claim(freshName(), id));
        await api.json(201, "POST", "/v1/cells/1/leases", { key: "cell 1", body: { creates } });
      }
      const full = await api.send("GET", path, { key: "router" });
      expect(cachingOf(full)).toEqual({ ...KEPT, "cache-control": "private, max-age=86400, immutable" });
      await begun(api);
      const again = await api.send("GET", path, { key: "router" });
      expect(again.json).toEqual(full.json);
      expect(keysIn(full.json as Report).length).toBeGreaterThanOrEqual(400);
      // The pages follow each other without a gap.
      const { through } = full.json as Report;
      expect(await report(shard, through)).toMatchObject({ after: through });
    });

    test("[Q3] after a position that the shard does not have is refused, and proves no loss", async () => {
      const path = `/v1/reports/0?after=${Number.MAX_SAFE_INTEGER}`;
      const refused = await api.problem(503, "GET", path, { key: "router" });
      expect(refused).toMatchObject({ code: "UNAVAILABLE", retryable: true });
      expect(refused.headers.get("retry-after")).toBe("1");
      await report(0);
    });

    test("of a shard that does not exist is not found", async () => {
      const refused = await api.problem(404, "GET", "/v1/reports/256", { key: "router" });
      expect(refused).toMatchObject({ code: "NOT_FOUND" });
      expect(refused).not.toHaveProperty("reason");
    });

    test("[Q3] case 7: across an accepted loss is refused with 410", async () => {
      const { shard, position } = await settled((await committed(api)).value);
      await report(shard, position);
      const body = { dry_run: false, declare_lost: true, reason: "a test" };
      await api.json(200, "POST", `/v1/admin/parts/shard-${shard}/reconcile`, { body });
      const finish = { body: { reason: "a test" } };
      await api.json(200, "POST", `/v1/admin/parts/shard-${shard}/finish`, finish);
      const path = `/v1/reports/${shard}?after=${position}`;
      const pruned = await api.send("GET", path, { key: "router" });
      expect(problemIn(pruned)).toMatchObject({
        status: 410,
        code: "FAILED_PRECONDITION",
        reason: "REPORT_PRUNED",
        retryable: false,
      });
      expect(cachingOf(pruned)).toEqual(NOT_KEPT);
      const { through } = await report(shard);
      expect(through).toBeGreaterThan(position);
      expect(await report(shard, through)).toMatchObject({ held: [] });
    });
  });

  test("the addresses of all cells are listed for every role", async () => {
    for (const key of ["router", "cell 2", "operator"] as const) {
      const answer = await api.send("GET", "/v1/cells", { key });
      expect(answer.json).toEqual({
        cells: ["1", "2"].map((id) => ({ id, address: addressOf(id) })),
        age_ms: expect.any(Number),
      });
      expect(cachingOf(answer)).toEqual({ ...KEPT, "cache-control": "private, max-age=15" });
    }
  });
}
