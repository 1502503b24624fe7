/** Tests of transfers of a scope from one cell to another (Y1 to Y10). */
import { expect, test, vi } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { ClaimRecord, Exchange, LookupFound, Op } from "../../../../src/coordinator/kernel/messages.ts";
import type { ScrubBegin, ScrubPass } from "../../../../src/coordinator/capabilities/scrub/messages.ts";
import { scopeStatements } from "../../../../src/coordinator/capabilities/transfer/scope-store.ts";
import type {
  DecideTransfer,
  PrepareTransfer,
  ReportTransfer,
  Transfer,
  TransferCall,
} from "../../../../src/coordinator/capabilities/transfer/messages.ts";
import type { TransferParty } from "../../../../src/coordinator/capabilities/transfer/range.ts";
import { Cluster, type Call, type Fate } from "../../../support/cluster.ts";
import { transferStatements } from "../../../../src/coordinator/capabilities/transfer/ledger-store.ts";
import { saveLedger, saveShard } from "../../../support/go-back.ts";
import {
  beginRequest,
  callerOf,
  decideRequest,
  keyOf,
  opsOf,
  operator,
  type OpSpec,
} from "../../../support/ops.ts";
import { copiedBy, Growing } from "../../../support/growing.ts";
import { tableOf } from "../../../support/holds.ts";
import { sourceOf } from "../../../support/types.ts";
import { privatePath } from "../../../support/private-fields.ts";

const SCOPE = "org-1";
const NAMES = Array.from({ length: 12 }, (_, n) => `name-${n}`);

const start = (limits: Partial<Limits> = {}): Promise<Cluster> =>
  Cluster.start({ cells: ["1", "2", "3"], shards: 3, limits });

async function value<T>(c: Cluster, answer: Promise<Result<T>>): Promise<T> {
  const reply = await c.clock.runUntil(answer);
  if (!reply.ok) throw new Error(`${reply.refusal.reason ?? reply.refusal.code}: ${reply.refusal.detail}`);
  return reply.value;
}

const begin = (c: Cluster, cell: string, ops: readonly (OpSpec | string)[], lease = c.uuid()) =>
  c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, lease, ops)));

async function commit(c: Cluster, cell: string, ops: readonly (OpSpec | string)[]): Promise<void> {
  const lease = c.uuid();
  expect(await begin(c, cell, ops, lease)).toMatchObject({ ok: true });
  await value(c, c.ledger(cell).object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  await c.pass(500);
}

/** Claims all names for cell 1, in the scope, and one name outside of it. */
async function claimed(c: Cluster): Promise<void> {
  await commit(c, "1", [...NAMES.map((name) => ({ value: name, scope: SCOPE })), "outside"]);
}

const call = (c: Cluster, party: TransferParty, transfer: string): TransferCall => ({
  ...c.envelope,
  caller: party === "operator" ? { ...callerOf(), role: "operator" } : callerOf(),
  party,
  requestId: operator.requestId,
  transfer,
});

function prepare(
  c: Cluster,
  { id = c.uuid(), to = "2", ...more }: Partial<PrepareTransfer> & { id?: string; to?: string } = {},
): Promise<Result<Transfer>> {
  const request = { ...call(c, "from", id), from: "1", scope: SCOPE, ...more };
  return c.clock.runUntil(c.ledger(to).object.prepareTransfer(request));
}

async function prepared(c: Cluster, id = c.uuid()): Promise<Transfer> {
  return value(c, prepare(c, { id }));
}

async function verified(c: Cluster, transfer: Transfer): Promise<void> {
  const { object } = c.ledger(transfer.to);
  await value(c, object.acceptTransfer(call(c, "to", transfer.id)));
  for (const side of ["from", "to"] as const) {
    const report: ReportTransfer = { ...call(c, side, transfer.id), side, ...transfer.expected[side] };
    await value(c, object.reportTransfer(report));
  }
}

function decide(
  c: Cluster,
  { id, to }: Transfer,
  outcome: DecideTransfer["outcome"],
  party: TransferParty = "from",
): Promise<Result<Transfer>> {
  return c.clock.runUntil(c.ledger(to).object.decideTransfer({ ...call(c, party, id), outcome }));
}

async function get(c: Cluster, { id, to }: Transfer): Promise<Transfer> {
  return value(c, c.ledger(to).object.getTransfer(call(c, "operator", id)));
}

async function moved(c: Cluster): Promise<Transfer> {
  const transfer = await prepared(c);
  await verified(c, transfer);
  await value(c, decide(c, transfer, "CUT"));
  await c.pass(20_000);
  return get(c, transfer);
}

async function lookUp(c: Cluster, name: string): Promise<{ found: LookupFound; isSettled: boolean }> {
  const [op] = opsOf(c.envelope.placement, [name]) as [Op];
  const key = keyOf("ROUTES", name);
  const answer = await value(c, c.shard(op.shard).object.lookup({ ...c.envelope, keys: [key] }));
  const [found = { kind: "none" }] = answer.found;
  return { found, isSettled: answer.settled[0] ?? false };
}

async function owners(c: Cluster, names: readonly string[] = NAMES): Promise<(string | undefined)[]> {
  const owned: (string | undefined)[] = [];
  for (const name of names) {
    const { found } = await lookUp(c, name);
    owned.push(found.kind === "record" ? found.record.cell : found.kind);
  }
  return owned;
}

async function recordsOf(c: Cluster, cell: string): Promise<Result<ClaimRecord[]>> {
  const records: ClaimRecord[] = [];
  for (let shard = 0; shard < 3; shard += 1) {
    const message = {
      ...c.envelope,
      cell,
      sourceType: sourceOf("RAILS_TABLE_ROUTES", "1").type,
      bucketTypes: null,
      after: "",
      upTo: null,
      cursor: null,
      limit: 1_000,
    };
    const answer = await c.clock.runUntil(c.shard(shard).object.listRecords(message));
    if (!answer.ok) return answer;
    records.push(...answer.value.records);
  }
  return { ok: true, value: records };
}

const rangeHolds = (c: Cluster): number =>
  [0, 1, 2].reduce(
    (sum, shard) => sum + c.shard(shard).database.prepare("SELECT 1 FROM range_hold").all().length,
    0,
  );

/** A message that tells a shard of a decision. */
const isDecision = ({ method, message }: Call): boolean =>
  method === "exchange" && (message as Exchange).decisions.some(({ outcome }) => outcome !== "PRECOMMITTED");

/** Shards hear of decisions only when they ask. */
const losesDecisions = (sent: Call): Fate => (isDecision(sent) ? "lose" : "deliver");

const losesAnswers = ({ method }: Call): Fate => (method === "exchange" ? "lose_answer" : "deliver");

const all = (owner: string): string[] => NAMES.map(() => owner);

test("[Y1] a transfer holds its scope on every shard, and moves its claims with one decision", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  expect(transfer).toMatchObject({
    state: "PREPARED",
    from: "1",
    to: "2",
    expected: { from: { count: 12 } },
  });
  expect(rangeHolds(c)).toBe(3);
  expect(await owners(c)).toEqual(all("1"));
  await verified(c, transfer);
  expect(await value(c, decide(c, transfer, "CUT"))).toMatchObject({ state: "CUT" });
  expect(await owners(c)).toEqual(all("2"));
  await c.pass(20_000);
  expect(await get(c, transfer)).toMatchObject({ state: "FINISHED", unfinishedShards: 0 });
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("2")]);
  expect(await owners(c, ["outside"])).toEqual(["1"]);
});

test("[Y1] no list has the lease of a transfer, and the calls of leases don't decide it", async () => {
  const c = await start();
  await claimed(c);
  const { id } = await prepared(c);
  const { object } = c.ledger("2");
  const listed = object.listLeases({
    ...c.envelope,
    caller: callerOf(),
    createdAfterMs: 0,
    afterPosition: 0,
    limit: 10,
  });
  expect(await value(c, listed)).toMatchObject({ leases: [] });
  const message = { ...c.envelope, after: 0, through: null, has: [], limit: 10 };
  expect(await value(c, object.pull(message))).toMatchObject({ granted: [], through: null });
  for (const outcome of ["COMMITTED", "ROLLED_BACK"] as const)
    expect(await c.clock.runUntil(object.decide(decideRequest(c.envelope, id, outcome)))).toMatchObject({
      refusal: { reason: "LEASE_OF_TRANSFER" },
    });
  expect(
    await c.clock.runUntil(object.getLease({ ...c.envelope, caller: callerOf(), lease: id })),
  ).toMatchObject({
    refusal: { code: "NOT_FOUND" },
  });
});

test("[Y1] a prepare may be repeated, and another one under its id is refused", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  expect(await prepared(c, transfer.id)).toMatchObject({ id: transfer.id, state: "PREPARED" });
  expect(await prepare(c, { id: transfer.id, scope: "another" })).toMatchObject({
    refusal: { reason: "LEASE_ID_REUSED" },
  });
});

