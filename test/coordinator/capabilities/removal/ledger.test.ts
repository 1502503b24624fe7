/** Tests of the removal of a cell, with lost messages, crashes and other cells at work. */
import { expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { BeginRequest, Exchange } from "../../../../src/coordinator/kernel/messages.ts";
import type { RemovalProgress } from "../../../../src/coordinator/capabilities/removal/messages.ts";
import { Cluster, type Fate } from "../../../support/cluster.ts";
import { LOST, saveLedger, saveShard } from "../../../support/go-back.ts";
import { beginRequest, callerOf, decideRequest, operator, type OpSpec } from "../../../support/ops.ts";

const no = (reason: string, code = "FAILED_PRECONDITION"): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, reason }) as unknown,
});
const done: Result<null> = { ok: true, value: null };

const start = (limits: Partial<Limits> = {}): Promise<Cluster> => Cluster.start({ shards: 4, limits });
const run = <T>(c: Cluster, work: Promise<T>): Promise<T> => c.clock.runUntil(work);
const ledger = (c: Cluster, cell = "1") => c.ledger(cell).object;

function begin(
  c: Cluster,
  cell: string,
  specs: (OpSpec | string)[],
  more: Partial<BeginRequest> = {},
  lease = c.uuid(),
) {
  return run(c, ledger(c, cell).begin(beginRequest(c.envelope, lease, specs, more)));
}

async function own(c: Cluster, cell: string, names: string[]): Promise<void> {
  const lease = c.uuid();
  await begin(c, cell, names, {}, lease);
  await run(c, ledger(c, cell).decide(decideRequest(c.envelope, lease, "COMMITTED")));
  await c.pass(100);
}

async function status(c: Cluster) {
  const answer = await run(c, ledger(c).status(c.envelope));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

async function setState(c: Cluster, state: "ACTIVE" | "DRAINING"): Promise<Result<null>> {
  const { stateVersion } = await status(c);
  return run(c, ledger(c).setState({ ...c.envelope, state, stateVersion }));
}

const drain = (c: Cluster): Promise<Result<null>> => setState(c, "DRAINING");

async function approve(c: Cluster, more = {}): Promise<Result<null>> {
  const { position } = await status(c);
  return run(c, ledger(c).approveRemoval({ ...c.envelope, position, records: 0, ...more }));
}

async function step(c: Cluster, limit = 100): Promise<Result<RemovalProgress>> {
  const { stateVersion } = await status(c);
  return run(c, ledger(c).removalStep({ ...c.envelope, stateVersion, limit }));
}

/** Steps until the cell is removed, as an operator's program does. */
async function finish(c: Cluster, limit = 100): Promise<number> {
  for (let steps = 1; steps < 1_000; steps += 1) {
    const answer = await step(c, limit);
    if (answer.ok && answer.value.state === "REMOVED") return steps;
    if (!answer.ok) await c.pass(1_000);
  }
  throw new Error("the removal does not end");
}

/** An operator declares that the ledger went back in time, and reconciles it. */
async function acceptLoss(c: Cluster) {
  const part = await run(c, ledger(c).part(c.envelope));
  const declared = { incarnation: part.ok ? (part.value.point?.incarnation ?? 0) : 0 };
  const by = { ...operator, reason: "restored from a backup" };
  const message = { dryRun: false, operator: by, revokedKeys: [], removedAtMs: null, declared };
  return run(c, ledger(c).reconcile({ ...c.envelope, ...message }));
}

const claimsOf = (c: Cluster, cell: string) => c.claims().filter((claim) => claim.cell === cell);
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `name-${index}`);

test("[X2] is approved only if the cell drains, has no leases, and is as it was compared", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  expect(await approve(c)).toEqual(no("CELL_NOT_DRAINING"));
  const open = c.uuid();
  await begin(c, "1", ["bob"], {}, open);
  await drain(c);
  expect(await approve(c)).toEqual(no("CELL_HAS_LEASES"));
  const { position } = await status(c);
  await run(c, ledger(c).decide(decideRequest(c.envelope, open, "COMMITTED")));
  await c.pass(100);
  // The lease was decided after the claims were compared, so the export lacks what it changed.
  expect(await approve(c, { position })).toEqual(no("CONCURRENT_CHANGE"));
  expect(await approve(c, { records: 1 })).toEqual(done);
  expect(await approve(c, { records: 2 })).toEqual(done);
  expect(await status(c)).toMatchObject({ state: "DRAINING", removal: null });
  c.ledger("1").restart();
  expect(await step(c, 1)).toMatchObject({ ok: true, value: { released: 1, left: 1 } });
  expect(await status(c)).toMatchObject({ state: "REMOVING", removal: { records: 2, released: 1 } });
});

