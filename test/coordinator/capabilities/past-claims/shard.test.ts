/** Tests of the claims that a shard keeps after they have ended (K1 to K5). */
import { expect, test, vi } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Outcome } from "../../../../src/coordinator/kernel/messages.ts";
import type {
  ListPeriods,
  PeriodPage,
} from "../../../../src/coordinator/capabilities/past-claims/messages.ts";
import { pastClaimsStatement } from "../../../../src/coordinator/capabilities/past-claims/shard.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, decideRequest, keyOf, operator, type OpSpec } from "../../../support/ops.ts";

const key = keyOf("ROUTES", "ada");
const subject = (id: string): Pick<OpSpec, "subject"> => ({ subject: { type: "NAMESPACE", id } });

const start = (limits: Partial<Limits> = {}): Promise<Cluster> => Cluster.start({ shards: 1, limits });

async function lease(
  c: Cluster,
  ops: readonly (OpSpec | string)[],
  cell = "1",
  outcome: Outcome = "COMMITTED",
): Promise<string> {
  const id = c.uuid();
  const { object } = c.ledger(cell);
  expect(await c.clock.runUntil(object.begin(beginRequest(c.envelope, id, ops)))).toMatchObject({ ok: true });
  expect(await c.clock.runUntil(object.decide(decideRequest(c.envelope, id, outcome)))).toMatchObject({
    ok: true,
  });
  c.clock.jump(1_000);
  return id;
}

const destroy = (value: string): OpSpec => ({ kind: "destroy", value, subject: null, source: null });

