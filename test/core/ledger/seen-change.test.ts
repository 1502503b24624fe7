/** Tests of how a ledger answers a pull that names a change of it (S1). */
import { expect, test } from "vitest";
import type { LeaseChange, SeenChange } from "../../../src/core/messages.ts";
import { Cluster } from "../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../support/ops.ts";

const RETENTION_S = 100;

async function pull(c: Cluster, seen?: SeenChange): Promise<{ lacksSeen: boolean; changes: LeaseChange[] }> {
  const message = {
    ...c.envelope,
    afterPosition: 0,
    limit: 100,
    ...(seen === undefined ? {} : { pulled: seen }),
  };
  const answer = await c.clock.runUntil(c.ledger("1").object.pull(message));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

/** The latest change, as a puller keeps it. */
async function latest(c: Cluster): Promise<SeenChange> {
  const change = (await pull(c)).changes.at(-1);
  if (change === undefined) throw new Error("the ledger has no change");
  const { lease, position, createdPosition, state } = change;
  return { lease, position, createdPosition, state };
}

async function start(): Promise<{ c: Cluster; lease: string }> {
  const c = await Cluster.start({ shards: 1, limits: { outcomeRetentionS: RETENTION_S } });
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["ada"])));
  return { c, lease };
}

const commit = (c: Cluster, lease: string) =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));

test("[S1] a ledger has a change that was pulled, its later decision included", async () => {
  const { c, lease } = await start();
  const granted = await latest(c);
  expect((await pull(c)).lacksSeen).toBe(false);
  expect((await pull(c, granted)).lacksSeen).toBe(false);
  await commit(c, lease);
  expect((await pull(c, granted)).lacksSeen).toBe(false);
  expect((await pull(c, await latest(c))).lacksSeen).toBe(false);
});

test("[S1] a ledger may have forgotten an outcome that was pulled", async () => {
  const { c, lease } = await start();
  const granted = await latest(c);
  await commit(c, lease);
  const committed = await latest(c);
  await c.pass(10_000);
  c.clock.jump(RETENTION_S * 1_000);
  const message = { ...c.envelope, pulledPosition: committed.position };
  await c.clock.runUntil(c.ledger("1").object.maintain(message));
  expect(await c.clock.runUntil(c.ledger("1").object.maintain(message))).toMatchObject({ ok: true });
  expect((await pull(c)).changes).toEqual([]);
  for (const seen of [granted, committed]) expect((await pull(c, seen)).lacksSeen).toBe(false);
  expect((await pull(c, { ...committed, position: committed.position + 1 })).lacksSeen).toBe(true);
});

test("[S1] a ledger that was set back lacks the change, whatever it did since", async () => {
  const { c, lease } = await start();
  const granted = await latest(c);
  await commit(c, lease);
  const committed = await latest(c);
  // The rows are changed below the ledger, because its peers would notice a ledger that was set back (H4).
  const { database } = c.ledger("1");
  const lacks = async (): Promise<boolean[]> => [
    (await pull(c, granted)).lacksSeen,
    (await pull(c, committed)).lacksSeen,
  ];
  expect(await lacks()).toEqual([false, false]);
  database.exec("UPDATE lease SET decided = 0, state = 'GRANTED', position = created_position");
  expect(await lacks()).toEqual([false, true]);
  // The same decision again has another position.
  database.exec("UPDATE lease SET decided = 1, state = 'COMMITTED', position = created_position + 5000000");
  expect(await lacks()).toEqual([false, true]);
  // The same lease again has another grant.
  database.exec("UPDATE lease SET created_position = created_position + 1000000");
  expect(await lacks()).toEqual([true, true]);
  database.exec("DELETE FROM lease");
  expect(await lacks()).toEqual([true, true]);
});

test("[S1] another state at the same position is a loss", async () => {
  const { c, lease } = await start();
  await commit(c, lease);
  const committed = await latest(c);
  expect((await pull(c, { ...committed, state: "ROLLED_BACK" })).lacksSeen).toBe(true);
});