test("[X2] is not approved while a shard has not applied a decision", async () => {
  const c = await start();
  const lease = c.uuid();
  await begin(c, "1", ["ada"], {}, lease);
  await drain(c);
  c.fate = ({ method }): Fate => (method === "exchange" ? "lose" : "deliver");
  await run(c, ledger(c).decide(decideRequest(c.envelope, lease, "COMMITTED")));
  expect(await approve(c)).toEqual(no("CELL_HAS_LEASES"));
  c.fate = () => "deliver";
  await c.pass(120_000);
  expect(await approve(c)).toEqual(done);
});

test("[X3] the first step needs an approval, and that nothing has changed since", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  await drain(c);
  expect(await step(c)).toEqual(no("CELL_NOT_REMOVING"));
  await approve(c);
  const lease = c.uuid();
  await begin(c, "1", ["bob"], { isVerification: true }, lease);
  expect(await step(c)).toEqual(no("CONCURRENT_CHANGE"));
  await run(c, ledger(c).decide(decideRequest(c.envelope, lease, "ROLLED_BACK")));
  await c.pass(100);
  expect(await step(c)).toEqual(no("CONCURRENT_CHANGE"));
  await approve(c);
  await setState(c, "ACTIVE");
  expect(await step(c)).toEqual(no("CELL_NOT_REMOVING"));
  await drain(c);
  expect(await step(c)).toEqual(no("CONCURRENT_CHANGE"));
  expect(await status(c)).toMatchObject({ state: "DRAINING", removal: null });
  expect(claimsOf(c, "1")).toHaveLength(1);
});

test("[X3] a removal that has started cannot be undone, also if its first step failed", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  await drain(c);
  await approve(c);
  c.fate = ({ method }): Fate => (method === "listCellClaims" ? "lose" : "deliver");
  expect(await step(c)).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
  c.ledger("1").restart();
  expect(await setState(c, "ACTIVE")).toEqual(no("CELL_REMOVING"));
  expect(await approve(c)).toEqual(no("CELL_NOT_DRAINING"));
});

test("[X3] steps release what the cell has, in bounded parts, and nothing else", async () => {
  const c = await start();
  await own(c, "1", names(50));
  await own(c, "2", ["other-1", "other-2"]);
  await drain(c);
  await approve(c, { records: 50 });
  for (let left = 50; left > 20;) {
    const answer = await step(c, 5);
    const released = answer.ok ? answer.value.released : 0;
    expect(released).toBeGreaterThan(0);
    expect(released).toBeLessThanOrEqual(5);
    await c.pass(100);
    left -= released;
    expect(claimsOf(c, "1")).toHaveLength(left);
  }
  expect(await begin(c, "1", ["eve"], { isVerification: true })).toEqual(no("CELL_REMOVING"));
  await finish(c, 5);
  expect(claimsOf(c, "1")).toEqual([]);
  expect(claimsOf(c, "2")).toHaveLength(2);
  expect(c.holds()).toEqual([]);
  // A name that was released is free.
  expect(await begin(c, "2", ["name-7"])).toMatchObject({ ok: true });
});

test.each(["lose", "lose_answer", "late", "twice"] satisfies Fate[])(
  "[X3] a step can be repeated after a crash anywhere, with messages that are %s",
  async (fate) => {
    const c = await start();
    await own(c, "1", names(30));
    await own(c, "2", ["other"]);
    await drain(c);
    await approve(c);
    for (let nth = 0; nth < 12; nth += 1) {
      let left = nth;
      c.fate = ({ from }): Fate => (from === "ledger 1" && left-- === 0 ? fate : "deliver");
      await step(c, 3);
      c.fate = () => "deliver";
      c.ledger("1").restart();
    }
    await finish(c, 10);
    await c.pass(120_000);
    expect(claimsOf(c, "1")).toEqual([]);
    expect(c.holds()).toEqual([]);
    expect(claimsOf(c, "2")).toHaveLength(1);
    expect(await status(c)).toMatchObject({ state: "REMOVED", outstandingLeases: 0 });
  },
);

test("[X3] calls at the same time share one step", async () => {
  const c = await start();
  await own(c, "1", names(20));
  await drain(c);
  await approve(c);
  const { stateVersion } = await status(c);
  const message = { ...c.envelope, stateVersion, limit: 3 };
  const both = Promise.all([1, 2].map(() => ledger(c).removalStep(message)));
  const [one, two] = await run(c, both);
  expect(one).toEqual(two);
  expect(one).toMatchObject({ ok: true, value: { released: 3 } });
});

