/** Tests of how an attempt ends, what it leaves, and how it is repeated (B3, B6, B9). */
import { expect, test } from "vitest";
import type { Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import { shardOf, shardsOf } from "../../../../src/coordinator/kernel/placement.ts";
import { Cluster, type Call } from "../../../support/cluster.ts";
import { beginRequest, decideRequest, type OpSpec } from "../../../support/ops.ts";
import { bucketType } from "../../../support/types.ts";
import { privateField, privatePath } from "../../../support/private-fields.ts";

const ok = (value: unknown): object => ({
  ok: true,
  value: expect.objectContaining(value as object) as unknown,
});
const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const begin = (c: Cluster, cell: string, specs: (OpSpec | string)[], more: object = {}) =>
  c.ledger(cell).object.begin(beginRequest(c.envelope, c.uuid(), specs, more));
const isPrepare = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).prepares.length > 0;
const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;

async function own(c: Cluster, cell: string, names: string[]): Promise<void> {
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, lease, names)));
  await c.clock.runUntil(c.ledger(cell).object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
}

function nameOn(c: Cluster, shard: number): string {
  for (let n = 0; ; n += 1)
    if (shardOf(bucketType("ROUTES"), `n${n}`, shardsOf(c.envelope.placement)) === shard) return `n${n}`;
}

/** The begin of cell 1 gets its hold, but no answer from its shard: it runs until the exchange times out. */
async function blocked(name: string): Promise<{ c: Cluster; blocker: Promise<unknown> }> {
  const c = await Cluster.start({ shards: 1, limits: { exchangeTimeoutMs: 4_500 } });
  await own(c, "2", ["warm-up"]);
  c.fate = (call) => (call.from === "ledger 1" && isPrepare(call) ? "lose_answer" : "deliver");
  const blocker = begin(c, "1", [name]);
  await c.clock.pass(10);
  return { c, blocker };
}

test("[B6] a taken name determines the answer, even if another shard does not answer", async () => {
  const c = await Cluster.start({ shards: 2 });
  await own(c, "2", [nameOn(c, 0)]);
  c.fate = (call) => (call.to === "shard 1" ? "lose" : "deliver");
  expect(await c.clock.runUntil(begin(c, "1", [nameOn(c, 0), nameOn(c, 1)]))).toEqual(no("ALREADY_EXISTS"));
});

test("[B6] [M2] with a leased name and a shard that does not answer, the result is unknown", async () => {
  const c = await Cluster.start({ shards: 2 });
  await c.clock.runUntil(begin(c, "2", [nameOn(c, 0)]));
  c.fate = (call) => (call.to === "shard 1" ? "lose" : "deliver");
  expect(await c.clock.runUntil(begin(c, "1", [nameOn(c, 0), nameOn(c, 1)]))).toEqual(no("UNAVAILABLE"));
});

test("[B6] a refused begin releases where it has holds, and sends no other shard a release", async () => {
  const c = await Cluster.start({ shards: 3 });
  await own(c, "2", [nameOn(c, 0)]);
  await own(c, "1", ["warm-up"]);
  const told: string[] = [];
  c.fate = (call) => {
    if (isDecision(call)) told.push(call.to);
    return "deliver";
  };
  const specs = [nameOn(c, 0), nameOn(c, 1), { kind: "destroy", value: nameOn(c, 2) } as const];
  expect(await c.clock.runUntil(begin(c, "1", specs, { allowMissing: true }))).toEqual(no("ALREADY_EXISTS"));
  expect(told).toEqual(["shard 1"]);
  expect(c.holds()).toEqual([]);
});

test("[B4] a shard without holds of a lease gets no decision", async () => {
  const c = await Cluster.start({ shards: 2 });
  const lease = c.uuid();
  const specs = [nameOn(c, 0), { kind: "destroy", value: nameOn(c, 1) } as const];
  const request = beginRequest(c.envelope, lease, specs, { allowMissing: true });
  expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toMatchObject({
    value: { lease: { counts: { creates: 1, destroys: 1, missing: 1 } } },
  });
  await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  expect(
    c
      .messages("exchange")
      .filter(isDecision)
      .map(({ to }) => to),
  ).toEqual(["shard 0"]);
  expect(c.claims()).toHaveLength(1);
});

test("[M2] a begin is unavailable if a shard times out, and DEADLINE_EXCEEDED at its deadline", async () => {
  const ends: [exchangeTimeoutMs: number, code: string][] = [
    [1_000, "UNAVAILABLE"],
    [9_000, "DEADLINE_EXCEEDED"],
  ];
  for (const [exchangeTimeoutMs, code] of ends) {
    const c = await Cluster.start({ shards: 1, limits: { exchangeTimeoutMs, beginDeadlineMs: 5_000 } });
    c.fate = (call) => (isPrepare(call) ? "lose" : "deliver");
    expect(await c.clock.runUntil(begin(c, "1", ["ada"]))).toEqual(no(code));
  }
});