test("[Y2] a prepare is refused while a lease of the source holds a name of the scope", async () => {
  const c = await start();
  await claimed(c);
  for (const [cell, op] of [
    ["1", { kind: "destroy", value: "name-3", subject: null, source: null }],
    ["1", { value: "new", scope: SCOPE }],
    ["1", { kind: "replace", value: "outside", scope: SCOPE }],
  ] satisfies [string, OpSpec][]) {
    const lease = c.uuid();
    expect(await begin(c, cell, [op], lease)).toMatchObject({ ok: true });
    expect(await prepare(c)).toMatchObject({
      refusal: {
        reason: "TRANSFER_BLOCKED",
        detail: expect.stringContaining(`leases of cell 1 hold names of the scope: ${lease}`) as string,
      },
    });
    expect(rangeHolds(c)).toBe(0);
    await value(c, c.ledger(cell).object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK")));
    await c.pass(500);
  }
  // What the destination and other cells do in the scope is not in the way.
  for (const cell of ["2", "3"])
    expect(await begin(c, cell, [{ value: `of ${cell}`, scope: SCOPE }])).toMatchObject({ ok: true });
  await prepared(c);
});

test("[Y2] [Y7] a stranger's transfer of the same scope is in no other cell's way", async () => {
  const c = await Cluster.start({ cells: ["1", "2", "3", "4"], shards: 3 });
  await claimed(c);
  // Cell 4 gives the scope of cell 1 to a claim of its own.
  await commit(c, "4", [{ value: "label", scope: SCOPE }]);
  const own = { kind: "destroy", value: "name-0", subject: null, source: null } satisfies OpSpec;
  const abort = async (transfer: Transfer): Promise<void> => {
    await value(c, decide(c, transfer, "ABORTED"));
    await c.pass(1_000);
  };
  for (const to of ["2", "3"]) {
    const strange = await value(c, prepare(c, { from: "4", to }));
    const transfer = await prepared(c);
    await verified(c, transfer);
    expect(rangeHolds(c)).toBe(2 * 3);
    await abort(transfer);
    await abort(strange);
  }
  const strange = await value(c, prepare(c, { from: "4", to: "1" }));
  // Cell 1 goes on in its scope. Its transfer would also move what it gets from cell 4.
  await commit(c, "1", [{ value: "more", scope: SCOPE }, own]);
  const detail = expect.stringContaining(`the transfer 1-${strange.id} holds the scope`) as string;
  expect(await prepare(c)).toMatchObject({ refusal: { reason: "TRANSFER_BLOCKED", detail } });
  await value(c, decide(c, strange, "ABORTED", "to"));
  await c.pass(1_000);
  await prepared(c);
  // Now the stranger is refused.
  const refusal = { reason: "TRANSFER_BLOCKED", detail: expect.stringContaining("of other cells") as string };
  expect(await prepare(c, { from: "4", to: "1" })).toMatchObject({ refusal });
});

test("[Y2] [Y7] two transfers are in each other's way if one changes what the other moves", async () => {
  const c = await Cluster.start({ cells: ["1", "2", "3", "4"], shards: 3 });
  await claimed(c);
  await commit(c, "2", [{ value: "of cell 2", scope: SCOPE }]);
  const first = await prepared(c);
  const blocked = (detail: string) => ({
    refusal: { reason: "TRANSFER_BLOCKED", detail: expect.stringContaining(detail) as string },
  });
  const named = blocked(`the transfer 2-${first.id} holds the scope`);
  expect(await prepare(c, { to: "3" })).toMatchObject(named);
  expect(await prepare(c, { from: "2", to: "3" })).toMatchObject(named);
  expect(await prepare(c, { from: "2", to: "1" })).toMatchObject(named);
  // Cell 3 has no part in that transfer.
  await commit(c, "3", [{ value: "of cell 3", scope: SCOPE }]);
  expect(await prepare(c, { from: "3", to: "1" })).toMatchObject(blocked("a transfer of other cells"));
  await value(c, prepare(c, { from: "3", to: "2" }));
});

test("[Y3] [Y6] a change of the destination in the scope refuses the cut of what was counted", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await commit(c, "2", [{ value: "new", scope: SCOPE }]);
  const again = await value(c, prepare(c, { id: transfer.id }));
  expect(again.expected.to.count).toBe(12);
  await verified(c, transfer);
  const { object } = c.ledger("2");
  const report: ReportTransfer = {
    ...call(c, "to", transfer.id),
    side: "to",
    count: 13,
    hash: "0".repeat(32),
  };
  expect(await value(c, object.reportTransfer(report))).toMatchObject({
    missing: ["the rows that cell 2 has reported differ from the claims"],
  });
  await value(c, decide(c, transfer, "ABORTED"));
  await c.pass(1_000);
  expect((await prepared(c)).expected.to.count).toBe(13);
});

test("[Y2] a prepare is refused if the source has no claim of the scope, and holds nothing", async () => {
  const c = await start();
  await claimed(c);
  // The destination's own claims don't count.
  await commit(c, "2", [{ value: "used", scope: "used" }]);
  expect(await prepare(c, { scope: "used" })).toMatchObject({
    refusal: { code: "FAILED_PRECONDITION", reason: "SCOPE_EMPTY" },
  });
  expect(rangeHolds(c)).toBe(0);
  await commit(c, "2", [{ value: "used-too", scope: "used" }]);
  // One claim on one of the shards is enough.
  await commit(c, "1", [{ value: "only", scope: "used" }]);
  await value(c, prepare(c, { scope: "used" }));
});

test("[Y2] one transfer of a scope at a time, and no more claims than the limit", async () => {
  const c = await start({ transferClaims: 3, openTransfers: 1 });
  await claimed(c);
  await commit(c, "1", [
    { value: "one", scope: "small" },
    { value: "two", scope: "other" },
  ]);
  expect(await prepare(c)).toMatchObject({ refusal: { reason: "TRANSFER_TOO_LARGE" } });
  expect(rangeHolds(c)).toBe(0);
  await value(c, prepare(c, { scope: "small" }));
  expect(await prepare(c, { scope: "small", to: "3" })).toMatchObject({
    refusal: { reason: "TRANSFER_BLOCKED" },
  });
  expect(await prepare(c, { scope: "other" })).toMatchObject({ refusal: { reason: "TOO_MANY_TRANSFERS" } });
});

/** Claims a name in a scope of its own for each of these cells, and returns the names of the scopes. */
async function claimedScopes(c: Cluster, cells: readonly string[], count: number): Promise<void> {
  for (const cell of cells)
    await commit(
      c,
      cell,
      Array.from({ length: count }, (_, n) => ({ value: `${n}-of-${cell}`, scope: `${n}-of-${cell}` })),
    );
}

const prepareFrom = (
  c: Cluster,
  cell: string,
  n: number,
  more: Partial<PrepareTransfer> & { to?: string } = {},
) => prepare(c, { from: cell, scope: `${n}-of-${cell}`, ...more });

test("[Y2] the transfers of one source leave room for those of others, to every destination", async () => {
  const c = await Cluster.start({ cells: ["1", "2", "3", "4"], shards: 3, limits: { openTransfers: 2 } });
  await claimedScopes(c, ["1", "3"], 4);
  const first = await value(c, prepareFrom(c, "1", 0));
  await value(c, prepareFrom(c, "1", 1, { to: "4" }));
  const refusal = { reason: "TOO_MANY_TRANSFERS", detail: expect.stringContaining("cell 1 has") as string };
  for (const to of ["2", "3", "4"])
    for (const party of ["from", "operator"] as const)
      expect(await prepareFrom(c, "1", 2, { to, party })).toMatchObject({ refusal });
  expect(rangeHolds(c)).toBe(2 * 3);
  for (const [n, to] of ["2", "4"].entries()) await value(c, prepareFrom(c, "3", n, { to }));
  await value(c, decide(c, first, "ABORTED"));
  await c.pass(1_000);
  await value(c, prepareFrom(c, "1", 2));
});

test("[Y2] [B2] [M6] prepares use up none of the begins and leases of the destination", async () => {
  const limits = { openTransfers: 2, concurrentBegins: 1, outstandingLeases: 1 };
  const c = await start(limits);
  await claimedScopes(c, ["1", "3"], 3);
  const { object } = c.ledger("2");
  const send = (cell: string, n: number, id = c.uuid()) =>
    object.prepareTransfer({ ...call(c, "from", id), from: cell, scope: `${n}-of-${cell}` });
  const id = c.uuid();
  const running = [send("1", 0, id), send("1", 1)];
  // A source has its own share of running prepares, and of calls that wait for their results.
  expect(await send("1", 2)).toMatchObject({ refusal: { reason: "TOO_MANY_TRANSFERS" } });
  const joined = [send("1", 0, id), send("1", 0, id)];
  expect(await send("1", 0, id)).toMatchObject({ refusal: { code: "UNAVAILABLE" } });
  running.push(send("3", 0));
  const begun = object.begin(beginRequest(c.envelope, c.uuid(), ["own"]));
  for (const each of [...running, ...joined, begun]) await value<unknown>(c, each);
  expect(rangeHolds(c)).toBe(3 * 3);
  // The prepared transfers are no leases of the cell, whose own lease is counted as ever.
  expect(await begin(c, "2", ["another"])).toMatchObject({ refusal: { reason: "TOO_MANY_LEASES" } });
});

