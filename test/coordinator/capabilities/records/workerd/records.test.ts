/**
 * Tests of lookups that need other isolates or watch the calls of objects. All others are in
 * test/suites/conformance.
 */
import { beforeAll, expect, test } from "vitest";
import { addressOf, begun, claim, committed, freshName } from "../../../../suites/conformance/leases.ts";
import { Api, startDeployment } from "../../../../support/workerd/api.ts";
import { counting } from "../../../../support/workerd/counting.ts";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

test("a name is found even if its cell was registered after this isolate read the directory", async () => {
  await api.json(200, "GET", `/v1/records/ROUTES/${(await committed(api)).value}`, { key: "router" });
  const elsewhere = new Api();
  await elsewhere.json(201, "POST", "/v1/admin/cells", {
    body: { cell_id: "9", name: "New", address: addressOf("9") },
  });
  const value = freshName();
  await api.json(201, "POST", "/v1/cells/9/leases", {
    key: "cell 9",
    body: { creates: [claim(value)] },
  });
  expect(await api.json(200, "GET", `/v1/records/ROUTES/${value}`, { key: "router" })).toMatchObject({
    cell: { id: "9", address: addressOf("9") },
  });
});

test("a lookup of many names sends at most one message to each shard", async () => {
  const names = await Promise.all(
    Array.from({ length: 20 }, async (_, index) =>
      index % 2 === 0 ? (await begun(api)).value : freshName(),
    ),
  );
  const watched = counting(api.env);
  const body = { buckets: [...names, ...names].map((value) => ({ type: "ROUTES", value })) };
  await new Api({ ...watched.env }).json(200, "POST", "/v1/records/lookup", { key: "cell 1", body });
  const lookups = watched.calls.filter((call) => call === "CLAIM_SHARD.lookup").length;
  expect(lookups).toBeLessThanOrEqual(4);
  expect(lookups).toBeGreaterThan(1);
});

test("[R4] digests of many ranges take one message to the ledger and one to each shard", async () => {
  await committed(api);
  const watched = counting(api.env);
  const isolate = new Api({ ...watched.env });
  const ranges = Array.from({ length: 256 }, (_, index) => ({
    source_id_gt: index,
    source_id_lte: index + 1,
  }));
  const ask = () =>
    isolate.json(200, "POST", "/v1/cells/1/records/digests", {
      key: "cell 1",
      body: { source_type: "RAILS_TABLE_ROUTES", ranges },
    });
  // The first call also reads the directory.
  await ask();
  const before = watched.calls.length;
  await ask();
  expect(watched.calls.slice(before).toSorted()).toEqual(
    [
      "CELL_LEDGER.authorize",
      "CELL_LEDGER.endRead",
      ...Array.from({ length: 4 }, () => "CLAIM_SHARD.digestRecords"),
    ].toSorted(),
  );
});
