/** The examples of docs/guides/testing-your-cell.md. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createClient, type Client } from "../../../src/users/client/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";

let coordinator: TestCoordinator;

beforeEach(async () => {
  coordinator = await startTestCoordinator({ cells: ["1", "2"] });
});

afterEach(() => coordinator.close());

const clientOf = (cell: string): Client =>
  createClient({
    url: coordinator.url,
    key: coordinator.keys.cell(cell),
    cell,
    fetch: coordinator.fetch,
    backoffMs: 1,
  });

const create = {
  bucket: { type: "USERNAMES", value: "ada" },
  subject: { type: "USER", id: "7" },
  source: { type: "RAILS_TABLE_USERS", id: "7" },
} as const;

test("a name that another cell has is refused", async () => {
  const lease = await clientOf("1").leases.begin({ creates: [create] });
  await clientOf("1").leases.commit(lease.uuid);
  await expect(clientOf("2").leases.begin({ creates: [create] })).rejects.toMatchObject({
    code: "ALREADY_EXISTS",
  });
});

test("a begin whose answer is lost is repeated, and leaves one lease", async () => {
  coordinator.faults.next({ kind: "lose_answer" }, { operation: "begin" });
  const { uuid } = await clientOf("1").leases.begin({ creates: [create] });
  const begins = coordinator.faults.calls.filter(({ operation }) => operation === "begin");
  expect(begins.map(({ status }) => status)).toEqual([null, 200]);
  expect(begins.every((call) => call.uuid === uuid)).toBe(true);
});