test("[Y6] the log row of a precommit has the hashes of all names, so that routers drop them", async () => {
  const c = await start();
  await claimed(c);
  const { object } = c.shard(0);
  const newest = await value(c, object.report({ ...c.envelope, after: null }));
  const heldSince = async (): Promise<number> => {
    const { held } = await value(c, object.report({ ...c.envelope, after: newest.through }));
    return new Set(held.flatMap(({ keys }) => keys)).size;
  };
  const transfer = await prepared(c);
  await verified(c, transfer);
  // Nothing that routers know can change before.
  expect(await heldSince()).toBe(0);
  const count = transfer.shards.find(({ shard }) => shard === 0)?.from.count ?? 0;
  expect(count).toBeGreaterThan(0);
  c.fate = losesDecisions;
  await value(c, decide(c, transfer, "CUT"));
  expect(await heldSince()).toBe(count);
});

test("[Y6] a cut is not decided unless every shard has stored that it may follow", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  c.fate = ({ method, to }) => (method === "exchange" && to === "shard 1" ? "lose" : "deliver");
  expect(await decide(c, transfer, "CUT")).toMatchObject({
    refusal: {
      code: "UNAVAILABLE",
      detail: expect.stringMatching(/^shard 1 has not stored that the transfer may be cut/) as string,
    },
  });
  expect(await get(c, transfer)).toMatchObject({ state: "PREPARED" });
  expect(await owners(c)).toEqual(all("1"));
  c.fate = () => "deliver";
  await value(c, decide(c, transfer, "CUT"));
  expect(await owners(c)).toEqual(all("2"));
});

test("[Y6] a shard that has lost its range hold keeps the transfer from being cut", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  c.shard(1).database.exec("DELETE FROM range_hold");
  c.shard(1).restart();
  expect(await decide(c, transfer, "CUT")).toMatchObject({ refusal: { code: "UNAVAILABLE" } });
  expect(await get(c, transfer)).toMatchObject({ state: "PREPARED" });
  await value(c, decide(c, transfer, "ABORTED"));
  await c.pass(500);
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("1")]);
});

test("[Y6] cuts at the same time share their messages", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  const sent = c.messages("exchange").length;
  const { object } = c.ledger("2");
  const message = { ...call(c, "from", transfer.id), outcome: "CUT" } as const;
  const cuts = await c.clock.runUntil(
    Promise.all(Array.from({ length: 20 }, () => object.decideTransfer(message))),
  );
  for (const cut of cuts) expect(cut).toMatchObject({ ok: true, value: { state: "CUT" } });
  // One precommit for each shard, and then the decision.
  expect(c.messages("exchange").length - sent).toBeLessThanOrEqual(2 * 3);
});

test("[N1] neither a precommit nor a cut waits for a begin to share its message", async () => {
  const c = await start({ decisionWaitMs: 1_000 });
  await claimed(c);
  await c.pass(1_000);
  const transfer = await prepared(c);
  await verified(c, transfer);
  const [sent, startedMs] = [c.messages("exchange").length, c.clock.now()];
  await value(c, decide(c, transfer, "CUT"));
  await c.pass(0);
  expect(c.messages("exchange").length - sent).toBe(2 * 3);
  expect(c.clock.now()).toBe(startedMs);
});

test("[Y6] a late copy of a precommit changes nothing", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  c.fate = ({ method }) => (method === "exchange" ? "twice" : "deliver");
  await value(c, decide(c, transfer, "CUT"));
  await c.pass(60_000);
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("2")]);
  expect(await get(c, transfer)).toMatchObject({ state: "FINISHED" });
});

test("[Y6] a ledger that restarts after a precommit can still cut or abort", async () => {
  for (const outcome of ["CUT", "ABORTED"] as const) {
    const c = await start();
    await claimed(c);
    const transfer = await prepared(c);
    await verified(c, transfer);
    c.fate = losesAnswers;
    await decide(c, transfer, "CUT");
    c.fate = () => "deliver";
    c.ledger("2").restart();
    await value(c, decide(c, transfer, outcome));
    await c.pass(20_000);
    expect([rangeHolds(c), await owners(c)]).toEqual([0, all(outcome === "CUT" ? "2" : "1")]);
  }
});

test("[Y6] [Q1] a shard that learns of a cut without its precommit tells routers of the names", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  c.fate = losesDecisions;
  await value(c, decide(c, transfer, "CUT"));
  const { database, object } = c.shard(0);
  const newest = await value(c, object.report({ ...c.envelope, after: null }));
  database.exec("UPDATE range_hold SET is_precommitted = 0");
  c.shard(0).restart();
  await c.pass(30_000);
  const { held } = await value(c, c.shard(0).object.report({ ...c.envelope, after: newest.through }));
  const count = transfer.shards.find(({ shard }) => shard === 0)?.from.count ?? 0;
  expect(new Set(held.flatMap(({ keys }) => keys)).size).toBe(count);
});

test("[M7] the transfers of a source are listed without reading those of others", async () => {
  const c = await start();
  const { database } = c.ledger("2");
  const planOf = (statement: string): string =>
    JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all());
  expect(planOf(transferStatements.list)).toContain("transfer_by_position (position<?)");
  expect(planOf(transferStatements.listFrom)).toContain("transfer_by_source (from_cell=? AND position<?)");
});

test("[Y6] a transfer that was precommitted can be aborted, and the scope is as before", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  c.fate = ({ method, to }) => (method === "exchange" && to === "shard 1" ? "lose" : "deliver");
  await decide(c, transfer, "CUT");
  c.fate = () => "deliver";
  await value(c, decide(c, transfer, "ABORTED"));
  await c.pass(500);
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("1")]);
  expect(await lookUp(c, "name-1")).toMatchObject({ isSettled: true });
  await commit(c, "1", [{ kind: "replace", value: "name-1", scope: SCOPE }]);
});

test("[Y3] ops on claims that a transfer moves are leased, and so are those that add one", async () => {
  const c = await start();
  await claimed(c);
  await prepared(c);
  const destroy = (name: string): OpSpec => ({ kind: "destroy", value: name, subject: null, source: null });
  for (const [cell, op] of [
    ["1", destroy("name-1")],
    ["1", { kind: "replace", value: "name-1", scope: SCOPE }],
    ["1", { kind: "replace", value: "name-1" }],
    ["1", "name-1"],
    ["1", { value: "new", scope: SCOPE }],
    ["1", { kind: "replace", value: "outside", scope: SCOPE }],
    ["2", destroy("name-1")],
    ["2", "name-1"],
  ] satisfies [string, OpSpec | string][])
    expect([cell, op, await begin(c, cell, [op])]).toMatchObject([
      cell,
      op,
      { refusal: { code: "ABORTED", conflicts: [{ kind: "leased" }] } },
    ]);
  expect(await begin(c, "3", ["name-1"])).toMatchObject({ refusal: { conflicts: [{ kind: "taken" }] } });
  expect(await begin(c, "3", [destroy("name-1")])).toMatchObject({
    refusal: { conflicts: [{ kind: "not_owner" }] },
  });
  for (const cell of ["2", "3"]) {
    await commit(c, cell, [{ value: `own-${cell}`, scope: SCOPE }]);
    await commit(c, cell, [{ kind: "replace", value: `own-${cell}`, scope: SCOPE }]);
    await commit(c, cell, [destroy(`own-${cell}`)]);
  }
  await commit(c, "1", ["new-outside", { kind: "replace", value: "outside", scope: "org-2" }]);
});

test("[Y3] no begin waits for a transfer", async () => {
  const c = await start();
  await claimed(c);
  await prepared(c);
  const request = beginRequest(c.envelope, c.uuid(), [{ value: "new", scope: SCOPE }], { waitMs: 20_000 });
  const at = c.clock.now();
  expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toMatchObject({
    refusal: { code: "ABORTED" },
  });
  expect(c.clock.now() - at).toBeLessThan(1_000);
  expect(c.messages("wait")).toEqual([]);
});

test("[Y4] a lookup asks the destination's ledger once a cut may follow, and is not settled", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  const inquiries = c.messages("inquire").length;
  const record = { cell: "1", status: "ACTIVE", lease: transfer.id, transferTo: "2" };
  expect(await lookUp(c, "name-1")).toMatchObject({ isSettled: true, found: { record } });
  expect(c.messages("inquire")).toHaveLength(inquiries);
  // The precommit is stored on every shard, and the cut fails.
  c.fate = losesAnswers;
  expect(await decide(c, transfer, "CUT")).toMatchObject({ refusal: { code: "UNAVAILABLE" } });
  c.fate = () => "deliver";
  expect(await lookUp(c, "name-1")).toMatchObject({ isSettled: false, found: { record } });
  expect(c.messages("inquire").length).toBeGreaterThan(inquiries);
  c.fate = ({ method }) => (method === "inquire" ? "lose" : "deliver");
  expect(await lookUp(c, "name-1")).toMatchObject({ found: { kind: "unknown" } });
  expect(await countsOf(c, ["1", "2"])).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
});

