/** The client's export from a test coordinator. */
import { afterEach, describe, expect, test } from "vitest";
import { createClient, type Client, type ClaimRecord } from "../../../src/users/client/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";

const PATH = "/v1/cells/1/records/export?source_type=RAILS_TABLE_NAMESPACES";
let coordinator: TestCoordinator;

afterEach(() => coordinator.close());

/** A cell with three names for each of its rows. */
async function started(variables: Record<string, string>, rows = 20, shards = 4): Promise<Client> {
  coordinator = await startTestCoordinator({ variables, shards });
  const { url, keys, fetch } = coordinator;
  // A busy machine takes long for pages of one row.
  const patience = { deadlineMs: 200_000, attemptMs: 200_000 };
  const client = createClient({ url, key: keys.cell("1"), cell: "1", fetch, backoffMs: 1, ...patience });
  const creates = Array.from({ length: rows * 3 }, (_, index) => ({
    bucket: { type: "ROUTES", value: `route-${index}` },
    subject: { type: "NAMESPACE", id: "1" },
    source: { type: "RAILS_TABLE_NAMESPACES", id: String(Math.floor(index / 3)) },
  })) as NonNullable<Parameters<Client["leases"]["begin"]>[0]["creates"]>;
  await client.leases.commit((await client.leases.begin({ creates })).uuid);
  return client;
}

const small = { LEASEHOLD_MAX_PAGE_ITEMS: "5", LEASEHOLD_EXPORT_RECORDS: "14" };
const sourceType = "RAILS_TABLE_NAMESPACES";

const calls = (): number =>
  coordinator.faults.calls.filter(({ path }) => path.includes("/records/export")).length;

describe("an export", () => {
  test.each([{}, small])("has the same records as the listing: %j", async (variables) => {
    const client = await started(variables);
    const exported: ClaimRecord[] = [];
    for await (const record of client.records.export({ sourceType })) exported.push(record);
    expect(exported).toEqual(await client.records.list({ sourceType }).all());
    expect(exported).toHaveLength(60);
    expect(calls()).toBe("LEASEHOLD_EXPORT_RECORDS" in variables ? 4 : 1);
  });

  test.each([{}, { LEASEHOLD_SCAN_ROWS: "8" }])(
    "has all records of a source id that has more than a page or an answer: %j",
    async (variables) => {
      const client = await started({ ...small, ...variables }, 4);
      const creates = Array.from({ length: 40 }, (_, index) => ({
        bucket: { type: "ROUTES", value: `more-${index}` },
        subject: { type: "NAMESPACE", id: "1" },
        source: { type: sourceType, id: "1" },
      })) as NonNullable<Parameters<Client["leases"]["begin"]>[0]["creates"]>;
      await client.leases.commit((await client.leases.begin({ creates })).uuid);
      const exported: ClaimRecord[] = [];
      for await (const record of client.records.export({ sourceType })) exported.push(record);
      expect(new Set(exported.map(({ uuid }) => uuid)).size).toBe(52);
      expect(exported).toHaveLength(52);
      const pages = await Array.fromAsync(client.records.list({ sourceType, pageSize: 5 }).pages());
      expect(pages.flatMap(({ items }) => items)).toEqual(exported);
      expect(pages.some(({ isSplit }) => isSplit)).toBe(true);
    },
  );

  test("moves on although its filter matches nothing", async () => {
    const client = await started({ LEASEHOLD_SCAN_ROWS: "1" }, 300, 200);
    const bucketTypes = ["EMAILS"] as const;
    expect(await Array.fromAsync(client.records.export({ sourceType, bucketTypes }))).toEqual([]);
    expect(calls()).toBeGreaterThan(1);
    expect(await client.records.list({ sourceType, bucketTypes }).all()).toEqual([]);
  });

  test("survives restarts and lost calls", async () => {
    const client = await started(small);
    const values: string[] = [];
    for await (const { bucket } of client.records.export({ sourceType })) {
      values.push(bucket.value);
      if (values.length % 10 === 0) {
        coordinator.faults.next({ kind: "lose_answer" }, { operation: "records" });
        await coordinator.restart();
      }
    }
    expect(new Set(values).size).toBe(60);
    expect(values).toHaveLength(60);
  });

  test("ends with its coordinator", async () => {
    const client = await started(small);
    const reading = (async () => {
      for await (const _ of client.records.export({ sourceType })) await coordinator.close();
    })();
    await expect(reading).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("the body of an answer", () => {
  const opened = async (signal?: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array>> => {
    const { url, keys, fetch } = coordinator;
    const headers = { authorization: `Bearer ${keys.cell("1")}` };
    const { body } = await fetch(url + PATH, { headers, ...(signal === undefined ? {} : { signal }) });
    if (body === null) throw new Error("an answer without a body");
    return body.getReader();
  };

  test("ends with the signal of its call", async () => {
    await started(small);
    const controller = new AbortController();
    const why = new Error("the user left");
    const reader = await opened(controller.signal);
    expect((await reader.read()).done).toBe(false);
    controller.abort(why);
    await expect(reader.read()).rejects.toBe(why);
  });

  test("ends when the coordinator is closed", async () => {
    await started(small);
    const reader = await opened();
    await reader.read();
    await coordinator.close();
    await expect(reader.read()).rejects.toThrow("fetch failed");
  });
});
