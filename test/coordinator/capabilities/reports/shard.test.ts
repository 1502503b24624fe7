/** What a shard tells routers: positions, whether a key is settled, and which keys were put on hold. */
import { describe, expect, test } from "vitest";
import { keyHash } from "../../../../src/coordinator/kernel/key-hash.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { LookupAnswer, Outcome } from "../../../../src/coordinator/kernel/messages.ts";
import type { Report } from "../../../../src/coordinator/capabilities/reports/messages.ts";
import { migrate } from "../../../support/migrate.ts";
import { reportAfter } from "../../../../src/coordinator/capabilities/reports/shard.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { ShardLog } from "../../../../src/coordinator/kernel/shard/shard-log.ts";
import { isDecision } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { NodeSql } from "../../../support/node-sql.ts";
import { beginRequest, decideRequest, keyOf, operator, type OpSpec } from "../../../support/ops.ts";

const source = { type: "RAILS_TABLE_USERS", id: "1" } as const;
const LOG_ROWS = 16_384;

const newCluster = (): Promise<Cluster> => Cluster.start({ shards: 1, limits: { sweepAfterMs: 600_000 } });

const rowCount = (c: Cluster): number =>
  c.shard(0).sql.all<{ n: number }>("SELECT count(*) AS n FROM log")[0]?.n ?? 0;

async function begin(c: Cluster, ...specs: OpSpec[]): Promise<string> {
  const lease = c.uuid();
  const begun = await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, specs)));
  expect(begun).toMatchObject({ ok: true });
  return lease;
}

const decide = (c: Cluster, lease: string, outcome: Outcome): Promise<Result<unknown>> =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, outcome)));

const value = <T>(reply: Result<T>): T => {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
};

const lookUp = async (c: Cluster, ...names: string[]): Promise<LookupAnswer> =>
  value(
    await c.clock.runUntil(
      c.shard(0).object.lookup({ ...c.envelope, keys: names.map((name) => keyOf("ROUTES", name)) }),
    ),
  );

const reportOf = (c: Cluster, after: number | null): Promise<Result<Report>> =>
  c.clock.runUntil(c.shard(0).object.report({ ...c.envelope, after }));

const hashOf = (name: string): string => keyHash(keyOf("ROUTES", name));

const listed = ({ held }: Report): string[] => held.flatMap(({ keys }) => keys);

describe("the keys that a transaction puts on hold", () => {
  test("[Q1] case 10: are in its log row, and the transaction has no row more", async () => {
    const c = await newCluster();
    await begin(c, { value: "ada", source });
    const before = rowCount(c);
    const start = value(await reportOf(c, null));
    const lease = await begin(c, { value: "Grace", source }, { value: "linus", source });
    expect(rowCount(c)).toBe(before + 1);
    const report = value(await reportOf(c, start.through));
    expect(listed(report).toSorted()).toEqual([hashOf("grace"), hashOf("linus")].toSorted());
    // The decision ends the holds. No answer was kept meanwhile, so it lists nothing.
    await decide(c, lease, "COMMITTED");
    await c.pass(100);
    expect(rowCount(c)).toBe(before + 2);
    const later = value(await reportOf(c, report.through));
    expect(later).toMatchObject({ held: [], hasMore: false });
    expect(later.through).toBeGreaterThan(report.through);
  });

  test("[Q1] are not those of a refused begin", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    await c.pass(100);
    const start = value(await reportOf(c, null));
    const again = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), [{ value: "ada", source }]));
    expect(await c.clock.runUntil(again)).toMatchObject({ ok: false });
    expect(value(await reportOf(c, start.through))).toMatchObject({ through: start.through, held: [] });
  });
});

describe("the answer about a key", () => {
  test("[Q2] is settled only without a hold, also if the hold is decided or does not show", async () => {
    const c = await newCluster();
    const free = await lookUp(c, "ada");
    expect(free).toMatchObject({ found: [{ kind: "none" }], settled: [true] });
    c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
    const lease = await begin(c, { value: "ada", source });
    expect(await lookUp(c, "ada", "grace")).toMatchObject({
      found: [{ record: { status: "LEASE_CREATING" } }, { kind: "none" }],
      settled: [false, true],
    });
    await decide(c, lease, "COMMITTED");
    // The shard learns of the decision by asking, in this call.
    expect(await lookUp(c, "ada")).toMatchObject({
      found: [{ record: { status: "ACTIVE" } }],
      settled: [false],
    });
    expect(await lookUp(c, "ada")).toMatchObject({ settled: [true] });
  });

  test("[Q2] has the position from before its first turn, and later changes are reported", async () => {
    const c = await newCluster();
    const { position } = await lookUp(c, "ada");
    const lease = await begin(c, { value: "ada", source });
    expect(listed(value(await reportOf(c, position)))).toEqual([hashOf("ada")]);
    await decide(c, lease, "COMMITTED");
    await c.pass(100);
    const later = await lookUp(c, "ada");
    expect(later.position).toBeGreaterThan(position);
    expect(listed(value(await reportOf(c, later.position)))).toEqual([]);
  });
});