test.each(["is lost", "does not answer"])(
  "[Y4] before a cut may follow, no read depends on the destination's ledger: it %s",
  async (how) => {
    const c = await start();
    await claimed(c);
    const transfer = await prepared(c);
    await verified(c, transfer);
    if (how === "is lost") {
      const seen = { incarnation: 99 * 16 ** 6, position: 1 };
      const asked = c.ledger("2").object.inquire({ ...c.envelope, seen, shard: 0, questions: [] });
      expect(await c.clock.runUntil(asked)).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
    } else c.fate = ({ to }) => (to === "ledger 2" ? "lose" : "deliver");
    expect(await owners(c, [...NAMES, "outside"])).toEqual([...all("1"), "1"]);
    expect(await countsOf(c, ["1", "2"])).toEqual([13, 0]);
    expect(await lookUp(c, "name-1")).toMatchObject({ isSettled: true });
    expect(await begin(c, "1", [{ value: "elsewhere", scope: "org-2" }])).toMatchObject({ ok: true });
  },
);

test("[Y4] [H6] a shard that accepts a loss may have lost that a cut may follow", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  const goBack = saveShard(c);
  await value(c, decide(c, transfer, "CUT"));
  goBack();
  await acceptShardLoss(c);
  expect(await owners(c)).toEqual(all("2"));
});

test("[Y4] reads of both cells' claims are right while prepared, and refused until rewritten", async () => {
  const c = await start();
  await claimed(c);
  const many = Array.from({ length: 1_000 }, (_, n) => ({ value: `many-${n}`, scope: SCOPE }));
  await commit(c, "1", many);
  const transfer = await prepared(c);
  expect(await countsOf(c, ["1", "2"])).toEqual([1_013, 0]);
  await verified(c, transfer);
  // The cut is durable, and shards hear of it only when they ask.
  c.fate = losesDecisions;
  await value(c, decide(c, transfer, "CUT"));
  expect(await countsOf(c, ["1", "2", "3"])).toEqual(["UNAVAILABLE", "UNAVAILABLE", 0]);
  expect(await owners(c)).toEqual(all("2"));
  await c.pass(5_000);
  expect(await countsOf(c, ["1", "2"])).toEqual([1, 1_012]);
});

async function countsOf(c: Cluster, cells: readonly string[]): Promise<(number | string)[]> {
  const counts: (number | string)[] = [];
  for (const cell of cells) {
    const records = await recordsOf(c, cell);
    counts.push(records.ok ? records.value.length : records.refusal.code);
  }
  return counts;
}

test("[Y5] every moved claim gets the epoch of the range hold, which is larger than any before", async () => {
  const c = await start();
  await claimed(c);
  const before = new Map(c.claims().map(({ canonical, epoch }) => [canonical, epoch]));
  const { shards } = await moved(c);
  const epochs = new Set(shards.map(({ epoch }) => epoch));
  for (const { canonical, cell, epoch } of c.claims()) {
    if (canonical === "outside") continue;
    expect([cell, epochs.has(epoch)]).toEqual(["2", true]);
    expect(epoch).toBeGreaterThan(before.get(canonical) ?? Infinity);
  }
  expect(
    await begin(c, "1", [{ kind: "destroy", value: "name-1", subject: null, source: null }]),
  ).toMatchObject({ refusal: { conflicts: [{ kind: "not_owner" }] } });
});

test("[Y5] the alarms of a shard that no message reaches ask, and rewrite all claims", async () => {
  const c = await Cluster.start({ cells: ["1", "2"], shards: 1 });
  // More than one alarm rewrites.
  const many = Array.from({ length: 6_000 }, (_, n) => ({ value: `many-${n}`, scope: SCOPE }));
  for (let from = 0; from < many.length; from += 1_000) await commit(c, "1", many.slice(from, from + 1_000));
  const transfer = await prepared(c);
  await verified(c, transfer);
  c.fate = losesDecisions;
  await value(c, decide(c, transfer, "CUT"));
  c.fate = ({ to }) => (to === "shard 0" ? "lose" : "deliver");
  const left = new Set<number>();
  for (let seconds = 0; rangeHolds(c) > 0 && seconds < 120; seconds += 1) {
    c.shard(0).restart();
    await c.pass(1_000);
    left.add(c.claims().filter(({ cell }) => cell === "1").length);
  }
  expect([rangeHolds(c), left.has(0), left.size > 2]).toEqual([0, true, true]);
  expect(await get(c, transfer)).toMatchObject({ state: "CUT" });
  c.fate = () => "deliver";
  await c.pass(60_000);
  expect(await get(c, transfer)).toMatchObject({ state: "FINISHED" });
});

test("[Y5] [F5] the history and the feed of either cell tell each move once", async () => {
  const c = await start();
  await claimed(c);
  const { id } = await moved(c);
  const toldTo = async (cell: string): Promise<string[]> => {
    const pages = [0, 1, 2].map((shard) => {
      const message = { ...c.envelope, after: 0, cell, type: null, limit: 100 };
      return value(c, c.shard(shard).object.listChanges(message));
    });
    return (await Promise.all(pages))
      .flatMap(({ changes }) => changes)
      .filter(({ event }) => event === "moved")
      .map((change) => `${change.cell} ${change.lease} ${change.claim?.details?.canonical}`)
      .toSorted();
  };
  for (const cell of ["1", "2"])
    expect(await toldTo(cell)).toEqual(NAMES.map((name) => `2 ${id} ${name}`).toSorted());
  expect(await toldTo("3")).toEqual([]);
  const [op] = opsOf(c.envelope.placement, ["name-1"]) as [Op];
  const history = { ...c.envelope, key: keyOf("ROUTES", "name-1"), before: null, atMs: null, limit: 10 };
  expect(await value(c, c.shard(op.shard).object.listPeriods(history))).toMatchObject({
    periods: [
      { cell: "2", scope: SCOPE, untilMs: null },
      { cell: "1", scope: SCOPE, endedBy: { kind: "move", lease: id } },
    ],
  });
});

test("[Y6] a cut needs an acceptance and equal, recent reports, and names what is missing", async () => {
  const c = await start({ transferVerifiedS: 60 });
  await claimed(c);
  const transfer = await prepared(c);
  const { object } = c.ledger("2");
  const report = (side: "from" | "to", count: number, hash: string): Promise<Result<Transfer>> =>
    c.clock.runUntil(object.reportTransfer({ ...call(c, side, transfer.id), side, count, hash }));
  const missing = async (): Promise<string[]> => (await get(c, transfer)).missing;
  expect(await missing()).toHaveLength(3);
  const { from, to } = transfer.expected;
  await report("from", from.count, from.hash);
  await report("to", to.count - 1, to.hash);
  expect(await missing()).toEqual([
    "cell 2 has not accepted it",
    "the rows that cell 2 has reported differ from the claims",
  ]);
  await value(c, object.acceptTransfer(call(c, "to", transfer.id)));
  await report("to", to.count, "0".repeat(32));
  expect(await decide(c, transfer, "CUT")).toMatchObject({
    refusal: {
      reason: "TRANSFER_NOT_READY",
      detail: "the transfer can't be cut: the rows that cell 2 has reported differ from the claims",
    },
  });
  await report("to", to.count, to.hash);
  c.clock.jump(61_000);
  expect(await missing()).toEqual([
    "cell 1 has not reported its rows within the last 60 s",
    "cell 2 has not reported its rows within the last 60 s",
  ]);
  await report("from", from.count, from.hash);
  await report("to", to.count, to.hash);
  c.clock.jump(-5_000);
  expect(await missing()).toHaveLength(2);
  c.clock.jump(5_000);
  await value(c, decide(c, transfer, "CUT"));
});

test("[Y6] [C2] no answer shows a cut that is not durable yet", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  const { object, sql } = c.ledger("2");
  const release = sql.holdFlushes();
  const message = call(c, "from", transfer.id);
  const page = { ...call(c, "operator", ""), before: null, from: null, limit: 100 };
  const cut = object.decideTransfer({ ...message, outcome: "CUT" });
  await c.clock.pass(10);
  expect(c.ledger("2").database.prepare("SELECT state FROM transfer").all()).toEqual([{ state: "CUT" }]);
  const answers: string[] = [];
  const calls = {
    cut,
    repeated: object.decideTransfer({ ...message, outcome: "CUT" }),
    abort: object.decideTransfer({ ...message, outcome: "ABORTED" }),
    prepare: object.prepareTransfer({ ...message, from: "1", scope: SCOPE }),
    get: object.getTransfer(message),
    list: object.listTransfers(page),
  };
  const answered = Object.entries(calls).map(([name, answer]) => answer.then(() => answers.push(name)));
  await c.clock.pass(10);
  expect(answers).toEqual([]);
  release();
  await c.clock.runUntil(Promise.all(answered));
  expect(answers).toHaveLength(6);
});

test("[Y6] an abort leaves no trace, and after the cut it is refused", async () => {
  const c = await start();
  await claimed(c);
  const first = await prepared(c);
  await value(c, decide(c, first, "ABORTED", "to"));
  await c.pass(20_000);
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("1")]);
  expect(await decide(c, first, "CUT")).toMatchObject({ refusal: { reason: "TRANSFER_ABORTED" } });
  await commit(c, "1", [{ value: "after", scope: SCOPE }]);
  const second = await moved(c);
  expect(await decide(c, second, "ABORTED")).toMatchObject({ refusal: { reason: "TRANSFER_CUT" } });
  expect(await value(c, decide(c, second, "CUT"))).toMatchObject({ state: "FINISHED" });
  for (const step of ["acceptTransfer", "reportTransfer"] as const) {
    const message = { ...call(c, "operator", second.id), side: "to" as const, count: 0, hash: "" };
    expect(await c.clock.runUntil(c.ledger("2").object[step](message))).toMatchObject({
      refusal: { reason: "TRANSFER_CUT" },
    });
  }
});

