/** Tests of the first use of an object and of later uses (P1, M2). */
import { expect, test } from "vitest";
import { placementOf } from "../../src/core/placement.ts";
import { Cluster } from "../support/cluster.ts";

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
  const other = { ...c.envelope, placement: placementOf(5) };
  expect(await c.clock.runUntil(c.shard(0).object.ping(other))).toEqual(
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
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
    { ok: true, value: { auditEntries: 0 } },
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
    value: { placement, growth: null },
  });
  const both = [c.shard(0).object.ping(c.envelope), c.shard(0).object.ping(other)];
  expect(await c.clock.runUntil(Promise.all(both))).toMatchObject([
    { ok: true, value: { auditEntries: 0 } },
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
  ]);
  c.shard(0).restart();
  expect(await ping(c)).toMatchObject({ ok: true });
});

test("[M5] [P1] a first message with an unknown version asks no object and stores nothing", async () => {
  const c = await Cluster.start();
  const unknown = { version: c.envelope.version + 1, placement: placementOf(5) };
  expect(await c.clock.runUntil(c.shard(0).object.ping(unknown))).toEqual(
    no("UNAVAILABLE", { reason: "MESSAGE_VERSION" }),
  );
  expect(c.messages("confirm")).toEqual([]);
  expect(await ping(c)).toMatchObject({ ok: true });
});