test("[X3] counts each released claim once, also if the answer of a step is lost", async () => {
  const c = await start();
  await own(c, "1", names(12));
  await drain(c);
  await approve(c, { records: 12 });
  c.fate = ({ from, method }): Fate =>
    from === "ledger 1" && method === "exchange" ? "lose_answer" : "deliver";
  expect(await step(c, 5)).toMatchObject({ ok: false });
  c.fate = () => "deliver";
  c.ledger("1").restart();
  for (let left = 12; left > 0;) {
    const answer = await step(c, 5);
    if (answer.ok) left = answer.value.left;
    else await c.pass(1_000);
  }
  expect((await status(c)).removal).toMatchObject({ records: 12, released: 12, end: null });
});

test("[X3] [H7] commits the lease of a step that a reconciled ledger has granted again", async () => {
  const c = await start();
  await own(c, "1", names(12));
  await drain(c);
  await approve(c, { records: 12 });
  await step(c, 2);
  const restore = saveLedger(c);
  // The ledger loses a grant whose holds are still on the shard.
  const exchanges: number[] = [];
  c.fate = ({ from, method }): Fate =>
    from === "ledger 1" && method === "exchange" && exchanges.push(0) > 1 ? "lose" : "deliver";
  await step(c, 2);
  expect(c.holds()).not.toEqual([]);
  restore();
  c.fate = () => "deliver";
  expect(await acceptLoss(c)).toMatchObject({ ok: true, value: { leases: 1 } });
  expect(await status(c)).toMatchObject({ state: "REMOVING", outstandingLeases: 1 });
  await finish(c);
  await c.pass(120_000);
  expect(claimsOf(c, "1")).toEqual([]);
  expect(c.holds()).toEqual([]);
});

test("[X4] a removed cell has no claim, its key is refused, and its state is final", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  const sdk = { name: "leasehold", version: "0.1.0" };
  await run(c, ledger(c).reportStatus({ ...c.envelope, caller: callerOf(), sdk }));
  expect((await status(c)).reported).not.toBeNull();
  await drain(c);
  await approve(c, { records: 1 });
  await finish(c);
  expect((await status(c)).reported).toBeNull();
  const removed = no("CELL_REMOVED", "PERMISSION_DENIED");
  const call = { ...c.envelope, caller: callerOf() };
  expect(await run(c, ledger(c).authorize(call))).toEqual(removed);
  expect(await begin(c, "1", ["ada"])).toEqual(removed);
  const { stateVersion } = await status(c);
  const activate = { ...c.envelope, state: "ACTIVE" as const, stateVersion };
  expect(await run(c, ledger(c).setState(activate))).toEqual(no("CELL_REMOVED"));
  expect(await approve(c)).toEqual(no("CELL_NOT_DRAINING"));
  c.ledger("1").restart();
  expect(await status(c)).toMatchObject({ state: "REMOVED" });
});

test("[X3] [A2] a late copy of a step starts no removal that was approved for another state", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  await drain(c);
  await approve(c);
  const { stateVersion } = await status(c);
  await setState(c, "ACTIVE");
  await drain(c);
  await approve(c);
  const late = run(c, ledger(c).removalStep({ ...c.envelope, stateVersion, limit: 100 }));
  expect(await late).toEqual(no("CONCURRENT_CHANGE"));
  expect(claimsOf(c, "1")).toHaveLength(1);
});

test("[X3] [H7] a ledger that accepts a loss has no approval any more", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  await drain(c);
  await approve(c);
  expect(await acceptLoss(c)).toMatchObject({ ok: true });
  expect(await step(c)).toEqual(no("CONCURRENT_CHANGE"));
});

test("[X3] [H7] a step rolls back a lease of a reconciled ledger that would claim a name", async () => {
  const c = await start();
  await own(c, "1", ["ada", "eve"]);
  // The begin has a hold, but the ledger never grants it.
  let exchanges = 0;
  c.fate = ({ from, method }): Fate => {
    if (method === "inquire") return "lose";
    if (from !== "ledger 1" || method !== "exchange") return "deliver";
    return (exchanges += 1) === 1 ? "lose_answer" : "lose";
  };
  await begin(c, "1", ["bob"]);
  c.ledger("1").restart();
  c.fate = ({ method }): Fate => (method === "inquire" ? "lose" : "deliver");
  await drain(c);
  await c.pass(1_000);
  expect(await approve(c, { records: 2 })).toEqual(done);
  expect(await step(c, 1)).toMatchObject({ ok: true, value: { released: 1 } });
  await c.pass(1_000);
  expect(c.holds()).toHaveLength(1);
  expect(await acceptLoss(c)).toMatchObject({ ok: true, value: { leases: 1 } });
  c.fate = () => "deliver";
  await finish(c);
  await c.pass(120_000);
  expect(claimsOf(c, "1")).toEqual([]);
  expect(c.holds()).toEqual([]);
});