test("[B9] retries behind a running begin wait longer each time, up to a limit", async () => {
  const { c, blocker } = await blocked("ada");
  const triedAtMs: number[] = [];
  const fate = c.fate;
  c.fate = (call) => {
    if (call.from === "ledger 2" && isPrepare(call)) triedAtMs.push(c.clock.now());
    return fate(call);
  };
  const started = c.clock.now();
  const second = c.ledger("2").object.begin({ ...beginRequest(c.envelope, c.uuid(), ["ada"]) });
  await c.clock.pass(2_000);
  const pauses = triedAtMs.slice(1).map((atMs, index) => atMs - (triedAtMs[index] ?? 0));
  expect(pauses.slice(0, 8)).toEqual([5, 10, 20, 40, 80, 160, 250, 250]);
  const ended = await c.clock.runUntil(second);
  // The first begin had given up: an inquiry showed that no lease owns its hold.
  expect(ended).toEqual(ok({ created: true }));
  expect(c.clock.now() - started).toBeLessThan(5_000);
  await c.clock.runUntil(blocker);
});

test("[B9] [B6] a begin whose next attempt would miss its deadline is answered before it", async () => {
  for (const beginDeadlineMs of [100, 155]) {
    const c = await Cluster.start({ shards: 1, limits: { beginDeadlineMs } });
    await own(c, "2", ["warm-up"]);
    c.fate = (call) => (call.from === "ledger 1" && isPrepare(call) ? "lose_answer" : "deliver");
    const blocker = begin(c, "1", ["ada"]);
    await c.clock.pass(10);
    const started = c.clock.now();
    expect(await c.clock.runUntil(begin(c, "2", ["ada"]))).toEqual(no("ABORTED", { retryAfterMs: 1_000 }));
    // Attempts are made after 5, 15, 35 and 75 ms. The next one would be after 155 ms.
    expect(c.clock.now() - started).toBe(75);
    await c.clock.runUntil(blocker);
  }
});

test("[B8] a begin that met a dead hold retries at once, within the same call", async () => {
  const { c, blocker } = await blocked("ada");
  void blocker.catch(() => {});
  c.ledger("1").restart();
  // The new instance answers `gone` about attempts of the old one.
  await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  const started = c.clock.now();
  expect(await c.clock.runUntil(begin(c, "2", ["ada"]))).toEqual(ok({ created: true }));
  expect(c.clock.now()).toBe(started);
});

test("[B9] a begin that meets a granted or unknown hold is answered at once, without a retry", async () => {
  for (const fate of ["deliver", "lose"] as const) {
    const c = await Cluster.start({ shards: 1 });
    await c.clock.runUntil(begin(c, "1", ["ada"]));
    c.fate = (call) => (call.method === "inquire" ? fate : "deliver");
    const before = c.messages("exchange").length;
    expect(await c.clock.runUntil(begin(c, "2", ["ada"]))).toEqual(no("ABORTED"));
    expect(c.messages("exchange").length - before).toBe(1);
  }
});

test("[B9] a begin that meets a granted and a running lease is not retried", async () => {
  const { c, blocker } = await blocked("ada");
  await c.clock.runUntil(begin(c, "2", ["bob"]));
  const before = c.messages("exchange").length;
  expect(await c.clock.runUntil(begin(c, "2", ["ada", "bob"]))).toEqual(no("ABORTED"));
  expect(c.messages("exchange").length - before).toBe(1);
  await c.clock.runUntil(blocker);
});

test("[B9] later attempts ask in ascending order and stop at the first refusal", async () => {
  const c = await Cluster.start({ shards: 3, limits: { exchangeTimeoutMs: 4_500 } });
  const names = [0, 1, 2].map((shard) => nameOn(c, shard));
  await own(c, "2", ["warm-up"]);
  c.fate = (call) => (call.from === "ledger 1" && isPrepare(call) ? "lose_answer" : "deliver");
  const blocker = begin(c, "1", [names[1] ?? ""]);
  await c.clock.pass(10);
  const from = c.messages("exchange").length;
  const second = begin(c, "2", names.toReversed());
  await c.clock.pass(12);
  const asked = c
    .messages("exchange")
    .slice(from)
    .filter(isPrepare)
    .map(({ to }) => to);
  expect(asked.slice(0, 3)).toEqual(["shard 0", "shard 1", "shard 2"]);
  expect(asked.slice(3, 5)).toEqual(["shard 0", "shard 1"]);
  expect(asked.slice(5)).not.toContain("shard 2");
  await c.clock.runUntil(Promise.all([blocker, second]));
});