test("[U4] [Y6] a cut that loses against an abort is no contradiction of the destination", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  await verified(c, transfer);
  const { object } = c.ledger("2");
  const aborted = object.decideTransfer({ ...call(c, "to", transfer.id), outcome: "ABORTED" });
  const cut = object.decideTransfer({ ...call(c, "from", transfer.id), outcome: "CUT" });
  expect(await c.clock.runUntil(Promise.all([aborted, cut]))).toMatchObject([
    { ok: true, value: { state: "ABORTED" } },
    { refusal: { reason: "TRANSFER_ABORTED" } },
  ]);
  expect(await value(c, object.maintain({ ...c.envelope }))).toMatchObject({
    contradictions: null,
  });
});

test("[Y1] the metrics of a ledger have its prepared transfers, and the age of the first", async () => {
  const c = await start();
  await claimed(c);
  const metrics = () => value(c, c.ledger("2").object.metrics(c.envelope));
  expect(await metrics()).toMatchObject({ preparedTransfers: 0, oldestTransferMs: 0 });
  const first = await prepared(c);
  await c.pass(60_000);
  await commit(c, "1", [{ value: "elsewhere", scope: "another" }]);
  await value(c, prepare(c, { scope: "another" }));
  const { preparedTransfers, oldestTransferMs } = await metrics();
  expect(preparedTransfers).toBe(2);
  expect(oldestTransferMs).toBeGreaterThanOrEqual(60_000);
  await value(c, decide(c, first, "ABORTED"));
  const left = await metrics();
  expect(left.preparedTransfers).toBe(1);
  expect(left.oldestTransferMs).toBeLessThan(60_000);
});

test("[Y1] only what is known of an aborted transfer counts as done on the shards", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
  await value(c, decide(c, transfer, "ABORTED"));
  expect(await get(c, transfer)).toMatchObject({ state: "ABORTED", unfinishedShards: 3 });
  c.ledger("2").restart();
  expect(await get(c, transfer)).toMatchObject({ state: "ABORTED", unfinishedShards: null });
  c.fate = () => "deliver";
  await c.pass(60_000);
  expect(rangeHolds(c)).toBe(0);
  expect(await get(c, transfer)).toMatchObject({ state: "ABORTED", unfinishedShards: 0 });
  c.ledger("2").restart();
  expect(await get(c, transfer)).toMatchObject({ state: "ABORTED", unfinishedShards: 0 });
});

test("[Y7] each step is for the parties that may do it", async () => {
  const c = await start();
  await claimed(c);
  expect(await prepare(c, { party: "to" })).toMatchObject({ refusal: { code: "PERMISSION_DENIED" } });
  const transfer = await prepared(c);
  const { object } = c.ledger("2");
  const denied = { refusal: { code: "PERMISSION_DENIED" } };
  expect(await c.clock.runUntil(object.acceptTransfer(call(c, "from", transfer.id)))).toMatchObject(denied);
  const report = { ...call(c, "from", transfer.id), side: "to" as const, ...transfer.expected.to };
  expect(await c.clock.runUntil(object.reportTransfer(report))).toMatchObject(denied);
  expect(await decide(c, transfer, "CUT", "to")).toMatchObject(denied);
  const byOperator = call(c, "operator", transfer.id);
  for (const reason of ["for the destination", "repeated"])
    await value(c, object.acceptTransfer({ ...byOperator, reason }));
  const audited = await value(c, object.pullAudit({ ...c.envelope, copied: null, limit: 10 }));
  // The repeated call has changed nothing (O1).
  expect(audited.entries).toMatchObject([{ action: "accept_transfer", reason: "for the destination" }]);
});

test("[O1] [O3] what cells do with an accepted transfer is in the audit, in half of its room", async () => {
  const c = await start({ auditEntries: 2 });
  await claimed(c);
  const { object } = c.ledger("2");
  // Nothing that a source does alone has an entry.
  await value(c, decide(c, await prepared(c), "ABORTED"));
  await c.pass(1_000);
  const transfer = await prepared(c);
  await verified(c, transfer);
  await value(c, object.acceptTransfer(call(c, "to", transfer.id)));
  await value(c, decide(c, transfer, "ABORTED", "to"));
  await c.pass(1_000);
  const { keyId } = callerOf();
  const entry = { keyId, cell: "2", target: transfer.id };
  const audited = await value(c, object.pullAudit({ ...c.envelope, copied: null, limit: 10 }));
  expect(audited.entries).toMatchObject([
    {
      ...entry,
      action: "accept_transfer",
      after: JSON.stringify({
        state: "PREPARED",
        prepared_by: "from",
        prepared_key_id: keyId,
        by: "to",
      }),
    },
    { ...entry, action: "abort_transfer", after: JSON.stringify({ state: "ABORTED", by: "to" }) },
  ]);
  const full = { refusal: { reason: "AUDIT_FULL" } };
  const next = await prepared(c);
  expect(await c.clock.runUntil(object.acceptTransfer(call(c, "to", next.id)))).toMatchObject(full);
  await value(c, decide(c, next, "ABORTED"));
  const copied = audited.entries.at(-1)?.id ?? null;
  const rest = await value(c, object.pullAudit({ ...c.envelope, copied, limit: 10 }));
  expect(rest.entries.filter((each) => each.id === copied)).toEqual([]);
});

test("[Y8] the destination must be active, and a frozen source may be moved away", async () => {
  const c = await start();
  await claimed(c);
  const setState = async (cell: string, state: "ACTIVE" | "FROZEN" | "DRAINING"): Promise<void> => {
    const { object } = c.ledger(cell);
    const { stateVersion } = await value(c, object.status(c.envelope));
    await value(c, object.setState({ ...c.envelope, state, stateVersion }));
  };
  for (const [state, reason] of [
    ["FROZEN", "CELL_FROZEN"],
    ["DRAINING", "CELL_DRAINING"],
  ] as const) {
    await setState("2", state);
    expect(await prepare(c)).toMatchObject({ refusal: { reason } });
  }
  await setState("2", "ACTIVE");
  await setState("1", "FROZEN");
  const transfer = await prepared(c);
  await verified(c, transfer);
  await setState("2", "FROZEN");
  await value(c, decide(c, transfer, "CUT"));
  expect(await owners(c)).toEqual(all("2"));
});

test("[Y8] a removal of the destination waits for its transfers, and names them", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  const { object } = c.ledger("2");
  const status = () => value(c, object.status(c.envelope));
  const { stateVersion } = await status();
  await value(c, object.setState({ ...c.envelope, state: "DRAINING", stateVersion }));
  const approveRemoval = async () => {
    const { position } = await status();
    return c.clock.runUntil(object.approveRemoval({ ...c.envelope, position, records: 0 }));
  };
  expect(await approveRemoval()).toMatchObject({
    refusal: { reason: "CELL_HAS_LEASES", detail: expect.stringContaining(transfer.id) as string },
  });
  await value(c, decide(c, transfer, "ABORTED"));
  await c.pass(10_000);
  expect(await approveRemoval()).toMatchObject({ ok: true });
});

test("[Y8] a step of a removal of the source names the transfer that holds its claims", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await prepared(c);
  const { object } = c.ledger("1");
  const status = () => value(c, object.status(c.envelope));
  const { stateVersion } = await status();
  await value(c, object.setState({ ...c.envelope, state: "DRAINING", stateVersion }));
  const { stateVersion: drained, position } = await status();
  await value(c, object.approveRemoval({ ...c.envelope, position, records: 13 }));
  const step = () => {
    const message = { ...c.envelope, stateVersion: drained, limit: 100 };
    return c.clock.runUntil(object.removalStep(message));
  };
  expect(await step()).toMatchObject({
    refusal: { reason: "CELL_HAS_LEASES", detail: expect.stringContaining(`2-${transfer.id}`) as string },
  });
  await value(c, decide(c, transfer, "ABORTED", "operator"));
  await c.pass(10_000);
  expect(await step()).toMatchObject({ ok: true });
});

