/**
 * Counts rows as SQLite reports them (docs/reference/limits.md). test/bench/counts.test.ts counts those of a
 * lease over its whole life.
 */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { configOf } from "../../../src/coordinator/env.ts";
import { defaultLimits } from "../../../src/common/limits.ts";
import type { DigestCursor, ListCursor } from "../../../src/coordinator/capabilities/records/messages.ts";
import { sourceOrder } from "../../../src/common/source-order.ts";
import { objectPorts } from "../../../src/coordinator/objects/ports.ts";
import { untilApplied } from "../../support/applied.ts";
import { addHolds } from "../../support/holds.ts";
import { beginRequest, callerOf, decideRequest, opsOf, type OpSpec } from "../../support/ops.ts";
import { bucketType, bucketTypeNames, sourceType } from "../../support/types.ts";
import { stubsOf } from "../../support/workerd/stubs.ts";
import { env, startObjects } from "./workerd-objects.ts";

interface Counter {
  rowsWritten: number;
  rowsRead: number;
}

/** Counts every statement that the object's current instance runs from now on. */
async function count(stub: DurableObjectStub): Promise<Counter> {
  const counter: Counter = { rowsWritten: 0, rowsRead: 0 };
  await runInDurableObject(stub, (_, state) => {
    const { sql } = state.storage;
    const exec = sql.exec.bind(sql);
    sql.exec = ((statement: string, ...bindings: unknown[]) => {
      const cursor = exec(statement, ...bindings);
      // The cursor is read to its end first, because rows are written while it runs.
      const rows = cursor.toArray();
      counter.rowsWritten += cursor.rowsWritten;
      counter.rowsRead += cursor.rowsRead;
      return { toArray: () => rows };
    }) as typeof sql.exec;
  });
  return counter;
}

const objects = stubsOf(env);

test("[K1] a claim that ends costs one row more than its destroy", async () => {
  const w = await startObjects();
  const specs: OpSpec[] = Array.from({ length: 40 }, (_, n) => ({ value: `past-${n}` }));
  const shards = [...new Set(opsOf(w.envelope.placement, specs).map(({ shard }) => shard))];
  const run = async (kind: OpSpec["kind"]): Promise<void> => {
    const lease = w.uuid();
    const ops = specs.map(({ value }) =>
      kind === "destroy" ? { kind, value, subject: null, source: null } : { value },
    );
    await w.ledger("1").begin(beginRequest(w.envelope, lease, ops));
    await w.ledger("1").decide(decideRequest(w.envelope, lease, "COMMITTED"));
    await untilApplied(w.ledger("1"), w.envelope);
  };
  // Each shard has begun its first segment.
  await run("create");
  await run("destroy");
  await run("create");
  const counters = await Promise.all(shards.map((shard) => count(objects.shard(shard))));
  await run("destroy");
  const written = counters.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
  // For each name, the claim is deleted and the past claim is kept. The rows of the log have the holds.
  expect(written).toBeLessThanOrEqual(2 * specs.length + 2 * shards.length);
});

test("[C8] a renewal writes 2 rows, and reads no more if there are many leases", async () => {
  const w = await startObjects();
  const begin = async (name: string): Promise<string> => {
    const lease = w.uuid();
    await w.ledger("1").begin(beginRequest(w.envelope, lease, [name]));
    return lease;
  };
  const lease = await begin("renewed");
  for (let n = 0; n < 40; n += 1) await begin(`other-${n}`);
  const counter = await count(objects.ledger("1"));
  for (const reason of ["first", "second", "third"]) {
    const before = { ...counter };
    const renewal = { ...w.envelope, caller: callerOf(), lease, reason };
    expect(await objects.ledger("1").renew(renewal)).toMatchObject({ ok: true });
    expect(counter.rowsWritten - before.rowsWritten).toBe(2);
    expect(counter.rowsRead - before.rowsRead).toBeLessThanOrEqual(8);
  }
});

