/** Tests of ledger guards that ordinary work seldom reaches. */
import { expect, test } from "vitest";
import { encodePayload } from "../../../../src/coordinator/kernel/ledger/payload.ts";
import type { Limits } from "../../../../src/common/limits.ts";
import type { BeginRequest, Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster, type Call } from "../../../support/cluster.ts";
import { insertLeases, unfinished } from "../../../support/leases.ts";
import { beginRequest, callerOf, decideRequest, opsOf } from "../../../support/ops.ts";

const ok = (value: unknown): object => ({
  ok: true,
  value: expect.objectContaining(value as object) as unknown,
});
const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const start = (limits: Partial<Limits> = {}): Promise<Cluster> => Cluster.start({ shards: 1, limits });
const begin = (c: Cluster, lease: string, names: string[], more: Partial<BeginRequest> = {}) =>
  c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, names, more)));
const decide = (c: Cluster, lease: string, outcome: "COMMITTED" | "ROLLED_BACK") =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, outcome)));
const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;

async function status(c: Cluster) {
  const answer = await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

test("[M6] a batch is refused when its stored form exceeds the limit by one byte", async () => {
  const names = ["straße"];
  const bytes = new TextEncoder().encode(
    encodePayload(opsOf((await start()).envelope.placement, names)),
  ).length;
  const exact = await start({ leaseBytes: bytes });
  expect(await begin(exact, exact.uuid(), names)).toEqual(ok({ created: true }));
  const small = await start({ leaseBytes: bytes - 1 });
  expect(await begin(small, small.uuid(), names)).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "LEASE_TOO_LARGE" }),
  );
  expect(small.messages("exchange")).toEqual([]);
});

test("[M6] the payloads of all running begins are limited together", async () => {
  const names = (n: number): string[] => [`name-${n}`];
  const bytes = encodePayload(opsOf((await start()).envelope.placement, names(0))).length;
  const c = await start({ beginBytes: 2 * bytes });
  for (let round = 0; round < 2; round += 1) {
    const answers = await Promise.all([0, 1, 2].map((n) => begin(c, c.uuid(), names(n))));
    expect(answers.map((answer) => (answer.ok ? "ok" : answer.refusal.reason))).toEqual([
      "ok",
      "ok",
      "TOO_MANY_BEGINS",
    ]);
    for (const { lease } of c.holds()) await decide(c, lease, "ROLLED_BACK");
  }
});

test("[M6] granted leases and running begins count together toward the limit", async () => {
  const c = await start({ outstandingLeases: 2 });
  const answers = await Promise.all(["a", "b", "c"].map((name) => begin(c, c.uuid(), [name])));
  expect(answers.map((answer) => (answer.ok ? "ok" : answer.refusal.reason))).toEqual([
    "ok",
    "ok",
    "TOO_MANY_LEASES",
  ]);
  expect(await status(c)).toMatchObject({ outstandingLeases: 2 });
  const [held] = c.holds();
  await decide(c, held?.lease ?? "", "COMMITTED");
  await decide(c, held?.lease ?? "", "COMMITTED");
  // A rollback of a lease that was never begun frees no room.
  await decide(c, c.uuid(), "ROLLED_BACK");
  expect(await status(c)).toMatchObject({ outstandingLeases: 1, state: "ACTIVE", cell: "1" });
  expect(await begin(c, c.uuid(), ["d"])).toEqual(ok({ created: true }));
  expect(await begin(c, c.uuid(), ["e"])).toEqual(no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_LEASES" }));
});

test("[C7] [M6] the fence of a running begin does not count toward the limit of fences", async () => {
  const c = await start({ fences: 1 });
  expect(await decide(c, c.uuid(), "ROLLED_BACK")).toEqual(ok({ state: "ROLLED_BACK" }));
  c.fate = (call) => (call.method === "exchange" ? "slow" : "deliver");
  const lease = c.uuid();
  const running = begin(c, lease, ["ada"]);
  await c.clock.turn();
  expect(await decide(c, lease, "ROLLED_BACK")).toEqual(ok({ state: "ROLLED_BACK" }));
  expect(await running).toEqual(no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }));
  expect(await decide(c, c.uuid(), "ROLLED_BACK")).toEqual(
    no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_FENCES" }),
  );
});