async function periods(c: Cluster, more: Partial<ListPeriods> = {}): Promise<PeriodPage> {
  const message = { ...c.envelope, key, before: null, atMs: null, limit: 10, ...more };
  const answer = await c.clock.runUntil(c.shard(0).object.listPeriods(message));
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

const erase = (c: Cluster, more: { dryRun?: boolean } = {}) =>
  c.clock.runUntil(c.shard(0).object.erasePeriods({ ...c.envelope, key, dryRun: false, ...more }));

const rows = (c: Cluster): number =>
  (c.shard(0).database.prepare("SELECT count(*) AS n FROM past_claim").get() as { n: number }).n;

test("[K1] a destroy and a replace each end a period, and a create and a rollback end none", async () => {
  const c = await start();
  await lease(c, [{ value: "ada", ...subject("1") }]);
  expect(rows(c)).toBe(0);
  await lease(c, [{ kind: "replace", value: "Ada", ...subject("9") }], "1", "ROLLED_BACK");
  expect(rows(c)).toBe(0);
  const replaced = await lease(c, [{ kind: "replace", value: "Ada", ...subject("2") }]);
  const destroyed = await lease(c, [destroy("ADA")]);
  await lease(c, [{ value: "ada", ...subject("3") }], "2");
  const { periods: found, next, completeSinceMs } = await periods(c);
  expect(found).toMatchObject([
    { cell: "2", value: "ada", subject: { id: "3" }, untilMs: null, endedBy: null },
    { cell: "1", value: "Ada", subject: { id: "2" }, endedBy: { lease: destroyed, kind: "destroy" } },
    { cell: "1", value: "ada", subject: { id: "1" }, endedBy: { lease: replaced, kind: "replace" } },
  ]);
  expect([next, completeSinceMs]).toEqual([null, null]);
  const [third, second, first] = found;
  expect(first?.untilMs).toBe(second?.fromMs);
  expect(second?.untilMs).toBeLessThan(third?.fromMs ?? 0);
  expect((third?.epoch ?? 0) > (second?.epoch ?? 0) && (second?.epoch ?? 0) > (first?.epoch ?? 0)).toBe(true);
});

test("[K2] pages continue where the last one ended, and one moment has at most one owner", async () => {
  const c = await start({ scanRows: 2 });
  for (let n = 0; n < 3; n += 1) {
    await lease(c, ["ada"]);
    await lease(c, [destroy("ada")]);
  }
  await lease(c, ["ada"], "2");
  const all = [];
  for (let page = await periods(c); ; page = await periods(c, { before: page.next })) {
    expect(page.periods.length).toBeLessThanOrEqual(2);
    all.push(...page.periods);
    if (page.next === null) break;
  }
  expect(all.map(({ cell }) => cell)).toEqual(["2", "1", "1", "1"]);
  const first = all.at(-1);
  const at = async (atMs: number): Promise<number[]> => {
    const found = [];
    for (let page = await periods(c, { atMs }); ; page = await periods(c, { atMs, before: page.next })) {
      found.push(...page.periods.map(({ epoch }) => epoch));
      if (page.next === null) return found;
    }
  };
  expect(await at(first?.fromMs ?? 0)).toEqual([first?.epoch]);
  // A period does not have the moment of its end.
  expect(await at(first?.untilMs ?? 0)).toEqual([]);
  expect(await at((first?.fromMs ?? 0) - 1)).toEqual([]);
  expect(await at(c.clock.now())).toEqual([all[0]?.epoch]);
});

test("[K2] a destroy that is decided but not delivered has ended the period", async () => {
  const c = await start();
  await lease(c, ["ada"]);
  const id = c.uuid();
  const { object } = c.ledger("1");
  await c.clock.runUntil(object.begin(beginRequest(c.envelope, id, [destroy("ada")])));
  expect((await periods(c)).periods).toMatchObject([{ untilMs: null }]);
  c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
  await c.clock.runUntil(object.decide(decideRequest(c.envelope, id, "COMMITTED")));
  expect((await periods(c)).periods).toMatchObject([{ endedBy: { lease: id } }]);
  c.fate = ({ method }) => (method === "inquire" ? "lose" : "deliver");
  expect((await periods(c)).periods).toHaveLength(1);
});

test("[K2] [M7] a read visits no more rows than segments and results", async () => {
  const c = await start();
  await lease(c, ["ada"]);
  const plan = c
    .shard(0)
    .database.prepare(`EXPLAIN QUERY PLAN ${pastClaimsStatement("past_claim.*")}`)
    .all(key.type, key.canonical, 9, 10) as { detail: string }[];
  expect(plan.map(({ detail }) => detail).join("\n")).not.toContain("TEMP B-TREE");
  expect(plan.map(({ detail }) => detail)).toContainEqual(
    "SEARCH past_claim USING PRIMARY KEY (segment=? AND bucket_type=? AND canonical=? AND epoch<?)",
  );
});

test("[K3] past claims are dropped when they are too old, and the answer says so", async () => {
  const c = await start({ nameHistoryS: 6_400 });
  await lease(c, ["ada", "old"]);
  await lease(c, [destroy("ada"), destroy("old")]);
  c.clock.jump(6_000_000);
  await lease(c, ["ada"]);
  await lease(c, [destroy("ada")]);
  const tick = async (): Promise<void> => {
    await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
    await c.pass(10_000);
  };
  await tick();
  expect([rows(c), (await periods(c)).completeSinceMs]).toEqual([3, null]);
  c.clock.jump(500_000);
  await tick();
  const { periods: left, completeSinceMs } = await periods(c);
  expect(rows(c)).toBe(1);
  expect(left).toHaveLength(1);
  expect(completeSinceMs).toBeLessThan(left[0]?.fromMs ?? 0);
  // A new instance knows it too, and drops the rest when nothing has happened for long.
  c.shard(0).restart();
  expect((await periods(c)).completeSinceMs).toBe(completeSinceMs);
  c.clock.jump(7_000_000);
  await tick();
  expect(rows(c)).toBe(0);
});

test("[K3] [M6] above the limit of rows, the oldest past claims are dropped", async () => {
  const c = await start({ nameHistoryRows: 64 });
  for (let n = 0; n < 100; n += 1) {
    await lease(c, [`n${n}`]);
    await lease(c, [destroy(`n${n}`)]);
    if (n === 50) c.shard(0).restart();
  }
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  await c.pass(60_000);
  expect(rows(c)).toBe(64);
  const oldest = await periods(c, { key: keyOf("ROUTES", "n36") });
  expect(oldest.periods).toHaveLength(1);
  expect((await periods(c, { key: keyOf("ROUTES", "n35") })).periods).toEqual([]);
  expect(oldest.completeSinceMs).toBeLessThanOrEqual(oldest.periods[0]?.untilMs ?? 0);
});

test("[K3] [M4] past claims of a clock that was ahead are dropped in time", async () => {
  const c = await start({ nameHistoryS: 6_400 });
  c.clock.jump(1_000_000_000);
  await lease(c, ["ada"]);
  await lease(c, [destroy("ada")]);
  c.clock.jump(-1_000_000_000);
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  await c.pass(10_000);
  c.clock.jump(6_600_000);
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  await c.pass(10_000);
  expect(rows(c)).toBe(0);
});

test("[H4] [K3] a lost shard drops no past claims, and sets no alarm for them", async () => {
  const c = await start({ nameHistoryS: 6_400 });
  await lease(c, ["ada"]);
  await lease(c, [destroy("ada")]);
  await c.pass(20_000);
  const node = c.shard(0);
  const seen = { incarnation: 2 ** 51, position: 0 };
  expect(await c.clock.runUntil(node.object.ping({ ...c.envelope, seen }))).toMatchObject({ ok: false });
  c.clock.jump(7_000_000);
  node.restart();
  await c.clock.runUntil(node.object.part(c.envelope));
  const alarm = vi.spyOn(node.object, "alarm");
  await c.pass(60_000);
  expect(alarm.mock.calls.length).toBeLessThanOrEqual(1);
  expect(rows(c)).toBe(1);
  const more = { cells: ["1", "2"], dryRun: false, operator };
  expect(await c.clock.runUntil(node.object.reconcile({ ...c.envelope, ...more }))).toMatchObject({
    ok: true,
  });
  await c.pass(10_000);
  expect(rows(c)).toBe(0);
});

test("[K4] a shard that accepts a loss is complete from then on at the earliest", async () => {
  const c = await start();
  await lease(c, ["ada"]);
  await lease(c, [destroy("ada")]);
  const { object } = c.shard(0);
  const status = await c.clock.runUntil(object.part(c.envelope));
  const incarnation = status.ok ? (status.value.point?.incarnation ?? 0) : 0;
  const more = { cells: ["1", "2"], dryRun: false, declared: { incarnation }, operator };
  const acceptedMs = c.clock.now();
  expect(await c.clock.runUntil(object.reconcile({ ...c.envelope, ...more }))).toMatchObject({ ok: true });
  c.clock.jump(60_000);
  // While it is reconciling, no earlier moment is certain.
  expect((await periods(c)).completeSinceMs).toBe(c.clock.now());
  expect((await periods(c)).periods).toHaveLength(1);
  await c.clock.runUntil(object.finishReconciliation({ ...c.envelope, operator, removedCells: [] }));
  const { completeSinceMs } = await periods(c);
  expect(completeSinceMs).toBeGreaterThanOrEqual(acceptedMs + 60_000);
  c.shard(0).restart();
  expect((await periods(c)).completeSinceMs).toBe(completeSinceMs);
});

test("[K5] [O1] an erasure has one audit entry without the name, and leaves the claim", async () => {
  const c = await start({ scanRows: 2 });
  for (let n = 0; n < 3; n += 1) {
    await lease(c, ["ada"]);
    await lease(c, [destroy("ada")]);
  }
  await lease(c, ["ada"]);
  const entries = async () => {
    const page = await c.clock.runUntil(
      c.shard(0).object.pullAudit({ ...c.envelope, copied: null, limit: 10 }),
    );
    return page.ok ? page.value.entries : [];
  };
  expect(await erase(c, { dryRun: true })).toMatchObject({ ok: true, value: { erased: 2, hasMore: true } });
  expect([rows(c), await entries()]).toEqual([3, []]);
  expect(await erase(c)).toMatchObject({ ok: true, value: { erased: 2, hasMore: true } });
  expect(await erase(c)).toMatchObject({ ok: true, value: { erased: 1, hasMore: false } });
  expect(await erase(c)).toMatchObject({ ok: true, value: { erased: 0, hasMore: false } });
  expect((await periods(c)).periods).toMatchObject([{ untilMs: null }]);
  const found = await entries();
  expect(found).toMatchObject([
    { action: "erase_history", before: '{"periods":2}' },
    { action: "erase_history", before: '{"periods":1}' },
  ]);
  expect(JSON.stringify(found)).not.toContain("ada");
  // The cron learns of them, and the shard drops them when they were copied (O2).
  expect(await c.clock.runUntil(c.shard(0).object.ping(c.envelope))).toMatchObject({
    value: { auditEntries: 2 },
  });
  const copied = found[1]?.id ?? null;
  await c.clock.runUntil(c.shard(0).object.pullAudit({ ...c.envelope, copied, limit: 10 }));
  expect(await entries()).toEqual([]);
});

test("[K5] [O3] without room for the entry, nothing is erased", async () => {
  const c = await start({ auditEntries: 1 });
  await lease(c, ["ada", "bob"]);
  await lease(c, [destroy("ada"), destroy("bob")]);
  expect(await erase(c)).toMatchObject({ ok: true });
  const other = { ...c.envelope, key: keyOf("ROUTES", "bob"), dryRun: false };
  expect(await c.clock.runUntil(c.shard(0).object.erasePeriods(other))).toMatchObject({
    refusal: { reason: "AUDIT_FULL" },
  });
  expect(rows(c)).toBe(1);
});
