/** Fencing tokens against a coordinator, and a resource that two cells share in a real PostgreSQL. */
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import {
  createClient,
  fencedWrite,
  type Bucket,
  type Client,
  type FencingToken,
} from "../../../src/users/client/index.ts";
import { startTestCoordinator } from "../../../src/users/testing/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";

const bucket: Bucket = { type: "ROUTES", value: "acme" };
const subject = { type: "NAMESPACE", id: "1" } as const;
const source = { type: "RAILS_TABLE_ROUTES", id: "1" } as const;

async function startCells(): Promise<[Client, Client]> {
  const coordinator = await startTestCoordinator();
  onTestFinished(() => coordinator.close());
  const { url, fetch, keys } = coordinator;
  const clientOf = (cell: string): Client => createClient({ url, fetch, key: keys.cell(cell), cell });
  return [clientOf("1"), clientOf("2")];
}

const commit = async ({ leases }: Client, batch: Parameters<Client["leases"]["begin"]>[0]): Promise<void> => {
  const { uuid } = await leases.begin(batch);
  await leases.commit(uuid);
};
const take = (client: Client): Promise<void> => commit(client, { creates: [{ bucket, subject, source }] });
const giveUp = (client: Client): Promise<void> => commit(client, { destroys: [{ bucket }] });
const tokenOf = ({ records }: Client): Promise<FencingToken> => records.fencingToken(bucket);

describe("[E1] a fencing token", () => {
  test("is larger for each later owner, and for each later version of the claim", async () => {
    const [one, two] = await startCells();
    await take(one);
    const first = await tokenOf(one);
    expect(await tokenOf(one)).toEqual(first);
    await commit(one, { replaces: [{ bucket, subject: { type: "NAMESPACE", id: "2" }, source }] });
    const replaced = await tokenOf(one);
    await giveUp(one);
    await take(two);
    const second = await tokenOf(two);
    expect(replaced.epoch).toBeGreaterThan(first.epoch);
    expect(second.epoch).toBeGreaterThan(replaced.epoch);
  });

  test("is only for the cell that has the name, once it is committed", async () => {
    const [one, two] = await startCells();
    await expect(tokenOf(one)).rejects.toMatchObject({ name: "NotFoundError" });
    const { uuid } = await one.leases.begin({ creates: [{ bucket, subject, source }] });
    await expect(tokenOf(one)).rejects.toMatchObject({ name: "NotFoundError" });
    await expect(tokenOf(two)).rejects.toMatchObject({ name: "NotFoundError" });
    await one.leases.commit(uuid);
    expect(await tokenOf(one)).toMatchObject({ bucket });
    await expect(tokenOf(two)).rejects.toMatchObject({ name: "NotOwnerError" });
  });
});

test.each([undefined, -1, 0.5, "1"])("a write that returns %s is an error", async (rows) => {
  const write = async () => rows as unknown as number;
  await expect(fencedWrite({ bucket, epoch: 1 }, write)).rejects.toThrow(TypeError);
});

describe.skipIf(isSkipped("PostgreSQL"))("a resource in PostgreSQL", () => {
  let server: DatabaseServer;
  let shared: Pool;

  beforeAll(async () => {
    server = await startPostgres();
    shared = new Pool({ connectionString: server.url() });
    await shared.query(
      "CREATE TABLE site (name text PRIMARY KEY, body text NOT NULL, epoch bigint NOT NULL)",
    );
  });
  beforeEach(async () => {
    await shared.query("TRUNCATE site");
    await shared.query("INSERT INTO site VALUES ('acme', '', 0)");
  });
  afterAll(async () => {
    await shared.end();
    await server.stop();
  });

  const write = (token: FencingToken, body: string): Promise<number> =>
    fencedWrite(token, async (epoch) => {
      const update = "UPDATE site SET body = $1, epoch = $2 WHERE name = $3 AND epoch <= $2";
      return (await shared.query(update, [body, epoch, bucket.value])).rowCount ?? 0;
    });
  const body = async (): Promise<unknown> => (await shared.query("SELECT body FROM site")).rows[0]?.body;

  test("[E1] the late write of an earlier owner changes nothing, and says so", async () => {
    const [one, two] = await startCells();
    await take(one);
    const late = await tokenOf(one);
    await write(late, "one");
    await giveUp(one);
    await take(two);
    await write(await tokenOf(two), "two");
    await expect(write(late, "late")).rejects.toMatchObject({
      name: "StaleEpochError",
      code: "FAILED_PRECONDITION",
      outcomeKnown: true,
    });
    expect(await body()).toBe("two");
  });

  test("[E1] of writes at the same time, the one of the latest owner remains", async () => {
    const [one, two] = await startCells();
    await take(one);
    const early = await tokenOf(one);
    await giveUp(one);
    await take(two);
    const latest = await tokenOf(two);
    for (let round = 0; round < 20; round += 1) {
      const writes = await Promise.allSettled([
        ...Array.from({ length: 4 }, () => write(early, "one")),
        write(latest, `two ${round}`),
        ...Array.from({ length: 4 }, () => write(early, "one")),
      ]);
      expect(writes[4]?.status).toBe("fulfilled");
      expect(await body()).toBe(`two ${round}`);
    }
  });
});
