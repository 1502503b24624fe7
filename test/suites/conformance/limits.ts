/** Tests of the limits that variables set, as far as they are visible from outside. */
import { v4 as newUuid } from "uuid";
import { describe, expect, test } from "vitest";
import type * as z from "zod";
import { routeIds, routes } from "../../../src/coordinator/api/contract.ts";
import type * as schemas from "../../../src/coordinator/api/contract/schemas.ts";
import type { Route } from "../../../src/coordinator/api/contract/route.ts";
import { begun, claim, freshName } from "./leases.ts";
import { pathOf } from "./paths.ts";
import type { Coordinator, Open } from "./coordinator.ts";

type Minted = z.infer<typeof schemas.mintedKey>;

export function limitSuite(open: Open): void {
  const opened = (name: string, value: string): Promise<Coordinator> =>
    open({ variables: { [name]: value } });
  const put = (api: Coordinator, status: number, body: unknown) =>
    api.problem(status, "PUT", `/v1/cells/1/leases/${newUuid()}`, { key: "cell 1", body });

  test("are listed with their values, defaults and variables", async () => {
    const api = await opened("LEASEHOLD_BATCH_OPS", "10");
    const { limits } = await api.json<{ limits: { name: string }[] }>(200, "GET", "/v1/limits", {
      key: "cell 1",
    });
    expect(limits.find(({ name }) => name === "batch_ops")).toEqual({
      name: "batch_ops",
      value: 10,
      default: 1_000,
      unit: "ops",
      variable: "LEASEHOLD_BATCH_OPS",
      about: "creates, destroys and replaces in one begin",
    });
  });

  test("ops of a batch", async () => {
    const api = await opened("LEASEHOLD_BATCH_OPS", "1");
    expect(await put(api, 400, { creates: [claim("a"), claim("b")] })).toMatchObject({ field: "creates[1]" });
  });

  test("the wait of a begin", async () => {
    const api = await opened("LEASEHOLD_BEGIN_WAIT_MS", "5");
    const refused = await put(api, 400, { creates: [claim("a")], wait_ms: 6 });
    expect(refused).toMatchObject({ field: "wait_ms", detail: "`wait_ms` must be at most 5." });
  });

  test("bytes of an id", async () => {
    const api = await opened("LEASEHOLD_ID_BYTES", "2");
    expect(await put(api, 400, { creates: [claim("a", "100")] })).toMatchObject({
      field: "creates[0].source.id",
    });
  });

  test("bytes of a value", async () => {
    const api = await opened("LEASEHOLD_VALUE_BYTES", "16");
    expect(await put(api, 400, { creates: [claim("a".repeat(17))] })).toMatchObject({
      field: "creates[0].bucket.value",
    });
  });

  test("names of a lookup", async () => {
    const api = await opened("LEASEHOLD_LOOKUP_BUCKETS", "1");
    const buckets = [freshName(), freshName()].map((value) => ({ type: "ROUTES", value }));
    const refused = await api.problem(400, "POST", "/v1/records/lookup", {
      key: "router",
      body: { buckets },
    });
    expect(refused).toMatchObject({ field: "buckets[1]" });
  });

  test("ranges of a call for digests", async () => {
    const api = await opened("LEASEHOLD_DIGEST_RANGES", "2");
    const ask = {
      key: "cell 1" as const,
      body: {
        source_type: "RAILS_TABLE_USERS",
        ranges: [{ source_id_lte: 1 }, { source_id_gt: 1, source_id_lte: 2 }] as object[],
      },
    };
    await api.json(200, "POST", "/v1/cells/1/records/digests", ask);
    ask.body.ranges.push({ source_id_gt: 2 });
    expect(await api.problem(400, "POST", "/v1/cells/1/records/digests", ask)).toMatchObject({
      field: "ranges[2]",
    });
  });

  test("a batch that is too large for the ledger: 413, not retryable", async () => {
    const api = await opened("LEASEHOLD_BODY_BYTES", "8388608");
    // A value is stored as typed and canonical, so a batch may need twice the space of its request.
    const creates = Array.from({ length: 1_000 }, (_, index) =>
      claim(`A${String(index).padStart(4, "0")}${"x".repeat(1_019)}`, "7", "EMAILS"),
    );
    expect(await put(api, 413, { creates })).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      reason: "LEASE_TOO_LARGE",
      retryable: false,
    });
  });

  test("items of a page, by default and at most", async () => {
    const api = await open({ variables: { LEASEHOLD_PAGE_ITEMS: "2", LEASEHOLD_MAX_PAGE_ITEMS: "3" } });
    for (let leases = 0; leases < 5; leases += 1) await begun(api);
    const count = async (query: string): Promise<number> =>
      (await api.json<{ leases: unknown[] }>(200, "GET", `/v1/cells/1/leases?${query}`, { key: "cell 1" }))
        .leases.length;
    expect(await count("")).toBe(2);
    expect(await count("page_size=4")).toBe(3);
    expect(await count("page_size=9007199254740993")).toBe(3);
    expect(await count("page_size=001")).toBe(1);
  });

  test("the lifetime of a key, which is also the default", async () => {
    const api = await opened("LEASEHOLD_KEY_LIFETIME_S", "3600");
    const refused = await api.problem(400, "POST", "/v1/admin/keys", {
      body: { role: "router", expires_in_s: 3_601 },
    });
    expect(refused).toMatchObject({ field: "expires_in_s" });
    const { created_at: from, expires_at: to } = await api.json<Minted>(201, "POST", "/v1/admin/keys", {
      body: { role: "router" },
    });
    expect(Date.parse(to) - Date.parse(from)).toBe(3_600_000);
  });

  describe("bytes of a body", () => bodySuite(open));
}

/** Tests of bodies that are larger by one byte than they may be. */
export function bodySuite(open: Open): void {
  const withBody: Route[] = routeIds
    .map((id) => routes[id])
    .filter((route: Route) => route.body !== undefined);

  test.each([true, false])("one byte too many, with a Content-Length: %s", async (told) => {
    const api = await open({ variables: { LEASEHOLD_BODY_BYTES: "1024" } });
    const before = api.asked()?.length;
    for (const route of withBody) {
      const key =
        route.roles === "anyone" || route.roles.includes("cell")
          ? "cell 1"
          : route.roles.includes("router")
            ? "router"
            : "operator";
      const bytes = new TextEncoder().encode(`"${"x".repeat(1_023)}"`);
      const raw = told ? bytes : new Blob([bytes]).stream();
      const refused = await api.problem(413, route.method, pathOf(route, {}), {
        key,
        raw,
        headers: { "content-type": "application/json" },
      });
      expect(refused).toMatchObject({
        code: "RESOURCE_EXHAUSTED",
        reason: "BODY_TOO_LARGE",
        retryable: false,
      });
    }
    expect(api.asked()?.length).toBe(before);
  });
}