test("[X3] [H7] a ledger that has released nothing before its loss compares the claims again", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  await drain(c);
  expect(await approve(c, { records: 1 })).toEqual(done);
  c.fate = ({ method }): Fate => (method === "listCellClaims" ? "lose" : "deliver");
  expect(await step(c)).toMatchObject({ ok: false });
  expect(await status(c)).toMatchObject({ state: "REMOVING" });
  expect(await acceptLoss(c)).toMatchObject({ ok: true });
  c.fate = () => "deliver";
  expect(await status(c)).toMatchObject({ state: "DRAINING", removal: null });
  expect(await step(c)).toMatchObject({ ok: false, refusal: { reason: "CONCURRENT_CHANGE" } });
  expect(claimsOf(c, "1")).toHaveLength(1);
  expect(await approve(c, { records: 1 })).toEqual(done);
  await finish(c);
  expect(claimsOf(c, "1")).toEqual([]);
});

test("[X4] [H4] a step tells what a shard refuses it for", async () => {
  const c = await Cluster.start({ shards: 1 });
  const restore = saveShard(c);
  await own(c, "1", names(6));
  await drain(c);
  await approve(c, { records: 6 });
  await step(c, 2);
  restore();
  expect(await step(c, 2)).toEqual(no("HISTORY_LOST", "UNAVAILABLE"));
});

test("[X4] a step of a removed cell that releases nothing has found no claim", async () => {
  const c = await Cluster.start({ shards: 1 });
  await own(c, "1", names(6));
  const restore = saveShard(c);
  await drain(c);
  await approve(c, { records: 6 });
  await finish(c);
  expect(claimsOf(c, "1")).toEqual([]);
  restore();
  const part = await run(c, c.shard(0).object.part(c.envelope));
  const declared = { incarnation: (part.ok && part.value.point?.incarnation) || 0 };
  const message = { ...c.envelope, dryRun: false, declared, cells: ["1"] };
  expect(await run(c, c.shard(0).object.reconcile(message))).toMatchObject({ ok: true });
  expect(claimsOf(c, "1")).toHaveLength(6);
  const released: number[] = [];
  while (released.at(-1) !== 0) {
    // The shard lists the claims of the first step until the prepare of the second step asks about them.
    const exchanges: number[] = [];
    c.fate = ({ method }): Fate =>
      method === "exchange" && released.length === 0 && exchanges.push(0) > 1 ? "lose" : "deliver";
    const answer = await step(c, 2);
    if (answer.ok) released.push(answer.value.released);
    else await c.pass(1_000);
  }
  expect(released).toEqual([2, 2, 2, 0]);
  expect(claimsOf(c, "1")).toEqual([]);
});

test("[O1] a removal has entries when it starts and ends, and for nothing else", async () => {
  const c = await start();
  await own(c, "1", names(9));
  await drain(c);
  await approve(c, { records: 9 });
  await finish(c, 2);
  const page = await run(c, ledger(c).pullAudit({ ...c.envelope, copied: null, limit: 100 }));
  expect(page.ok && page.value.entries.map(({ action, after }) => [action, after])).toEqual([
    ["drain_cell", '{"state":"DRAINING"}'],
    ["start_removal", '{"state":"REMOVING","records":9}'],
    ["remove_cell", '{"state":"REMOVED","records":9}'],
  ]);
});

test("[X5] [H4] a ledger that has lost its removal notices it when told, and stays removed", async () => {
  const c = await start();
  await own(c, "1", ["ada"]);
  const restore = saveLedger(c);
  await drain(c);
  await approve(c, { records: 1 });
  await finish(c);
  const { removal } = await status(c);
  const end = removal?.end ?? null;
  expect(end).toMatchObject({ operator: { keyId: "operator-key" } });
  const maintain = { ...c.envelope };
  expect(await run(c, ledger(c).maintain(maintain))).toMatchObject({ ok: true, value: { removed: end } });
  // Who knows the removal is told nothing new.
  const told = { ...maintain, isRemoved: true };
  expect(await run(c, ledger(c).maintain(told))).toMatchObject({ ok: true });
  restore();
  expect(await status(c)).toMatchObject({ removal: null });
  const lost = no("HISTORY_LOST", "UNAVAILABLE");
  expect(await run(c, ledger(c).maintain(told))).toEqual(lost);
  expect(await begin(c, "1", ["bob"])).toEqual(lost);
  const message = { ...c.envelope, dryRun: false, revokedKeys: [], removedAtMs: end?.atMs ?? 0 };
  expect(await run(c, ledger(c).reconcile(message))).toMatchObject({ value: { cellState: "REMOVED" } });
  expect(await begin(c, "1", ["bob"])).toEqual(no("CELL_REMOVED", "PERMISSION_DENIED"));
  expect(await run(c, ledger(c).maintain(told))).toMatchObject({
    ok: true,
    value: { removed: { atMs: end?.atMs } },
  });
});

