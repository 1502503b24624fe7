/** Tests of what an isolate remembers of the objects and passes on, with real shards in workerd. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { configOf } from "../../../../../src/coordinator/env.ts";
import { objectsOf } from "../../../../../src/coordinator/objects/objects.ts";
import { Witness } from "../../../../../src/coordinator/capabilities/loss/edge/witness.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { stubsOf } from "../../../../support/workerd/stubs.ts";

const LOST = { reason: "HISTORY_LOST", code: "UNAVAILABLE" };

const batch = (name: string) => ({
  creates: [
    {
      bucket: { type: "ROUTES", value: name },
      subject: { type: "NAMESPACE", id: "1" },
      source: { type: "RAILS_TABLE_ROUTES", id: "1" },
    },
  ],
});

const begin = (cell: string, name: string) =>
  ["POST", `/v1/cells/${cell}/leases`, { key: `cell ${cell}`, body: batch(name) }] as const;

async function own(api: Api, cell: string, name: string): Promise<void> {
  const { lease } = await api.json<{ lease: { uuid: string } }>(201, ...begin(cell, name));
  const path = `/v1/cells/${cell}/leases/${lease.uuid}/commit`;
  await api.json(200, "POST", path, { key: `cell ${cell}` });
}

/** Empties every shard while the deployment runs, and ends its instances. */
async function loseShards(): Promise<void> {
  for (let shard = 0; shard < configOf(env).initialShards; shard += 1) {
    const stub = stubsOf(env).shard(shard);
    await runInDurableObject(stub, (_, state) => {
      for (const table of ["claim", "log", "incarnation"]) state.storage.sql.exec(`DELETE FROM ${table}`);
    });
    // An abort would have the same effect, but the runtime writes several lines about each.
    await evictDurableObject(stub);
    // `reset` keeps the storage of objects that are evicted.
    await runInDurableObject(stub, () => {});
  }
}

const path = "/v1/records/ROUTES/late";

test("[H2] an isolate that reads a part forgets nothing that the part has lost", async () => {
  const carried: unknown[] = [];
  const lost = { incarnation: 1, position: 5 };
  const shard = {
    lookup: async ({ seen }: { seen?: unknown }) => {
      carried.push(seen);
      return { ok: true, value: { found: [] }, ...(carried.length === 1 ? { point: lost } : {}) };
    },
    part: async () => ({ ok: true, value: {}, point: { incarnation: 9, position: 1 } }),
  };
  const stubs = { CLAIM_SHARD: { getByName: () => shard } };
  const watched = objectsOf(stubs as never, configOf(env), [new Witness()]).shard(0);
  const envelope = { version: 1, placement: "" } as never;
  await watched.lookup(envelope);
  await watched.part(envelope);
  await watched.part(envelope);
  await watched.lookup(envelope);
  await watched.lookup(envelope);
  expect(carried).toContainEqual(lost);
});

test("[H2] [H4] a lookup learns that a shard went back although no ledger has spoken since", async () => {
  const api = await startDeployment("1", "2");
  await own(api, "1", "late");
  await api.json(200, "GET", path);
  await loseShards();
  expect(await api.problem(503, "GET", path)).toMatchObject(LOST);
});

test("[H2] [H4] a begin tells a shard what the ledger of another cell has seen of it", async () => {
  const api = await startDeployment("1", "2");
  await own(api, "1", "late");
  await loseShards();
  expect(await api.problem(503, ...begin("2", "late"))).toMatchObject(LOST);
  // The shard has stored it, so isolates that know nothing are refused as well.
  expect(await new Api().problem(503, "GET", path)).toMatchObject(LOST);
});

test("[H4] without anybody who knows, the loss is not noticed", async () => {
  const api = await startDeployment("1", "2");
  await own(api, "1", "late");
  await loseShards();
  await new Api().json(201, ...begin("2", "late"));
});
