/** A deployment gets more shards by calls of its API. */
import { v4 as newUuid } from "uuid";
import { describe, expect, test } from "vitest";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";
import { keyOf } from "../../support/ops.ts";

const reason = "a test";

interface ChangesPage {
  changes: { event: string; shard: number; claim?: { bucket?: { value: string }; epoch: number } }[];
  checkpoint: string;
  has_more: boolean;
}

type Calls = ReturnType<typeof callsOf>;

/** Calls the API as an operator, or as cell 1. */
function callsOf({ url, fetch, keys }: TestCoordinator) {
  return async <T>(method: string, path: string, body?: object): Promise<T> => {
    const key = path.startsWith("/v1/cells/") ? keys.cell("1") : keys.operator;
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    expect(answer.ok, text).toBe(true);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
}

const NAMES = Array.from({ length: 100 }, (_, index) => `name-${index}`);

/** The shard of a name, with this number of shards. */
function shardWith(shards: number, name: string): number {
  const { type, canonical } = keyOf("ROUTES", name);
  return shardOf(type, canonical, shards);
}

const bucketOf = (value: string): object => ({ type: "ROUTES", value });

const createOf = (value: string, id: string): object => ({
  creates: [
    {
      bucket: bucketOf(value),
      subject: { type: "NAMESPACE", id },
      source: { type: "RAILS_TABLE_ROUTES", id },
    },
  ],
});

async function commit(call: Calls, ops: object): Promise<void> {
  const lease = `/v1/cells/1/leases/${newUuid()}`;
  await call("PUT", lease, ops);
  await call("POST", `${lease}/commit`);
}

async function grow(call: Calls, shards: number): Promise<void> {
  await call("POST", "/v1/admin/growth", { shards, reason });
  await call("POST", "/v1/admin/growth/steps");
  await call("POST", "/v1/admin/growth/cut", { reason });
  const { growth } = await call<{ growth: unknown }>("POST", "/v1/admin/growth/steps");
  expect(growth).toBeNull();
}

test("[K5] [G9] an erasure reaches the shards that had the name before", async () => {
  const coordinator = await startTestCoordinator({ cells: ["1"], shards: 1 });
  const call = callsOf(coordinator);
  const name = NAMES.find((each) => shardWith(2, each) === 1) ?? "";
  const bucket = bucketOf(name);
  const { checkpoint } = await call<{ checkpoint: string }>("GET", "/v1/changes");
  await commit(call, createOf(name, "1"));
  await commit(call, { destroys: [{ bucket }] });
  await commit(call, createOf(name, "2"));
  await coordinator.advance(1_000);

  await grow(call, 2);

  const changed = async (): Promise<unknown[]> => {
    const path = `/v1/changes?after=${encodeURIComponent(checkpoint)}`;
    const { changes } = await call<ChangesPage>("GET", path);
    return changes.flatMap(({ event, claim }) =>
      claim === undefined ? [] : [[event, claim.bucket !== undefined]],
    );
  };
  expect(await changed()).toEqual([
    ["claimed", true],
    ["released", true],
    ["claimed", true],
  ]);
  const erase = (dryRun: boolean): Promise<unknown> =>
    call("POST", "/v1/admin/history/erase", { bucket, reason, dry_run: dryRun });
  expect(await erase(true)).toMatchObject({ changes: 2 });
  expect(await erase(false)).toMatchObject({ changes: 2 });
  expect(await changed()).toEqual([
    ["claimed", false],
    ["released", false],
    ["claimed", true],
  ]);
  await coordinator.close();
});

test("[G8] a plan of a transfer that was begun before a growth does not go on after it", async () => {
  // Each message counts one claim, and a request sends about 200 of them.
  const variables = { LEASEHOLD_SCAN_ROWS: "1" };
  const coordinator = await startTestCoordinator({ cells: ["1", "2"], shards: 1, variables });
  const call = callsOf(coordinator);
  const creates = [...Array(250).keys()].map((each) => ({
    bucket: bucketOf(`moved-${each}`),
    subject: { type: "NAMESPACE", id: String(each) },
    source: { type: "RAILS_TABLE_ROUTES", id: String(each) },
    scope: "9970",
  }));
  await commit(call, { creates });
  await coordinator.advance(1_000);
  const path = "/v1/transfer-plan";
  const move = { from: "1", to: "2", scope: "9970" };
  interface Planned {
    plan: { claims_total: number; cursor: string | null };
  }
  const before = (await call<Planned>("POST", path, move)).plan;
  expect(before.claims_total).toBeLessThan(250);
  await grow(call, 2);
  const answer = await coordinator.fetch(`${coordinator.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${coordinator.keys.operator}`, "content-type": "application/json" },
    body: JSON.stringify({ ...move, cursor: before.cursor }),
  });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ code: "INVALID_ARGUMENT", field: "cursor" });
  let total = 0;
  for (let cursor: string | null | undefined; cursor !== null;) {
    const { plan } = await call<Planned>("POST", path, { ...move, cursor });
    total += plan.claims_total;
    ({ cursor } = plan);
  }
  expect(total).toBe(250);
  await coordinator.close();
});

describe("[G9] [F6] a name that moved between two shards that a consumer has not read", () => {
  // From shard 1 to shard 2 with the last growth. Shard 1 has much more to tell.
  const name = NAMES.find((each) => shardWith(2, each) === 1 && shardWith(3, each) === 2) ?? "";
  const others = NAMES.filter((each) => shardWith(3, each) === 1).slice(0, 8);

  test.each([
    { from: "before two growths", sizes: [1, 2, 3], after: (checkpoint: string) => checkpoint },
    { from: "at the first change", sizes: [2, 3], after: () => "0:0" },
  ])("has its changes in order if the consumer starts $from", async ({ sizes, after }) => {
    const coordinator = await startTestCoordinator({ cells: ["1"], shards: sizes[0] ?? 1 });
    const call = callsOf(coordinator);
    const { checkpoint } = await call<ChangesPage>("GET", "/v1/changes");
    for (const size of sizes.slice(1, -1)) await grow(call, size);
    for (const [index, other] of others.entries()) await commit(call, createOf(other, String(index + 2)));
    await commit(call, createOf(name, "1"));
    await coordinator.advance(1_000);
    await grow(call, sizes.at(-1) ?? 1);
    await commit(call, { destroys: [{ bucket: bucketOf(name) }] });
    await coordinator.advance(1_000);

    const told: string[] = [];
    let page: ChangesPage = { changes: [], checkpoint: after(checkpoint), has_more: true };
    while (page.has_more) {
      page = await call("GET", `/v1/changes?page_size=3&after=${encodeURIComponent(page.checkpoint)}`);
      for (const { event, shard, claim } of page.changes)
        if (claim?.bucket?.value === name) told.push(`${event} on shard ${shard}`);
    }
    expect(told).toEqual(["claimed on shard 1", "released on shard 2"]);
    await coordinator.close();
  });
});
