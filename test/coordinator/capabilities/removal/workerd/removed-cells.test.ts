/** Tests of the Worker with a cell that was removed (X5), where parts fail or go back in time. */
import { runInDurableObject } from "cloudflare:test";
import { v4 as newUuid } from "uuid";
import { beforeEach, expect, test } from "vitest";
import { refused } from "../../../../../src/coordinator/kernel/refusal.ts";
import { claim, freshName } from "../../../../suites/conformance/leases.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { watchedNamespace } from "../../../../support/workerd/counting.ts";
import { restartObjects } from "../../../../support/workerd/restart.ts";
import { stubsOf } from "../../../../support/workerd/stubs.ts";

let api: Api;

beforeEach(async () => {
  api = await startDeployment("1", "2");
});

const reason = "its hardware is lost";
const removal = "/v1/admin/cells/1/removal";
const step = (using = api) => using.send("POST", `${removal}/steps`, { body: { reason } });
const isRemoved = { code: "PERMISSION_DENIED", reason: "CELL_REMOVED" };

interface Removal {
  state: string;
  removed_at: string | null;
}

const show = async (): Promise<Removal> =>
  (await api.json<{ removal: Removal }>(200, "GET", removal, {})).removal;

async function approveRemoval(): Promise<void> {
  await api.json(200, "POST", "/v1/admin/cells/1/drain", {});
  await api.json(200, "POST", removal, { body: { export: [] } });
}

test("[X5] a step whose message to the directory is lost fails, and the next one tells it", async () => {
  await approveRemoval();
  const lost = (call: string): unknown =>
    call === "DIRECTORY.removeCell" ? Promise.resolve(refused("UNAVAILABLE", "it is down")) : undefined;
  const cut = new Api({ DIRECTORY: watchedNamespace("DIRECTORY", env.DIRECTORY, lost) });
  const failed = await cut.problem(503, "POST", `${removal}/steps`, { body: { reason } });
  expect(failed).toMatchObject({ code: "UNAVAILABLE", retryable: true });
  expect(failed.detail).toContain("Cell 1 is removed, but");
  expect(await show()).toMatchObject({ state: "REMOVED", removed_at: null });
  expect((await step()).status).toBe(200);
  const { removed_at: removedAt } = await show();
  expect(removedAt).not.toBeNull();
  expect((await step()).status).toBe(200);
  expect(await show()).toMatchObject({ removed_at: removedAt });
});

test("[X5] a key is refused although the ledger has lost the removal, where the copy has it", async () => {
  await approveRemoval();
  await step();
  await runInDurableObject(stubsOf(env).ledger("1"), (_, state) => {
    state.storage.sql.exec("DELETE FROM meta WHERE name IN ('cell_state', 'removal')");
  });
  await restartObjects(env, "1", "2");
  const lease = () => `/v1/cells/1/leases/${newUuid()}`;
  const create = { key: "cell 1", body: { creates: [claim(freshName())] } } as const;
  // Any call that needs the directory reads the copy.
  await api.json(200, "GET", "/v1/cells/2/leases", {});
  expect(await api.problem(403, "PUT", lease(), create)).toMatchObject(isRemoved);
  expect(await api.problem(403, "GET", "/v1/cells/1/leases", { key: "cell 1" })).toMatchObject(isRemoved);
});

/** Makes a name whose cell only the directory has as removed. */
async function nameOfRemovedCell(): Promise<string> {
  const name = freshName();
  const lease = `/v1/cells/1/leases/${newUuid()}`;
  await api.json(201, "PUT", lease, { key: "cell 1", body: { creates: [claim(name)] } });
  await api.json(200, "POST", `${lease}/commit`, { key: "cell 1" });
  await runInDurableObject(stubsOf(env).directory(), (_, state) => {
    state.storage.sql.exec("UPDATE cell SET removed_at_ms = 1 WHERE cell = '1'");
  });
  return name;
}

const SHARDS = 4;

test("[H6] [X4] a shard that has names of a removed cell again is not taken back into service", async () => {
  await nameOfRemovedCell();
  await restartObjects(env, "1", "2");
  const answers = [];
  for (const shard of Array.from({ length: SHARDS }, (_, index) => `/v1/admin/parts/shard-${index}`)) {
    const body = { dry_run: false, declare_lost: true, reason };
    await api.json(200, "POST", `${shard}/reconcile`, { body });
    answers.push(await api.send("POST", `${shard}/finish`, { body: { reason } }));
  }
  const others = answers.filter(({ status }) => status !== 409);
  expect(others.map(({ status }) => status)).toEqual(Array(SHARDS - 1).fill(200));
  const owner = answers.find(({ status }) => status === 409);
  expect(owner?.json).toMatchObject({ detail: expect.stringContaining("names of cell 1 again") });
});

test("[X5] [Q8] a name that a shard still has for a removed cell is unavailable, not absent", async () => {
  const name = await nameOfRemovedCell();
  let readings = 0;
  const count = (call: string): void => void (readings += Number(call === "DIRECTORY.snapshot"));
  const router = new Api({ DIRECTORY: watchedNamespace("DIRECTORY", env.DIRECTORY, count) });
  for (let calls = 0; calls < 3; calls += 1)
    expect(await router.problem(503, "GET", `/v1/route/ROUTES/${name}`, { key: "router" })).toMatchObject({
      code: "UNAVAILABLE",
    });
  // A copy that has the removal is not read again for each of these lookups.
  expect(readings).toBe(1);
  const { results } = await router.json<{ results: object[] }>(200, "POST", "/v1/route", {
    key: "router",
    body: {
      names: [
        { type: "ROUTES", value: name },
        { type: "ROUTES", value: freshName() },
      ],
    },
  });
  expect(results).toMatchObject([{ unavailable: { code: "UNAVAILABLE" } }, { found: false }]);
});