test.each(["REMOVING", "REMOVED"] as const)(
  "[Y8] [Y10] a transfer that comes back to a cell that is %s can only be aborted",
  async (state) => {
    const c = await start();
    const transfer = await preparedToFirst(c, NAMES);
    const goBack = saveLedger(c);
    await commit(c, "1", ["a", "b", "c", "d", "e", "f", "g", "h"]);
    goBack();
    expect(await begin(c, "1", ["noticed"])).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
    await reconcile(c, c.clock.now());
    const { database } = c.ledger("1");
    database.prepare("UPDATE meta SET value = ? WHERE name = 'cell_state'").run(state);
    c.ledger("1").restart();
    const { object } = c.ledger("1");
    const step = async () => {
      const { stateVersion } = await value(c, object.status(c.envelope));
      return c.clock.runUntil(object.removalStep({ ...c.envelope, stateVersion, limit: 100 }));
    };
    const blocked = { reason: "CELL_HAS_LEASES", detail: expect.stringContaining(transfer.id) as string };
    expect(await step()).toMatchObject({ refusal: blocked });
    expect(await decide(c, transfer, "CUT", "operator")).toMatchObject({
      refusal: { reason: `CELL_${state}` },
    });
    await value(c, decide(c, transfer, "ABORTED", "operator"));
    await c.pass(10_000);
    expect(await step()).toMatchObject({ ok: true });
    expect([rangeHolds(c), await owners(c)]).toEqual([0, all("2")]);
  },
);

test("[Y9] a switch-back moves the same claims back, within its time", async () => {
  const c = await start({ switchBackS: 3_600 });
  await claimed(c);
  const first = await moved(c);
  const back = (switchBackOf: Transfer) => prepare(c, { from: "2", to: "1", switchBackOf, id: c.uuid() });
  expect(await prepare(c, { from: "2", to: "3", switchBackOf: first })).toMatchObject({
    refusal: { code: "INVALID_ARGUMENT" },
  });
  const second = await value(c, back(first));
  await verified(c, second);
  await value(c, decide(c, second, "CUT"));
  await c.pass(20_000);
  expect(await owners(c)).toEqual(all("1"));
  const third = await moved(c);
  c.clock.jump(3_601_000);
  expect(await back(await get(c, third))).toMatchObject({ refusal: { reason: "SWITCH_BACK_OVER" } });
});

test("[Y9] [B2] a switch-back may be repeated when its time is over", async () => {
  const c = await start({ switchBackS: 3_600 });
  await claimed(c);
  const first = await moved(c);
  c.clock.jump(3_500_000);
  const id = c.uuid();
  const request = { ...call(c, "from", id), from: "2", scope: SCOPE };
  const { object } = c.ledger("1");
  const running = object.prepareTransfer({ ...request, switchBackOf: await get(c, first) });
  c.clock.jump(200_000);
  const switchBackOf = await get(c, first);
  expect(switchBackOf.decided?.ageMs).toBeGreaterThan(3_600_000);
  const joined = object.prepareTransfer({ ...request, switchBackOf });
  const [begun, same] = await c.clock.runUntil(Promise.all([running, joined]));
  expect([begun, same]).toMatchObject([{ ok: true }, { ok: true, value: { id, state: "PREPARED" } }]);
  const repeated = () => c.clock.runUntil(object.prepareTransfer({ ...request, switchBackOf }));
  expect(await repeated()).toMatchObject({ ok: true, value: { id, state: "PREPARED" } });
  expect(await prepare(c, { id: c.uuid(), to: "1", from: "2", switchBackOf })).toMatchObject({
    refusal: { reason: "SWITCH_BACK_OVER" },
  });
  await value(c, decide(c, await get(c, { ...first, id, to: "1" }), "ABORTED"));
  expect(await repeated()).toMatchObject({ refusal: { reason: "LEASE_ROLLED_BACK" } });
});

test("[Y9] a switch-back is refused once the destination has changed a name of the scope", async () => {
  for (const op of [
    { value: "new", scope: SCOPE },
    { kind: "replace", value: "name-1", scope: SCOPE },
    { kind: "destroy", value: "name-1", subject: null, source: null },
  ] satisfies OpSpec[]) {
    const c = await start();
    await claimed(c);
    const first = await moved(c);
    await commit(c, "2", [op]);
    expect(await prepare(c, { from: "2", to: "1", switchBackOf: first })).toMatchObject({
      refusal: { reason: "SCOPE_CHANGED" },
    });
    expect(rangeHolds(c)).toBe(0);
    await value(c, prepare(c, { from: "2", to: "1", party: "operator" }));
  }
});

test("[M7] an inquiry that ends many range holds rewrites few claims in one transaction", async () => {
  const c = await Cluster.start({ cells: ["1", "2"], shards: 1 });
  const scopes = Array.from({ length: 10 }, (_, n) => `scope-${n}`);
  for (const scope of scopes) {
    const names = Array.from({ length: 260 }, (_, n) => ({ value: `${scope}-${n}`, scope }));
    await commit(c, "1", names);
  }
  const { database, sql } = c.shard(0);
  const changes = (): number => Number(database.prepare("SELECT total_changes() AS n").get()?.["n"]);
  const transaction = sql.transaction.bind(sql);
  let most = 0;
  sql.transaction = (points, work) => {
    const before = changes();
    const done = transaction(points, work);
    most = Math.max(most, changes() - before);
    return done;
  };
  const transfers: Transfer[] = [];
  for (const scope of scopes) transfers.push(await value(c, prepare(c, { scope, party: "operator" })));
  c.fate = losesDecisions;
  for (const transfer of transfers) {
    await verified(c, transfer);
    expect(await decide(c, transfer, "CUT")).toMatchObject({ ok: true });
  }
  await c.pass(20_000);
  expect([rangeHolds(c), c.claims().filter(({ cell }) => cell === "2").length]).toEqual([0, 2_600]);
  expect(most).toBeLessThan(4_000);
});

test("[M7] [H7] a list of range holds reads no claims", async () => {
  const c = await Cluster.start({ cells: ["1", "2"], shards: 1 });
  await commit(
    c,
    "1",
    NAMES.map((name) => ({ value: name, scope: SCOPE })),
  );
  const { shards } = await prepared(c);
  const { object, sql } = c.shard(0);
  const reads: string[] = [];
  const allOf = sql.all.bind(sql);
  sql.all = (statement, ...bindings) => {
    reads.push(statement);
    return allOf(statement, ...bindings);
  };
  const page = await value(c, object.listHolds({ ...c.envelope, cell: "2", after: null, limit: 100 }));
  const [{ from, to } = {}] = shards;
  expect(page.ranges).toMatchObject([{ scope: SCOPE, counted: { from, to } }]);
  expect(reads.filter((statement) => statement.includes("claim"))).toEqual([]);
});

test("[M7] the statements about a scope read only its claims", async () => {
  const c = await start();
  await claimed(c);
  const { database } = c.shard(0);
  for (const [name, statement] of Object.entries(scopeStatements)) {
    const plan = JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all());
    expect([name, /USING (COVERING )?INDEX claim_by_scope/.test(plan)]).toEqual([name, true]);
    expect([name, plan.includes("SCAN claim")]).toEqual([name, false]);
  }
});

test("[Y2] [M6] a shard has a limited number of range holds", async () => {
  const c = await Cluster.start({ cells: ["1", "2"], shards: 1 });
  await commit(c, "1", ["ada"]);
  const { database } = c.shard(0);
  database.exec(
    `INSERT INTO range_hold
     SELECT 'scope-' || n, '8', '9', 'lease-' || n, 1, n, n, ${c.clock.now()}, '{}', 0, NULL
       FROM (WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 1000)
             SELECT n FROM count)`,
  );
  c.shard(0).restart();
  expect(await prepare(c)).toMatchObject({ refusal: { reason: "TOO_MANY_TRANSFERS" } });
  expect(database.prepare("SELECT 1 FROM range_hold").all()).toHaveLength(1_000);
});

test("[Y2] [M6] a ledger forgets the oldest transfers of a source, and none that can be undone", async () => {
  const c = await start({ keptTransfers: 10, switchBackS: 3_600 });
  await claimedScopes(c, ["1", "3"], 2);
  const open = await value(c, prepareFrom(c, "1", 0));
  const aborted = await value(c, prepareFrom(c, "3", 0));
  await value(c, decide(c, aborted, "ABORTED"));
  await claimed(c);
  const done = await moved(c);
  const { object } = c.ledger("2");
  const ids = async (): Promise<string[]> => {
    const page = { ...call(c, "operator", ""), before: null, from: null, limit: 100 };
    return (await value(c, object.listTransfers(page))).transfers.map((each) => each.id);
  };
  const prepareAndAbort = async (): Promise<void> => {
    await value(c, decide(c, await value(c, prepareFrom(c, "1", 1)), "ABORTED"));
    await c.pass(1_000);
  };
  for (let n = 0; n < 15; n += 1) await prepareAndAbort();
  // The latest 10 of cell 1, the one that is open, the one that can be undone, and the one of cell 3.
  expect(await ids()).toHaveLength(13);
  expect(await ids()).toEqual(expect.arrayContaining([open.id, done.id, aborted.id]));
  await value(c, prepare(c, { from: "2", to: "1", switchBackOf: done }));
  await c.pass(3_600_000);
  await prepareAndAbort();
  expect(await ids()).not.toContain(done.id);
});

/** Accepts the loss of the ledger of cell 1. */
const reconcile = (c: Cluster, removedAtMs: number | null = null) =>
  c.clock.runUntil(
    c.ledger("1").object.reconcile({
      ...c.envelope,
      dryRun: false,
      revokedKeys: [],
      removedAtMs,
      operator: { ...operator, reason: "restored" },
    }),
  );