test("[B9] an attempt in ascending order ends as unknown at a shard that does not answer", async () => {
  const c = await Cluster.start({ shards: 3 });
  const names = [0, 1, 2].map((shard) => nameOn(c, shard));
  await own(c, "2", ["warm-up"]);
  c.fate = (call) => (call.from === "ledger 1" && isPrepare(call) ? "lose_answer" : "deliver");
  const blocker = begin(c, "1", [names[2] ?? ""]);
  await c.clock.pass(10);
  const from = c.messages("exchange").length;
  let rounds = 0;
  c.fate = (call) => {
    if (call.from === "ledger 2" && isPrepare(call) && call.to === "shard 0") rounds += 1;
    return call.from === "ledger 2" && isPrepare(call) && call.to === "shard 0" && rounds > 1
      ? "lose"
      : "deliver";
  };
  expect(await c.clock.runUntil(begin(c, "2", names))).toEqual(no("UNAVAILABLE"));
  const asked = c
    .messages("exchange")
    .slice(from)
    .filter((call) => call.from === "ledger 2" && isPrepare(call));
  expect(asked.map(({ to }) => to)).toEqual(["shard 0", "shard 1", "shard 2", "shard 0"]);
  await c.clock.runUntil(blocker);
});

test("[B8] a settle may take its own timeout plus the inquiry's, even if both are equal", async () => {
  const c = await Cluster.start({ shards: 1, limits: { exchangeTimeoutMs: 100, inquiryTimeoutMs: 100 } });
  await own(c, "2", ["warm-up"]);
  await own(c, "1", ["warm-up-too"]);
  c.fate = (call) =>
    call.from === "ledger 1" && isPrepare(call) ? "lose_answer" : isDecision(call) ? "lose" : "deliver";
  expect(await c.clock.runUntil(begin(c, "1", ["ada"]))).toEqual(no("UNAVAILABLE"));
  c.fate = (call) => (call.method === "settle" || call.method === "inquire" ? "slow" : "deliver");
  expect(await c.clock.runUntil(begin(c, "2", ["ada"]))).toEqual(ok({ created: true }));
});

test("[B5] an instance that has ended sends no settle", async () => {
  const c = await Cluster.start({ shards: 1 });
  await own(c, "2", ["warm-up"]);
  await c.clock.runUntil(begin(c, "1", ["ada"]));
  c.fate = (call) => (isPrepare(call) ? "slow" : "deliver");
  void begin(c, "2", ["ada"]).catch(() => {});
  await c.clock.pass(10);
  c.ledger("2").sql.failFlushes();
  await expect(
    c.clock.runUntil(c.ledger("2").object.decide(decideRequest(c.envelope, c.uuid(), "ROLLED_BACK"))),
  ).rejects.toThrow("did not answer");
  await c.clock.pass(10_000);
  expect(c.messages("settle")).toEqual([]);
});

test("[M6] [B6] while shards hang, the releases of begins that have ended do not pile up", async () => {
  const concurrentBegins = 5;
  const c = await Cluster.start({
    shards: 4,
    limits: { concurrentBegins, fanOut: 1, beginDeadlineMs: 100, exchangeTimeoutMs: 1_000 },
  });
  await own(c, "1", ["warm-up"]);
  c.fate = (call) => (call.method === "exchange" ? "lose" : "deliver");
  const names = [0, 1, 2, 3].map((shard) => nameOn(c, shard));
  const longest = { "#prepares": 0, "#decisions": 0 };
  let begun = 0;
  for (let step = 0; step < 100; step += 1) {
    void begin(c, "1", names).then((answer) => {
      if (!answer.ok && answer.refusal.reason !== "TOO_MANY_BEGINS") begun += 1;
    });
    await c.clock.pass(200);
    const links = privatePath(c.ledger("1").object, "#part.links.#links") as Map<number, object>;
    for (const link of links.values())
      for (const queue of ["#prepares", "#decisions"] as const)
        longest[queue] = Math.max(longest[queue], (privateField(link, queue) as unknown[]).length);
  }
  expect(begun).toBeGreaterThan(5 * concurrentBegins);
  expect(longest["#prepares"]).toBeLessThanOrEqual(concurrentBegins);
  expect(longest["#decisions"]).toBeLessThanOrEqual(concurrentBegins);
});