test("a lease is shown with its age, outcome and reason, and its ops only while granted", async () => {
  const c = await start();
  const lease = c.uuid();
  const createdAtMs = c.clock.now();
  await begin(c, lease, ["Ada"]);
  c.clock.jump(5_000);
  const get = (id: string) =>
    c.clock.runUntil(c.ledger("1").object.getLease({ ...c.envelope, caller: callerOf(), lease: id }));
  const granted = await get(lease);
  expect(granted).toMatchObject({
    value: { state: "GRANTED", createdAtMs, ageMs: 5_000, ops: [{ value: "Ada" }] },
  });
  for (const absent of ["decidedAtMs", "decidedBy", "reason"])
    expect(granted.ok && granted.value).not.toHaveProperty(absent);
  const operator = { role: "operator", keyId: "o", expiresAtMs: Number.MAX_SAFE_INTEGER } as const;
  await c.clock.runUntil(
    c
      .ledger("1")
      .object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK", { caller: operator, reason: "lost" })),
  );
  const decided = await get(lease);
  expect(decided).toMatchObject({
    value: {
      state: "ROLLED_BACK",
      createdAtMs,
      decidedAtMs: createdAtMs + 5_000,
      decidedBy: "operator",
      reason: "lost",
    },
  });
  expect(decided.ok && decided.value).not.toHaveProperty("ops");
  expect(await get(c.uuid())).toEqual(no("NOT_FOUND"));
});

/** The decisions that an earlier instance left: more than one instance keeps in memory. */
const LEFT = 10_400;

test("[C3] decisions beyond the memory limit are applied too, and a call for one does not wait", async () => {
  const c = await start({ sweepAfterMs: 600_000, outcomeRetentionS: 1 });
  const lease = c.uuid();
  await begin(c, lease, ["ada"]);
  c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
  await decide(c, lease, "COMMITTED");
  await c.pass(10_000);
  insertLeases(c.ledger("1").database, { count: LEFT, prefix: "old-", pending: 1 });
  c.ledger("1").restart();
  expect(await status(c)).toMatchObject({ unappliedDecisions: 10_000 });
  c.fate = () => "deliver";
  expect(await decide(c, lease, "COMMITTED")).toEqual(ok({ state: "COMMITTED" }));
  expect(c.holds()).toEqual([]);
  await c.pass(120_000);
  expect(await status(c)).toMatchObject({ unappliedDecisions: 0 });
  expect(unfinished(c.ledger("1").database, 1)).toEqual([]);
  c.ledger("1").restart();
  expect(await status(c)).toMatchObject({ unappliedDecisions: 0 });
});

test("[C2] [C3] a repeated decision is sent again only to shards that have not confirmed", async () => {
  const c = await start();
  const lease = c.uuid();
  await begin(c, lease, ["ada"]);
  await decide(c, lease, "COMMITTED");
  const told = c.messages("exchange").filter(isDecision).length;
  await decide(c, lease, "COMMITTED");
  await c.pass(60_000);
  await decide(c, lease, "COMMITTED");
  c.ledger("1").restart();
  await decide(c, lease, "COMMITTED");
  expect(c.messages("exchange").filter(isDecision)).toHaveLength(told);
});

test("[C3] a shard that has confirmed gets no retry while another one cannot be reached", async () => {
  const c = await Cluster.start({ shards: 2 });
  const lease = c.uuid();
  const names = Array.from({ length: 20 }, (_, n) => `n${n}`);
  await begin(c, lease, names);
  c.fate = (call) => (isDecision(call) && call.to === "shard 1" ? "lose" : "deliver");
  await decide(c, lease, "COMMITTED");
  await c.pass(60_000);
  const told = (shard: string): number =>
    c.messages("exchange").filter((call) => isDecision(call) && call.to === shard).length;
  expect(told("shard 0")).toBe(1);
  expect(told("shard 1")).toBeGreaterThan(2);
  c.fate = () => "deliver";
  await c.pass(120_000);
  expect(c.claims()).toHaveLength(names.length);
});