describe("a report", () => {
  test("[Q3] is refused if the router has seen more than the shard has, and no loss is noticed", async () => {
    const c = await newCluster();
    await begin(c, { value: "ada", source });
    const { through } = value(await reportOf(c, null));
    expect(await reportOf(c, through + 1)).toMatchObject({ refusal: { code: "UNAVAILABLE" } });
    expect(await lookUp(c, "ada")).toMatchObject({ position: through });
  });

  test("[Q3] is refused once a loss was accepted after its position", async () => {
    const c = await newCluster();
    const lease = await begin(c, { value: "ada", source });
    await decide(c, lease, "COMMITTED");
    await c.pass(100);
    const { through } = value(await reportOf(c, null));
    const shard = c.shard(0).object;
    const status = value(await c.clock.runUntil(shard.part(c.envelope)));
    const declared = { incarnation: status.point?.incarnation ?? 0 };
    const accepted = shard.reconcile({
      ...c.envelope,
      cells: ["1"],
      dryRun: false,
      declared,
      operator,
    });
    expect(await c.clock.runUntil(accepted)).toMatchObject({ ok: true });
    const pruned = { refusal: { code: "FAILED_PRECONDITION", reason: "REPORT_PRUNED" } };
    expect(await reportOf(c, through)).toMatchObject(pruned);
    const start = value(await reportOf(c, null));
    expect(value(await reportOf(c, start.through))).toMatchObject({ held: [], hasMore: false });
    // Also for the next instance, which reads the log again.
    c.shard(0).restart();
    expect(await reportOf(c, through)).toMatchObject(pruned);
    expect(await reportOf(c, start.through)).toMatchObject({ ok: true });
  });
});

describe("the pages of a report", () => {
  function newLog(): { sql: NodeSql; log: ShardLog } {
    const sql = new NodeSql();
    migrate(sql, shardSchema);
    return { sql, log: new ShardLog(sql, { now: () => 1_000 }) };
  }

  const append = ({ sql, log }: { sql: NodeSql; log: ShardLog }, keys: number): void =>
    sql.transaction(["exchange"], () => {
      const epoch = log.nextEpoch();
      for (let key = 0; key < keys; key += 1) log.noteHeld(hashOf(`name-${epoch}-${key}`));
      log.append();
    });

  /** Reads all pages after a position, with the keys in their order. */
  function pages(log: ShardLog, after: number): Report[] | undefined {
    const all: Report[] = [];
    for (let position = after; ;) {
      const page = reportAfter(log, position);
      if (page === undefined) return undefined;
      all.push(page);
      if (!page.hasMore) return all;
      position = page.through;
    }
  }

  test("[Q3] end after 256 transactions or 400 keys, and full pages never change", () => {
    const store = newLog();
    for (let round = 0; round < 600; round += 1) append(store, 1);
    const before = pages(store.log, 0) ?? [];
    expect(before.map(({ after, through, hasMore }) => [after, through, hasMore])).toEqual([
      [0, 256, true],
      [256, 512, true],
      [512, 600, false],
    ]);
    for (let round = 0; round < 6; round += 1) append(store, 150);
    const after = pages(store.log, 0) ?? [];
    expect(after.slice(0, 2)).toEqual(before.slice(0, 2));
    expect(after.slice(2).map(({ through, hasMore, held }) => [through, hasMore, held.length])).toEqual([
      [603, true, 91],
      [606, true, 3],
      [606, false, 0],
    ]);
    append(store, 5_000);
    expect(pages(store.log, 606)?.map((page) => listed(page).length)).toEqual([5_000, 0]);
  });

  test("[Q3] list every key once, after any position, also where the ring of the log begins again", () => {
    const store = newLog();
    for (let round = 0; round < LOG_ROWS + 1_000; round += 1) append(store, round % 3);
    const again = new ShardLog(store.sql, { now: () => 1_000 });
    for (const log of [store.log, again]) {
      for (const after of [1_001, 5_000, LOG_ROWS - 1, LOG_ROWS, LOG_ROWS + 1, LOG_ROWS + 999]) {
        const read = pages(log, after) ?? [];
        const expected = Array.from({ length: LOG_ROWS + 1_000 - after }, (_, index) => after + index + 1)
          // Transaction n was round n - 1.
          .map((position) => ({ position, count: (position - 1) % 3 }))
          .filter(({ count }) => count > 0);
        expect(read.flatMap(({ held }) => held.map(({ position }) => position))).toEqual(
          expected.map(({ position }) => position),
        );
        expect(read.flatMap(listed)).toHaveLength(expected.reduce((sum, { count }) => sum + count, 0));
        expect(read.at(-1)?.through).toBe(LOG_ROWS + 1_000);
      }
      expect(pages(log, 1_000)).toBeUndefined();
      expect(pages(log, 0)).toBeUndefined();
    }
  });
});

test("[Q9] begin and commit answer the positions from which on lookups show the lease", async () => {
  const c = await Cluster.start({ shards: 2, limits: { sweepAfterMs: 600_000 } });
  const specs = ["ada", "grace", "linus", "alan"].map((name) => ({ value: name, source }));
  const lease = c.uuid();
  const request = beginRequest(c.envelope, lease, specs);
  const begun = value(await c.clock.runUntil(c.ledger("1").object.begin(request)));
  const { positions = {} } = begun.lease;
  expect(Object.keys(positions).length).toBeGreaterThan(0);
  for (const [shard, position] of Object.entries(positions)) {
    const report = c.shard(Number(shard)).object.report({ ...c.envelope, after: position - 1 });
    expect(listed(value(await c.clock.runUntil(report))).length).toBeGreaterThan(0);
  }
  expect(value(await c.clock.runUntil(c.ledger("1").object.begin(request))).lease).toMatchObject({
    positions,
  });
  expect(await decide(c, lease, "COMMITTED")).toMatchObject({ value: { positions } });
});

test("a shard counts its reports", async () => {
  const c = await newCluster();
  await reportOf(c, null);
  expect(value(await c.clock.runUntil(c.shard(0).object.metrics(c.envelope))).reports).toBe(1);
});