/** Brings ledger 1 back to before some leases that shards have heard of. */
async function loseLedger(c: Cluster): Promise<void> {
  const goBack = saveLedger(c);
  await commit(c, "1", ["a", "b", "c", "d", "e", "f", "g", "h"]);
  goBack();
  expect(await begin(c, "1", ["noticed"])).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
}

/** Accepts the loss of shard 0, whether it has noticed it or not. */
async function acceptShardLoss(c: Cluster): Promise<void> {
  const { object } = c.shard(0);
  const { point } = await value(c, object.part(c.envelope));
  const message = {
    ...c.envelope,
    cells: ["1", "2", "3"],
    dryRun: false,
    operator: { ...operator, reason: "restored" },
    declared: { incarnation: point?.incarnation ?? 0 },
  };
  await value(c, object.reconcile(message));
}

/** Claims names of the scope for cell 2, and prepares a transfer of them to cell 1. */
async function preparedToFirst(c: Cluster, names: readonly string[]): Promise<Transfer> {
  await commit(
    c,
    "2",
    names.map((name) => ({ value: name, scope: SCOPE })),
  );
  return value(c, prepare(c, { from: "2", to: "1" }));
}

/** Runs a whole pass of the scrub of a part. */
async function scrub(c: Cluster, part: ReturnType<Cluster["ledger"] | Cluster["shard"]>): Promise<ScrubPass> {
  const step = (startWhen: ScrubBegin) =>
    value(c, part.object.scrub({ ...c.envelope, begin: startWhen, rules: [] }));
  let status = await step("always");
  while (status.running !== null) status = await step("if_none");
  if (status.last === null) throw new Error("no pass has ended");
  return status.last;
}

test("[Z3] a ledger's scrub finds a prepared transfer whose range hold is missing", async () => {
  const c = await start({ scanRows: 2 });
  await claimed(c);
  await commit(c, "1", [{ value: "elsewhere", scope: "other" }]);
  const { id } = await prepared(c);
  await value(c, prepare(c, { scope: "other" }));
  expect(await begin(c, "2", ["open"])).toMatchObject({ ok: true });
  expect(await scrub(c, c.ledger("2"))).toMatchObject({ rows: 3, findings: [], unchecked: 0 });
  const { database } = c.shard(1);
  database.prepare("UPDATE range_hold SET counter = counter + 1 WHERE lease = ?").run(id);
  c.shard(1).restart();
  const missing = { shard: 1, holds: 1 };
  expect((await scrub(c, c.ledger("2"))).findings).toEqual([
    expect.objectContaining({ kind: "missing_holds", table: "leases", lease: id, missing }),
  ]);
  c.fate = ({ to, method }) => (to === "shard 1" && method === "checkHolds" ? "lose" : "deliver");
  expect(await scrub(c, c.ledger("2"))).toMatchObject({ findings: [], unchecked: 2 });
});

test("[Z2] [Z3] a shard's scrub checks range holds, and ends one whose lease is unknown", async () => {
  const c = await start({ scanRows: 2 });
  await claimed(c);
  await commit(c, "1", [{ value: "elsewhere", scope: "other" }]);
  const { id, shards } = await prepared(c);
  const { id: other } = await value(c, prepare(c, { scope: "other" }));
  const shard = c.shard(1);
  const { rows, findings } = await scrub(c, shard);
  const stored = ["hold", "claim", "past_claim", "range_hold"].map((table) =>
    shard.database.prepare(`SELECT 1 FROM ${tableOf(table)}`).all(),
  );
  expect([rows, findings]).toEqual([stored.flat().length, []]);
  // The ledger has never heard of the transfer.
  c.ledger("2").database.prepare("DELETE FROM lease WHERE lease = ?").run(other);
  const setEpoch = shard.database.prepare("UPDATE range_hold SET epoch = ? WHERE lease = ?");
  setEpoch.run(1_000_000, id);
  const wrong = { kind: "wrong_epoch", table: "range_holds", key: null, lease: id, epoch: 1_000_000 };
  expect(await scrub(c, shard)).toMatchObject({ findings: [wrong], clearedHolds: 0 });
  setEpoch.run(shards.find((each) => each.shard === 1)?.epoch ?? 0, id);
  shard.restart();
  await c.clock.pass(c.limits.sweepAfterMs);
  expect(await scrub(c, shard)).toMatchObject({ findings: [], clearedHolds: 1, unchecked: 0 });
  expect(shard.database.prepare("SELECT lease FROM range_hold").all()).toEqual([{ lease: id }]);
});

test("[Y10] [H7] a ledger that went back gets its transfer again, and an operator decides it", async () => {
  const c = await start();
  await commit(c, "1", ["own"]);
  const goBack = saveLedger(c);
  const transfer = await preparedToFirst(c, NAMES);
  // Every shard hears of the grant.
  await commit(c, "1", ["a", "b", "c", "d", "e", "f", "g", "h"]);
  goBack();
  // No shard was told that a cut may follow, so the claims have not moved.
  expect(await owners(c)).toEqual(all("2"));
  expect(await begin(c, "1", ["noticed"])).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
  expect(await reconcile(c)).toMatchObject({ ok: true, value: { leases: 1 } });
  expect(await get(c, transfer)).toMatchObject({
    state: "PREPARED",
    isRebuilt: true,
    expected: transfer.expected,
  });
  expect(await owners(c)).toEqual(all("2"));
  expect(await decide(c, transfer, "CUT", "from")).toMatchObject({
    refusal: { reason: "TRANSFER_NOT_READY" },
  });
  await value(c, decide(c, transfer, "CUT", "operator"));
  await c.pass(20_000);
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("1")]);
});

test("[Y10] [H7] a shard that knows of the cut proves it to a ledger that has lost it", async () => {
  const c = await start();
  const many = Array.from({ length: 1_000 }, (_, n) => `many-${n}`);
  const transfer = await preparedToFirst(c, [...NAMES, ...many]);
  await verified(c, transfer);
  const goBack = saveLedger(c);
  await value(c, decide(c, transfer, "CUT"));
  await c.clock.pass(500);
  goBack();
  expect(await begin(c, "1", ["noticed"])).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
  expect(await reconcile(c)).toMatchObject({ ok: true });
  // The shards still have the counts from before the cut.
  const { expected } = transfer;
  expect(await get(c, transfer)).toMatchObject({ state: "CUT", isRebuilt: true, expected });
  expect(await decide(c, transfer, "ABORTED", "operator")).toMatchObject({
    refusal: { reason: "TRANSFER_CUT" },
  });
  await c.pass(30_000);
  expect(await get(c, transfer)).toMatchObject({ state: "FINISHED" });
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("1")]);
});

test("[N1] [Y10] the decision of a cut that a ledger has got back waits for no other message", async () => {
  const c = await start();
  // Not all of them are rewritten before the ledger goes back.
  const many = Array.from({ length: 1_000 }, (_, n) => `many-${n}`);
  await commit(c, "1", ["own"]);
  const goBack = saveLedger(c);
  const transfer = await preparedToFirst(c, [...NAMES, ...many]);
  await verified(c, transfer);
  await value(c, decide(c, transfer, "CUT"));
  await c.clock.pass(500);
  goBack();
  expect(await begin(c, "1", ["noticed"])).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
  expect(await reconcile(c)).toMatchObject({ ok: true });
  const open = privatePath(c.ledger("1").object, "#part.deliveries.#open") as Map<string, object>;
  expect(open.get(transfer.id)).toMatchObject({ isAwaited: true });
});

test("[Y10] [H7] a ledger that has lost a cut leaves the transfer to an operator", async () => {
  const c = await start();
  const transfer = await preparedToFirst(c, NAMES);
  await verified(c, transfer);
  const goBack = saveLedger(c);
  await value(c, decide(c, transfer, "CUT"));
  await c.pass(20_000);
  goBack();
  expect(await begin(c, "1", ["noticed"])).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
  expect(await reconcile(c)).toMatchObject({ ok: true });
  // No shard has a range hold, which would prove the cut. But the names have moved.
  expect(await get(c, transfer)).toMatchObject({ state: "PREPARED", isRebuilt: true });
  for (const party of ["from", "to"] as const)
    expect(await decide(c, transfer, "ABORTED", party)).toMatchObject({
      refusal: { reason: "TRANSFER_NOT_READY" },
    });
  await value(c, decide(c, transfer, "CUT", "operator"));
  await c.pass(20_000);
  expect(await get(c, transfer)).toMatchObject({ state: "FINISHED" });
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("1")]);
});

test("[Y6] [H3] a ledger that has lost a cut finds that out before it answers an abort", async () => {
  const c = await start();
  const transfer = await preparedToFirst(c, NAMES);
  c.ledger("1").restart();
  const goBack = saveLedger(c);
  await verified(c, transfer);
  // The new instance has sent nothing to the shards before the cut.
  await value(c, decide(c, transfer, "CUT"));
  await c.pass(20_000);
  goBack();
  expect(await get(c, transfer)).toMatchObject({ state: "PREPARED" });
  for (const party of ["to", "operator"] as const)
    expect(await decide(c, transfer, "ABORTED", party)).toMatchObject({
      refusal: { reason: "HISTORY_LOST" },
    });
  expect(await owners(c)).toEqual(all("1"));
});

