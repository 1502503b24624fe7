/** Tests of the state of a cell (A2, C6). */
import { expect, test } from "vitest";
import { begin as send, no, ok } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";

const begin = (...call: Parameters<typeof send>) => call[0].clock.runUntil(send(...call));

async function status(c: Cluster) {
  const answer = await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

test("[C6] a begin of a frozen cell asks no shard", async () => {
  const c = await Cluster.start({ shards: 1 });
  await begin(c, "1", c.uuid(), ["warm-up"]);
  await c.clock.runUntil(c.ledger("1").object.setState({ ...c.envelope, state: "FROZEN", stateVersion: 0 }));
  const sent = c.messages("exchange").length;
  expect(await begin(c, "1", c.uuid(), ["free"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
  );
  expect(c.messages("exchange")).toHaveLength(sent);
});

test("[C6] [B2] an unfrozen cell begins again; replays were answered all the time", async () => {
  const c = await Cluster.start({ shards: 1 });
  const { object } = c.ledger("1");
  const lease = c.uuid();
  await begin(c, "1", lease, ["ada"]);
  await c.clock.runUntil(object.setState({ ...c.envelope, state: "FROZEN", stateVersion: 0 }));
  expect(await status(c)).toMatchObject({ state: "FROZEN" });
  expect(await begin(c, "1", lease, ["ada"])).toEqual(ok({ created: false }));
  expect(await begin(c, "1", c.uuid(), ["bob"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
  );
  const refused = { result: "refused", reason: "CELL_FROZEN", count: 1 };
  expect(await c.clock.runUntil(object.metrics(c.envelope))).toMatchObject({
    value: { cellState: "FROZEN", begins: expect.arrayContaining([refused]) as unknown },
  });
  await c.clock.runUntil(object.setState({ ...c.envelope, state: "ACTIVE", stateVersion: 1 }));
  expect(await begin(c, "1", c.uuid(), ["bob"])).toEqual(ok({ created: true }));
});

test("the time of the cell's state grows with every change, even if the clock was set back", async () => {
  const c = await Cluster.start({ shards: 1 });
  const { object } = c.ledger("1");
  expect(await status(c)).toMatchObject({ stateSetAtMs: 0 });
  const times: number[] = [];
  for (const [stateVersion, state] of (["FROZEN", "ACTIVE", "ACTIVE"] as const).entries()) {
    await c.clock.runUntil(object.setState({ ...c.envelope, state, stateVersion }));
    times.push((await status(c)).stateSetAtMs);
    c.clock.jump(-60_000);
  }
  const [first = 0] = times;
  expect(first).toBeGreaterThan(1_700_000_000_000);
  expect(times).toEqual([first, first + 1, first + 2]);
  c.ledger("1").restart();
  expect(await status(c)).toMatchObject({ stateSetAtMs: first + 2 });
});
