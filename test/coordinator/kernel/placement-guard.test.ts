/** Tests of the first use of an object and of later uses (P1, M2). */
import { expect, test } from "vitest";
import type { Confirmed } from "../../../src/coordinator/kernel/directory/messages.ts";
import { refused } from "../../../src/coordinator/kernel/refusal.ts";
import { placementOf } from "../../../src/coordinator/kernel/placement.ts";
import { Cluster } from "../../support/cluster.ts";

const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const ping = (c: Cluster) => c.clock.runUntil(c.shard(0).object.ping(c.envelope));

test("[P1] an object asks the directory once and stores the answer for later instances", async () => {
  const c = await Cluster.start();
  expect(await ping(c)).toMatchObject({ ok: true });
  c.fate = () => "lose";
  c.shard(0).restart();
  expect(await ping(c)).toMatchObject({ ok: true });
  expect(c.messages("confirm")).toHaveLength(1);
  const { placement } = c.envelope;
  const other = { ...c.envelope, placement: placementOf(3) };
  expect(await c.clock.runUntil(c.shard(0).object.ping(other))).toEqual(
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement }),
  );
});

test("[P1] [M2] a first use without the directory is unavailable, and the next message retries", async () => {
  const c = await Cluster.start();
  c.fate = (call) => (call.method === "confirm" ? "lose" : "deliver");
  expect(await ping(c)).toEqual(no("UNAVAILABLE"));
  expect(
    await c.clock.runUntil(c.shard(0).object.ping({ ...c.envelope, placement: placementOf(5) })),
  ).toEqual(no("UNAVAILABLE"));
  c.fate = () => "deliver";
  expect(await ping(c)).toMatchObject({ ok: true });
});

test("[P1] of two first messages with different placements, only the confirmed one is served", async () => {
  const c = await Cluster.start();
  const other = { ...c.envelope, placement: placementOf(5) };
  const both = [c.shard(0).object.ping(other), c.shard(0).object.ping(c.envelope)];
  expect(await c.clock.runUntil(Promise.all(both))).toMatchObject([
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
    { ok: true },
  ]);
  c.shard(0).restart();
  expect(await ping(c)).toMatchObject({ ok: true });
});

test("[P1] [M1] the placement that was confirmed first stays, whatever the directory says", async () => {
  const c = await Cluster.start();
  const other = { ...c.envelope, placement: placementOf(5) };
  // A directory that lost its data confirms any placement, so the copies in the objects must not change.
  c.directory.object.confirm = async ({ placement }) => ({
    ok: true,
    value: { placement } as Confirmed,
  });
  const both = [c.shard(0).object.ping(c.envelope), c.shard(0).object.ping(other)];
  expect(await c.clock.runUntil(Promise.all(both))).toMatchObject([
    { ok: true },
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
  ]);
  c.shard(0).restart();
  expect(await ping(c)).toMatchObject({ ok: true });
});

/** From now on, the directory has this number of shards. */
function changeDirectory(c: Cluster, shards: number): void {
  const placement = placementOf(shards);
  c.directory.object.confirm = async () => ({ ok: true, value: { placement } as Confirmed });
}

test("[G3] messages with a newer placement share one question to the directory", async () => {
  const c = await Cluster.start();
  const status = (placement: string) => c.ledger("1").object.status({ ...c.envelope, placement });
  expect(await c.clock.runUntil(status(placementOf(4)))).toMatchObject({ ok: true });
  changeDirectory(c, 6);
  c.calls.length = 0;
  const calls = Promise.all(Array.from({ length: 5 }, () => status(placementOf(6))));
  expect((await c.clock.runUntil(calls)).map(({ ok }) => ok)).toEqual(Array(5).fill(true));
  expect(c.messages("confirm")).toHaveLength(1);
  c.ledger("1").restart();
  expect(await c.clock.runUntil(status(placementOf(4)))).toEqual(
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement: placementOf(6) }),
  );
});

test("[G3] an object keeps its placement unless the directory has a newer one", async () => {
  const c = await Cluster.start();
  expect(await ping(c)).toMatchObject({ ok: true });
  const { placement } = c.envelope;
  const wrong = { ...c.envelope, placement: placementOf(5) };
  const mismatch = no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement });
  expect(await c.clock.runUntil(c.shard(0).object.ping(wrong))).toEqual(mismatch);
  expect(await c.clock.runUntil(c.ledger("1").object.status(wrong))).toEqual(mismatch);
  c.fate = (call) => (call.method === "confirm" ? "lose" : "deliver");
  expect(await c.clock.runUntil(c.shard(0).object.ping(wrong))).toEqual(no("UNAVAILABLE"));
  expect(await ping(c)).toMatchObject({ ok: true });
});

test("[P2] an object that has a placement says so, although the directory has none any more", async () => {
  const c = await Cluster.start();
  expect(await ping(c)).toMatchObject({ ok: true });
  const { placement } = c.envelope;
  c.directory.object.confirm = async () => refused("UNAVAILABLE", "no cell", { reason: "NO_CELLS" });
  expect(
    await c.clock.runUntil(c.shard(0).object.ping({ ...c.envelope, placement: placementOf(5) })),
  ).toEqual(no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement }));
});