test("[Y6] [M6] a new instance decides a transfer only once every shard has told what it knows", async () => {
  const c = await start();
  const transfer = await preparedToFirst(c, NAMES);
  c.ledger("1").restart();
  c.fate = ({ method, to }) => (method === "exchange" && to === "shard 1" ? "lose" : "deliver");
  const sent = c.messages("exchange").length;
  const refused = await Promise.all([1, 2, 3].map(() => decide(c, transfer, "ABORTED")));
  for (const answer of refused)
    expect(answer).toMatchObject({
      refusal: { code: "UNAVAILABLE", detail: "shard 1 has not told what it knows of this cell; retry" },
    });
  // Calls at the same time share the messages.
  expect(c.messages("exchange")).toHaveLength(sent + 3);
  c.fate = () => "deliver";
  await value(c, decide(c, transfer, "ABORTED"));
  await c.pass(20_000);
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all("2")]);
});

test.each([
  ["ABORTED", "kept", "2"],
  ["ABORTED", "forgotten", "2"],
  ["CUT", "kept", "1"],
  ["CUT", "forgotten", "1"],
] as const)("[Y10] [H7] a decision %s, whose lease is %s, stays", async (outcome, lease, owner) => {
  const c = await start();
  const transfer = await preparedToFirst(c, NAMES);
  await verified(c, transfer);
  const { database } = c.shard(0);
  database.exec("CREATE TABLE held AS SELECT * FROM range_hold");
  await value(c, decide(c, transfer, outcome));
  await c.pass(20_000);
  const decided = await get(c, transfer);
  if (lease === "forgotten") c.ledger("1").database.exec("DELETE FROM lease");
  const goBack = saveLedger(c);
  await commit(c, "1", ["a", "b", "c", "d", "e", "f", "g", "h"]);
  goBack();
  // The shard lost that it had confirmed the decision.
  database.exec("INSERT INTO range_hold SELECT * FROM held");
  c.shard(0).restart();
  expect(await begin(c, "1", ["noticed"])).toMatchObject({ refusal: { reason: "HISTORY_LOST" } });
  expect(await reconcile(c)).toMatchObject({ ok: true });
  const { state, isRebuilt, shards } = await get(c, transfer);
  expect({ state: state === "FINISHED" ? "CUT" : state, isRebuilt }).toEqual({
    state: outcome,
    isRebuilt: false,
  });
  expect(shards.toSorted((a, b) => a.shard - b.shard)).toEqual(decided.shards);
  await c.pass(30_000);
  expect([rangeHolds(c), await owners(c)]).toEqual([0, all(owner)]);
  expect((await get(c, transfer)).state).toBe(decided.state);
});

test.each(["kept", "forgotten"] as const)(
  "[Y10] [B4] an execution that was never granted moves nothing, if the lease of its cut is %s",
  async (lease) => {
    const c = await start();
    const transfer = await preparedToFirst(c, NAMES);
    const [{ shard }] = opsOf(c.envelope.placement, ["fresh"]) as [Op];
    const late = c
      .messages("exchange")
      .findLast(({ to, message }) => to === `shard ${shard}` && (message as Exchange).prepares.length > 0);
    await verified(c, transfer);
    await value(c, decide(c, transfer, "CUT"));
    await c.pass(20_000);
    const finished = await get(c, transfer);
    await commit(c, "2", [{ value: "fresh", scope: SCOPE }]);
    if (lease === "forgotten") c.ledger("1").database.exec("DELETE FROM lease");
    await loseLedger(c);
    await value(c, c.shard(shard).object.exchange(late?.message as Exchange));
    expect(rangeHolds(c)).toBe(1);
    expect(await reconcile(c)).toMatchObject({ ok: true });
    await c.pass(30_000);
    const { state, shards } = await get(c, transfer);
    expect([state, shards]).toEqual(["FINISHED", finished.shards]);
    expect([rangeHolds(c), await owners(c, ["fresh", ...NAMES])]).toEqual([0, ["2", ...all("1")]]);
  },
);

test.each(["with its ledger", "alone"] as const)(
  "[Y10] [S2] a shard that goes back %s undoes no switch-back that was finished",
  async (how) => {
    const c = await start();
    const first = await preparedToFirst(c, NAMES);
    await verified(c, first);
    const goBack = saveShard(c);
    await value(c, decide(c, first, "CUT"));
    await c.pass(20_000);
    const back = await value(c, prepare(c, { switchBackOf: await get(c, first) }));
    await verified(c, back);
    await value(c, decide(c, back, "CUT"));
    await c.pass(20_000);
    if (how === "with its ledger") await loseLedger(c);
    // The shard has the range hold of the first transfer again.
    goBack();
    await acceptShardLoss(c);
    if (how === "with its ledger") expect(await reconcile(c)).toMatchObject({ ok: true });
    await c.pass(60_000);
    expect([(await get(c, first)).state, (await get(c, back)).state]).toEqual(["FINISHED", "FINISHED"]);
    expect([rangeHolds(c), await owners(c)]).toEqual([0, all("2")]);
  },
);

test("[Y1] [B2] a late prepare changes no transfer that was decided, whose lease is forgotten", async () => {
  const c = await start();
  await claimed(c);
  const transfer = await moved(c);
  c.ledger("2").database.exec("DELETE FROM lease");
  expect(await prepare(c, { id: transfer.id, from: "3", scope: "another" })).toMatchObject({
    refusal: { reason: "LEASE_ID_REUSED" },
  });
  expect(await prepare(c, { id: transfer.id })).toMatchObject({ ok: true, value: { state: "FINISHED" } });
  expect([rangeHolds(c), await get(c, transfer)]).toMatchObject([0, { state: "FINISHED", from: "1" }]);
});

test("[G10] [M3] a shard that waits for a transfer before it hands over is idle", async () => {
  const c = await start();
  await claimed(c);
  const growing = new Growing(c);
  const transfer = await prepared(c);
  await growing.start(5);
  // No shard with a range hold says so. But a loss may bring a range hold back.
  await growing.cut(copiedBy(growing.running.id, 3));
  growing.learn();
  for (const shard of [0, 1, 2]) await growing.step(shard);
  const shards = [0, 1, 2].map((shard) => c.shard(shard).object);
  const rings = shards.map((object) => vi.spyOn(object, "alarm"));
  await c.pass(600_000);
  // Only to ask about their range holds, with longer and longer pauses.
  for (const { mock } of rings) expect(mock.calls.length).toBeLessThan(20);
  await value(c, decide(c, transfer, "ABORTED"));
  await c.pass(20_000);
  expect(await owners(c)).toEqual(all("1"));
});

test("[G10] a growth waits for the end of a transfer, and a transfer for the end of a growth", async () => {
  const c = await start();
  await claimed(c);
  const growing = new Growing(c);
  const transfer = await prepared(c);
  await growing.start(5);
  expect(await growing.step(0)).toMatchObject({ refusal: { code: "UNAVAILABLE" } });
  expect(await growing.progress()).toMatchObject([0, 1, 2].map((shard) => ({ shard, waitsFor: "transfer" })));
  await verified(c, transfer);
  await value(c, decide(c, transfer, "CUT"));
  await c.pass(20_000);
  await growing.stepAll("copied");
  // It would hold a scope whose names are copied already.
  expect(await prepare(c, { from: "2", to: "1" })).toMatchObject({ refusal: { code: "UNAVAILABLE" } });
  await growing.cut();
  growing.learn();
  await growing.stepAll("done");
  await growing.finish();
  expect(await owners(c)).toEqual(NAMES.map(() => "2"));
  // The claims of each shard are not those that it has moved (Y9).
  const first = await get(c, transfer);
  expect(await prepare(c, { from: "2", to: "1", switchBackOf: first })).toMatchObject({
    refusal: { reason: "SCOPE_CHANGED" },
  });
  const back = await value(c, prepare(c, { from: "2", to: "1" }));
  expect(back.shards).toHaveLength(5);
  await value(c, decide(c, back, "ABORTED"));
});

test("[N1] [Y2] what was committed is in the way of one try of a transfer at most", async () => {
  // Begins come so often that decisions wait for them.
  const c = await Cluster.start({ shards: 1, limits: { decisionWaitMs: 5, sweepAfterMs: 600_000 } });
  const own = async (name: string): Promise<void> => {
    const lease = c.uuid();
    expect(await begin(c, "1", [{ value: name, scope: SCOPE }], lease)).toMatchObject({ ok: true });
    await value(c, c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  };
  for (let n = 0; n < 20; n += 1) {
    await own(`warm-${n}`);
    await c.pass(200);
  }
  await own("newest");
  expect(c.holds()).toHaveLength(1);
  const tryOnce = () =>
    c.clock.runUntil(
      c.ledger("2").object.prepareTransfer({
        ...c.envelope,
        requestId: operator.requestId,
        caller: { ...callerOf(), role: "operator" },
        party: "operator",
        transfer: c.uuid(),
        from: "1",
        scope: SCOPE,
      }),
    );
  expect(await tryOnce()).toMatchObject({ ok: false, refusal: { reason: "TRANSFER_BLOCKED" } });
  await c.clock.pass(50);
  expect(await tryOnce()).toMatchObject({ ok: true });
});
