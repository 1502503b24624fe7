/** The calls that change a growth, while an object does not answer. */
import { beforeAll, expect, test } from "vitest";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { watchedNamespace } from "../../../../support/workerd/counting.ts";

const PATH = "/v1/admin/growth";
const reason = "a test";

beforeAll(async () => {
  await startDeployment("1");
});

test("[G1] a growth starts only when every shard was told that the last one was aborted", async () => {
  let isDown = false;
  const told: string[] = [];
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (call, object) => {
    if (call !== "CLAIM_SHARD.growStep") return undefined;
    if (isDown && object === "shard-5") return Promise.reject(new Error("the shard is down"));
    told.push(object);
    return undefined;
  });
  const api = new Api({ CLAIM_SHARD });
  await api.json(200, "POST", PATH, { body: { shards: 6, reason } });
  await api.json(200, "POST", `${PATH}/steps`);
  isDown = true;
  await api.json(200, "POST", `${PATH}/abort`, { body: { reason } });
  expect(told.slice(-5).toSorted((a, b) => a.localeCompare(b))).toEqual(
    [0, 1, 2, 3, 4].map((shard) => `shard-${shard}`),
  );
  const start = { body: { shards: 5, reason } };
  expect(await api.problem(503, "POST", PATH, start)).toMatchObject({ code: "UNAVAILABLE", retryable: true });
  expect(await api.json(200, "GET", PATH)).toMatchObject({ shards: 4, growth: null });
  isDown = false;
  told.length = 0;
  expect(await api.json(200, "POST", PATH, start)).toMatchObject({ growth: { to: 5, phase: "copying" } });
  expect(told).toContain("shard-5");
  // A call that is repeated tells nobody anything.
  told.length = 0;
  await api.json(200, "POST", PATH, start);
  expect(told).toEqual([]);
  await api.json(200, "POST", `${PATH}/abort`, { body: { reason } });
});

test("[G1] a growth does not start while a shard can't answer, and one that runs goes on", async () => {
  const down = new Set<string>();
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (_, object) =>
    down.has(object) ? Promise.reject(new Error("the shard is down")) : undefined,
  );
  const api = new Api({ CLAIM_SHARD });
  const start = { body: { shards: 6, reason } };
  down.add("shard-1").add("shard-3");
  expect(await api.problem(409, "POST", PATH, start)).toMatchObject({
    code: "FAILED_PRECONDITION",
    reason: "GROWTH_SHARD_UNAVAILABLE",
    detail:
      "Nothing was started, because shards can't copy their names now: " +
      "shard 1 (the shard is down), shard 3 (the shard is down).",
  });
  expect(await api.json(200, "GET", PATH)).toMatchObject({ shards: 4, growth: null });
  down.clear();
  await api.json(200, "POST", PATH, start);
  down.add("shard-1");
  expect(await api.json(200, "POST", PATH, start)).toMatchObject({
    growth: { to: 6, sources: [{}, { shard: 1, state: null }, {}, {}] },
  });
  down.clear();
  await api.json(200, "POST", `${PATH}/abort`, { body: { reason } });
});
