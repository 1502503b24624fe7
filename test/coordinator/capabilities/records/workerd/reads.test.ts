/** The limit on reads of a cell, as its ledger enforces it for all isolates. */
import { beforeEach, expect, test } from "vitest";
import { defaultLimits } from "../../../../../src/common/limits.ts";
import type { Env } from "../../../../../src/coordinator/env.ts";
import type { LedgerCalls } from "../../../../../src/coordinator/kernel/methods.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { watchedNamespace } from "../../../../support/workerd/counting.ts";

const RECORDS = "/v1/cells/1/records?source_type=RAILS_TABLE_NAMESPACES";
const { concurrentReads, concurrentReadsPerKey } = defaultLimits;

beforeEach(async () => void (await startDeployment("1")));

/** An isolate whose messages to shards wait until `open` is called. */
function gated(): { api: Api; waiting: () => number; open: () => void } {
  let waiting = 0;
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (call) => {
    if (call !== "CLAIM_SHARD.listRecords") return undefined;
    waiting += 1;
    return opened.then(() => ({ ok: true, value: { records: [], next: null } }));
  });
  const slow = { LEASEHOLD_EXCHANGE_TIMEOUT_MS: "30000", LEASEHOLD_SHARDS: "4" };
  return { api: new Api({ CLAIM_SHARD, ...slow }), waiting: () => waiting, open };
}

const reading = (api: Api, count: number, key: "cell 1" | "operator") =>
  Array.from({ length: count }, () => api.send("GET", RECORDS, { key }));

test("counts all isolates together, per key and per cell, until the reads have ended", async () => {
  const [one, two, free] = [gated(), gated(), new Api()];
  const half = concurrentReadsPerKey / 2;
  const ofKey = [...reading(one.api, half, "cell 1"), ...reading(two.api, half, "cell 1")];
  await expect.poll(() => one.waiting() + two.waiting()).toBe(4 * concurrentReadsPerKey);

  const digests = { source_type: "RAILS_TABLE_NAMESPACES", ranges: [{}] };
  for (const [method, path, body] of [
    ["GET", RECORDS, undefined],
    ["GET", RECORDS.replace("records?", "records/export?"), undefined],
    ["POST", "/v1/cells/1/records/digests", digests],
    ["GET", "/v1/cells/1/leases", undefined],
  ] as const) {
    const refused = await free.problem(429, method, path, { key: "cell 1", body });
    expect(refused).toMatchObject({ code: "RESOURCE_EXHAUSTED", reason: "TOO_MANY_READS", retryable: true });
    expect(refused.detail).toContain("concurrent_reads_per_key");
    await free.json(200, method, path, { key: "operator", body });
  }

  const ofCell = reading(one.api, concurrentReads - concurrentReadsPerKey, "operator");
  await expect.poll(() => one.waiting() + two.waiting()).toBe(4 * concurrentReads);
  const refused = await free.problem(429, "GET", RECORDS, { key: "operator" });
  expect(refused.detail).toContain("`concurrent_reads`");
  // What is no listing goes on.
  await free.problem(404, "GET", "/v1/cells/1/leases/0191e1a0-0000-7000-8000-000000000001", {
    key: "cell 1",
  });

  one.open();
  two.open();
  for (const { status } of await Promise.all([...ofKey, ...ofCell])) expect(status).toBe(200);
  // The answers don't wait until the ledger knows that the reads have ended.
  await expect.poll(async () => (await free.send("GET", RECORDS, { key: "cell 1" })).status).toBe(200);
});

test("reads that fail, or whose first answer is lost, don't count any longer", async () => {
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (call) =>
    call === "CLAIM_SHARD.listRecords" ? Promise.reject(new Error("lost")) : undefined,
  );
  const CELL_LEDGER: Pick<Env["CELL_LEDGER"], "getByName"> = {
    getByName: (name) => {
      const ledger = env.CELL_LEDGER.getByName(name);
      return {
        authorize: async (message) => {
          await ledger.authorize(message);
          throw new Error("lost");
        },
        endRead: (message) => ledger.endRead(message),
      } satisfies Partial<LedgerCalls> as unknown as LedgerCalls;
    },
  };
  for (const api of [new Api({ CLAIM_SHARD }), new Api({ CELL_LEDGER })]) {
    const statuses = new Set<number>();
    for (let read = 0; read < 3 * concurrentReadsPerKey; read += 1)
      statuses.add((await api.send("GET", RECORDS, { key: "cell 1" })).status);
    // A read may begin before the ledger knows that the previous one has ended, but they don't pile up.
    expect([...statuses]).toEqual([503]);
  }
  await expect.poll(async () => (await new Api().send("GET", RECORDS, { key: "cell 1" })).status).toBe(200);
});
