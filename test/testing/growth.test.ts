/** A deployment gets more shards by calls of its API. */
import { v4 as newUuid } from "uuid";
import { expect, test } from "vitest";
import { shardOf } from "../../src/core/placement.ts";
import { startTestCoordinator, type TestCoordinator } from "../../src/testing/index.ts";
import { keyOf } from "../support/ops.ts";

const reason = "a test";

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

test("[K5] [G9] an erasure reaches the shards that had the name before", async () => {
  const coordinator = await startTestCoordinator({ cells: ["1"], shards: 1 });
  const call = callsOf(coordinator);
  const name = ["a", "b", "c", "d", "e", "f"].find((each) => {
    const { type, canonical } = keyOf("ROUTES", `name-${each}`);
    return shardOf(type, canonical, 2) === 1;
  });
  const bucket = { type: "ROUTES", value: `name-${name}` };
  const commit = async (ops: object): Promise<void> => {
    const lease = `/v1/cells/1/leases/${newUuid()}`;
    await call("PUT", lease, ops);
    await call("POST", `${lease}/commit`);
  };
  const create = (id: string): object => ({
    creates: [{ bucket, subject: { type: "GROUP", id }, source: { type: "RAILS_TABLE_ROUTES", id } }],
  });
  const { checkpoint } = await call<{ checkpoint: string }>("GET", "/v1/changes");
  await commit(create("1"));
  await commit({ destroys: [{ bucket }] });
  await commit(create("2"));
  await coordinator.advance(1_000);

  await call("POST", "/v1/admin/growth", { shards: 2, reason });
  await call("POST", "/v1/admin/growth/steps");
  await call("POST", "/v1/admin/growth/cut", { reason });
  const { growth } = await call<{ growth: unknown }>("POST", "/v1/admin/growth/steps");
  expect(growth).toBeNull();

  const changed = async (): Promise<unknown[]> => {
    const path = `/v1/changes?after=${encodeURIComponent(checkpoint)}`;
    const { changes } = await call<{ changes: { event: string; claim?: { bucket?: object } }[] }>(
      "GET",
      path,
    );
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