test("[S2] the rows that a lease reads do not grow with the number of earlier decisions", async () => {
  const w = await startObjects();
  const live = async (from: number, leases: number): Promise<void> => {
    for (let n = from; n < from + leases; n += 1) {
      const lease = w.uuid();
      await w.ledger("1").begin(beginRequest(w.envelope, lease, [`n${n}`]));
      await w.ledger("1").decide(decideRequest(w.envelope, lease, "COMMITTED"));
    }
    await untilApplied(w.ledger("1"), w.envelope);
    // Drops the batches of these leases (S2).
    await runDurableObjectAlarm(objects.ledger("1"));
  };
  // Every shard has been used, so that each transaction finds the row of the one before it in the log.
  await live(1_000, 150);
  const counters = await Promise.all([
    count(objects.ledger("1")),
    ...Array.from({ length: 16 }, (_, shard) => count(objects.shard(shard))),
  ]);
  const readBy = async (from: number, leases: number): Promise<number> => {
    const before = counters.reduce((sum, { rowsRead }) => sum + rowsRead, 0);
    await live(from, leases);
    return (counters.reduce((sum, { rowsRead }) => sum + rowsRead, 0) - before) / leases;
  };
  const first = await readBy(1, 20);
  await live(21, 150);
  expect(await readBy(171, 20)).toBeCloseTo(first, 0);
  // SQLite also counts the rows of a statement's own list of values.
  expect(first).toBeLessThanOrEqual(13);
});

test("a page of leases reads at most its size + 2 rows, whatever was decided before", async () => {
  const w = await startObjects();
  for (let n = 0; n < 120; n += 1) {
    const lease = w.uuid();
    await w.ledger("1").begin(beginRequest(w.envelope, lease, [`n${n}`]));
    if (n % 10 > 0) await w.ledger("1").decide(decideRequest(w.envelope, lease, "ROLLED_BACK"));
  }
  await runDurableObjectAlarm(objects.ledger("1"));
  const counter = await count(objects.ledger("1"));
  const page = await w.ledger("1").listLeases({
    ...w.envelope,
    caller: { ...callerOf(), role: "operator" },
    createdAfterMs: 0,
    afterPosition: 0,
    limit: 10,
  });
  expect(page.ok && page.value.leases).toHaveLength(10);
  expect(counter.rowsRead).toBeGreaterThanOrEqual(10);
  expect(counter.rowsRead).toBeLessThanOrEqual(12);
});

test("[R4] digests read the index of their ranges and each hold twice, and write nothing", async () => {
  const w = await startObjects();
  const [claims, held] = [300, 20];
  const source = (id: number): OpSpec["source"] => ({ type: "RAILS_TABLE_USERS", id: String(id) });
  const owned = w.uuid();
  await w.ledger("1").begin(
    beginRequest(
      w.envelope,
      owned,
      Array.from({ length: claims }, (_, n): OpSpec => ({ value: `n${n}`, source: source(n) })),
    ),
  );
  await w.ledger("1").decide(decideRequest(w.envelope, owned, "COMMITTED"));
  await untilApplied(w.ledger("1"), w.envelope);
  const holds = Array.from({ length: held }, (_, n): OpSpec => ({
    kind: "destroy",
    value: `n${n}`,
    subject: null,
    source: null,
  }));
  await w.ledger("1").begin(beginRequest(w.envelope, w.uuid(), holds));
  // Half of the claims, in ranges of ten.
  const ranges = Array.from({ length: 15 }, (_, n) => ({
    after: sourceOrder(String(n * 10 + 49)),
    upTo: sourceOrder(String(n * 10 + 59)),
  }));
  const [inRanges, perRange] = [150, 1];
  const counters = await Promise.all(
    Array.from({ length: configOf(env).initialShards }, (_, shard) => count(objects.shard(shard))),
  );
  const request = {
    ...w.envelope,
    cell: "1",
    sourceType: sourceType("RAILS_TABLE_USERS"),
    bucketTypes: [bucketType("ROUTES")],
    ranges,
    cursor: null,
  };
  const answers = await Promise.all(counters.map((_, shard) => w.shard(shard).digestRecords(request)));
  const counted = answers
    .flatMap((answer) => (answer.ok ? answer.value.digests : []))
    .reduce((sum, each) => sum + each.count, 0);
  expect(counted).toBe(inRanges);
  expect(counters.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0)).toBe(0);
  const read = counters.reduce((sum, { rowsRead }) => sum + rowsRead, 0);
  expect(read).toBeGreaterThanOrEqual(inRanges);
  expect(read).toBeLessThanOrEqual(inRanges + 2 * held + perRange * ranges.length * counters.length);
});