test("[X5] [X3] steps end what a reconciled ledger of a removed cell has granted again", async () => {
  const c = await start();
  await own(c, "1", names(6));
  await drain(c);
  await approve(c, { records: 6 });
  const restore = saveLedger(c);
  // The ledger loses a grant whose holds are still on the shard.
  const exchanges: number[] = [];
  c.fate = ({ from, method }): Fate =>
    from === "ledger 1" && method === "exchange" && exchanges.push(0) > 1 ? "lose" : "deliver";
  await step(c, 2);
  expect(c.holds()).not.toEqual([]);
  restore();
  c.fate = () => "deliver";
  expect(await run(c, ledger(c).maintain({ ...c.envelope, isRemoved: true }))).toEqual(
    no("HISTORY_LOST", "UNAVAILABLE"),
  );
  const message = { ...c.envelope, dryRun: false, revokedKeys: [], removedAtMs: c.clock.now() };
  expect(await run(c, ledger(c).reconcile(message))).toMatchObject({ ok: true, value: { leases: 1 } });
  await finish(c);
  for (let released = 1; released > 0;) {
    const answer = await step(c);
    if (answer.ok) ({ released } = answer.value);
    else await c.pass(1_000);
  }
  await c.pass(120_000);
  expect(claimsOf(c, "1")).toEqual([]);
  expect(c.holds()).toEqual([]);
  expect(await status(c)).toMatchObject({ state: "REMOVED", outstandingLeases: 0 });
});

test("[X3] a step costs three messages and four transactions, for 1 claim or 10", async () => {
  const c = await Cluster.start({ shards: 16 });
  await own(c, "1", names(400));
  await drain(c);
  await c.pass(1_000);
  expect(await approve(c, { records: 400 })).toEqual(done);
  // The first step also changes the state of the cell.
  await step(c, 1);
  await c.pass(1_000);
  const { stateVersion } = await status(c);
  for (const limit of [1, 5, 10]) {
    const before = { messages: c.calls.length, transactions: c.transactions() };
    await run(c, ledger(c).removalStep({ ...c.envelope, stateVersion, limit }));
    expect(c.calls.length - before.messages).toBe(3);
    expect(c.transactions() - before.transactions).toBe(4);
    await c.pass(1_000);
  }
});

test("[N1] [X3] a removal lists no claim twice, because its decisions wait for no begin", async () => {
  // Begins come so often that decisions wait for them.
  const c = await Cluster.start({ shards: 1, limits: { decisionWaitMs: 5, sweepAfterMs: 600_000 } });
  for (const name of names(20)) {
    await own(c, "1", [name]);
    await c.pass(100);
  }
  await c.pass(10_000);
  await drain(c);
  expect(await approve(c, { records: 20 })).toEqual(done);
  const exchanges = () => c.messages("exchange").map(({ message }) => message as Exchange);
  const sent = exchanges().length;
  for (let state: string | undefined; state !== "REMOVED"; await c.clock.pass(50)) {
    const answer = await step(c, 5);
    if (!answer.ok) throw new Error(answer.refusal.detail);
    ({ state } = answer.value);
  }
  const later = exchanges().slice(sent);
  expect(later.flatMap(({ prepares }) => prepares)).toHaveLength(4);
});

test("[H1] [L7] notices a ledger that lost the start of a removal, of which no shard knows", async () => {
  const c = await Cluster.start({ shards: 1 });
  await own(c, "1", ["early"]);
  await c.pass(30_000);
  await drain(c);
  const restore = saveLedger(c);
  expect(await approve(c, { records: 1 })).toEqual(done);
  // The shard learns of nothing, because it lists no claims.
  c.fate = ({ method }): Fate => (method === "listCellClaims" ? "lose" : "deliver");
  await step(c, 1);
  expect(await status(c)).toMatchObject({ state: "REMOVING" });
  const { point } = ledger(c).told();
  restore();
  expect(await begin(c, "1", ["late"], point === undefined ? {} : { seen: point })).toEqual(LOST);
});
