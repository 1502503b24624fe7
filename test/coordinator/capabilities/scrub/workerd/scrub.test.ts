/** Tests of the routes of scrubs: steps, findings with names, and parts that are lost. */
import { evictAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import type * as z from "zod";
import { placementOf } from "../../../../../src/coordinator/kernel/placement.ts";
import { configOf } from "../../../../../src/coordinator/env.ts";
import type { scrubRoutes } from "../../../../../src/coordinator/capabilities/scrub/edge/routes.ts";
import { applied, begun, committed } from "../../../../suites/conformance/leases.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { stubsOf } from "../../../../support/workerd/stubs.ts";
import { STAMP } from "../../../../support/ops.ts";

type Status = z.infer<(typeof scrubRoutes)["getScrub"]["responses"][200]["schema"]>;

let api: Api;

beforeEach(async () => {
  api = await startDeployment("1", "2");
});

const shards = () => Array.from({ length: configOf(env).initialShards }, (_, index) => `shard-${index}`);
const read = (part: string): Promise<Status> => api.json(200, "GET", `/v1/admin/parts/${part}/scrub`, {});

async function scrub(part: string, using = api): Promise<Status> {
  const path = `/v1/admin/parts/${part}/scrub`;
  let status = await using.json<Status>(200, "POST", path, { body: { restart: true } });
  while (status.running !== null)
    status = await using.json<Status>(200, "POST", path, { body: { restart: false } });
  return status;
}

const damage = async (statement: string): Promise<void> => {
  for (const index of shards().keys())
    await runInDurableObject(stubsOf(env).shard(index), (_, { storage }) => {
      storage.sql.exec(statement);
    });
};

test("a pass that finds nothing, in one step or in several", async () => {
  await committed(api);
  await begun(api);
  for (const part of [...shards(), "ledger-1"]) {
    expect(await read(part)).toMatchObject({ part, state: "complete", running: null, last: null });
    const done = await scrub(part);
    expect(done.last).toMatchObject({ number: 1, found: 0, findings: [], unchecked: 0 });
    expect(await read(part)).toEqual(done);
    const slowly = await scrub(part, new Api({ LEASEHOLD_SCAN_ROWS: "1" }));
    expect(slowly.last).toMatchObject({ number: 2, rows: done.last?.rows, found: 0 });
  }
});

test("[Z2] a finding has the name of the row, and its type if there is one", async () => {
  const { value } = await committed(api);
  await applied(api, value);
  await damage("UPDATE claim SET digest_0 = digest_0 + 1");
  const found = (await Promise.all(shards().map((part) => scrub(part)))).flatMap(
    ({ last }) => last?.findings ?? [],
  );
  expect(found).toEqual([
    {
      kind: "wrong_digest",
      table: "claims",
      found_at: expect.any(String) as string,
      bucket: { type: "ROUTES", canonical: expect.any(String) as string },
      cell_id: "1",
      lease_uuid: null,
      epoch: expect.any(Number) as number,
      missing: null,
    },
  ]);
  await damage("UPDATE claim SET bucket_type = 77");
  const types = (await Promise.all(shards().map((each) => scrub(each)))).flatMap(
    ({ last }) => last?.findings.map(({ bucket }) => bucket?.type) ?? [],
  );
  expect(new Set(types)).toEqual(new Set([null]));
});

test("[Z2] a hold that its shard has only in memory", async () => {
  await begun(api);
  await damage("UPDATE log SET holds = NULL");
  const found = (await Promise.all(shards().map((part) => scrub(part)))).flatMap(
    ({ last }) => last?.findings ?? [],
  );
  expect(found).toMatchObject([
    { kind: "unlogged_hold", table: "holds", bucket: { type: "ROUTES" }, cell_id: "1", epoch: null },
  ]);
});

test("[Z3] a lease that has lost its holds, with the shard that lacks them", async () => {
  await begun(api);
  await damage("UPDATE log SET holds = NULL");
  await evictAllDurableObjects();
  const { last } = await scrub("ledger-1");
  expect(last?.findings).toMatchObject([{ kind: "missing_holds", bucket: null, missing: { holds: 1 } }]);
});

test("[Z5] a part that has gone back in time refuses, and its record can still be read", async () => {
  await committed(api);
  await scrub("shard-0");
  const seen = { incarnation: 99 * 16 ** 6, position: 1_000_000_000 };
  const envelope = { ...STAMP, placement: placementOf(configOf(env).initialShards) };
  await stubsOf(env)
    .shard(0)
    .settle({ ...envelope, seen, keys: [] });
  const refused = await api.problem(503, "POST", "/v1/admin/parts/shard-0/scrub", {
    body: { restart: false },
  });
  expect(refused.reason).toBe("HISTORY_LOST");
  expect(await read("shard-0")).toMatchObject({ state: "lost", last: { number: 1 } });
});