test("[M7] no message to a shard visits more rows than its bound, whatever its arguments", async () => {
  const w = await startObjects();
  const { scanRows } = defaultLimits;
  // The first use of the shard creates its tables.
  await w.shard(0).ping(w.envelope);
  const numbers = "WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 20000)";
  await runInDurableObject(objects.shard(0), (_, state) => {
    state.storage.sql.exec(
      `INSERT INTO claim
       SELECT 1, 'claim-' || n, 'claim-' || n, 'u-' || n, '1', 1, '1', 1, n % 3, '0001' || (n % 3), NULL,
              1, 0, 0, 1, 1, 1, 1 FROM (${numbers} SELECT n FROM count)`,
    );
    const create = { kind: "create", uuid: "u", value: "v", subject_type: 1, subject_id: "1" } as const;
    addHolds(
      objectPorts(state).sql,
      Array.from({ length: 20_000 }, (__, index) => {
        const n = index + 1;
        const execution = { lease: `l-${n}`, counter: n, epoch: n };
        return { canonical: `hold-${n}`, ...execution, ...create, source_type: 1, source_id: "1" };
      }),
    );
  });
  await evictDurableObject(objects.shard(0));
  const counter = await count(objects.shard(0));
  const visited = async (message: () => Promise<unknown>): Promise<number> => {
    counter.rowsRead = 0;
    await message();
    return counter.rowsRead;
  };
  const query = { ...w.envelope, cell: "1", sourceType: sourceType("RAILS_TABLE_USERS") };
  const listing = { ...query, after: "", upTo: null, limit: 1e6 };
  const afterHolds = { behind: ["", 0, ""], scan: { behind: [999_999, 0], found: [], isCut: false } };
  const positions = Array.from({ length: 500 }, (_, n) => ["00011", 1, `hold-${n + 1}`]);
  const cursors = [
    null,
    afterHolds,
    { ...afterHolds, scan: { ...afterHolds.scan, found: positions } },
  ] as (ListCursor | null)[];
  for (const cursor of cursors)
    for (const bucketTypes of [[bucketType("EMAILS")], bucketTypeNames.map(bucketType), null])
      expect(await visited(() => w.shard(0).listRecords({ ...listing, bucketTypes, cursor }))).toBeLessThan(
        4 * scanRows,
      );
  const many = Array.from({ length: 1_000 }, (_, n) => ({ after: String(n), upTo: String(n + 1) }));
  const scanned = { scan: { behind: null, held: [] }, range: 0, rest: null };
  for (const ranges of [[{ after: "", upTo: null }], many])
    for (const cursor of [null, scanned] as (DigestCursor | null)[])
      for (const bucketTypes of [bucketTypeNames.map(bucketType), null])
        expect(
          await visited(() => w.shard(0).digestRecords({ ...query, bucketTypes, ranges, cursor })),
        ).toBeLessThan(4 * scanRows);
  // These read each key, whatever else the shard has. The executions of the holds are unknown to the ledger.
  const keys = Array.from({ length: 1_000 }, (_, n) => ({
    type: bucketType("ROUTES"),
    canonical: `hold-${n + 1}`,
  }));
  expect(await visited(() => w.shard(0).lookup({ ...w.envelope, keys }))).toBeLessThan(10 * keys.length);
  const others = keys.map(({ type }, n) => ({ type, canonical: `hold-${n + 5_001}` }));
  expect(await visited(() => w.shard(0).settle({ ...w.envelope, keys: others }))).toBeLessThan(
    10 * keys.length,
  );
  // Ten pages of 500 holds, each read, asked about or applied.
  expect(await visited(() => runDurableObjectAlarm(objects.shard(0)))).toBeLessThan(20 * 500);
});
