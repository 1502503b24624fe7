/** Tests of a shard's digests of ranges of a cell's claims. */
import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DigestSum, digestWordsOf } from "../../../../src/common/digest.ts";
import type {
  DigestCursor,
  DigestRecordsAnswer,
  DigestRecordsRequest,
  RangeDigest,
  SourceRange,
} from "../../../../src/coordinator/capabilities/records/messages.ts";
import { ok } from "../../../../src/coordinator/kernel/refusal.ts";
import type { ClaimReads } from "../../../../src/coordinator/kernel/shard/read-queue.ts";
import { migrate } from "../../../support/migrate.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { ChangeCounts } from "../../../../src/coordinator/capabilities/records/change-counts.ts";
import { DigestReader } from "../../../../src/coordinator/capabilities/records/digest-records.ts";
import {
  digestStatement,
  positionStatement,
  ScanStore,
} from "../../../../src/coordinator/capabilities/records/scan-store.ts";
import type { ShardLog } from "../../../../src/coordinator/kernel/shard/shard-log.ts";
import { compareBytes, sourceOrder } from "../../../../src/common/source-order.ts";
import { readDigests } from "../../../../src/coordinator/capabilities/records/edge/digest-parts.ts";
import { Cluster } from "../../../support/cluster.ts";
import { NodeSql } from "../../../support/node-sql.ts";
import { beginRequest, decideRequest, opsOf, type OpSpec } from "../../../support/ops.ts";
import { privatePath } from "../../../support/private-fields.ts";
import { bucketType, bucketTypeNames, sourceType } from "../../../support/types.ts";

const start = (): Promise<Cluster> => Cluster.start({ shards: 1 });

async function begin(c: Cluster, specs: (OpSpec | string)[], cell = "1"): Promise<string> {
  const lease = c.uuid();
  expect(
    await c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, lease, specs))),
  ).toMatchObject({ ok: true });
  return lease;
}

const decide = (c: Cluster, lease: string, outcome: "COMMITTED" | "ROLLED_BACK", cell = "1") =>
  c.clock.runUntil(c.ledger(cell).object.decide(decideRequest(c.envelope, lease, outcome)));

const own = async (c: Cluster, specs: OpSpec[], cell = "1") =>
  decide(c, await begin(c, specs, cell), "COMMITTED", cell);

const user = (value: string, id: string, more: Partial<OpSpec> = {}): OpSpec => ({
  value,
  source: { type: "RAILS_TABLE_USERS", id },
  ...more,
});

const ALL: SourceRange = { after: "", upTo: null };
const upTo = (id: string): SourceRange => ({ after: "", upTo: sourceOrder(id) });
const between = (gt: string, lte: string): SourceRange => ({
  after: sourceOrder(gt),
  upTo: sourceOrder(lte),
});

type Asked = Partial<Pick<DigestRecordsRequest, "cell" | "sourceType" | "bucketTypes">>;

async function digests(c: Cluster, ranges: SourceRange[], more: Asked = {}): Promise<RangeDigest[]> {
  const request = {
    ...c.envelope,
    cell: "1",
    sourceType: sourceType("RAILS_TABLE_USERS"),
    bucketTypes: null,
    ranges,
    ...more,
  };
  // The ranges of the tests overlap, so each is asked for by itself.
  const answered: RangeDigest[] = [];
  for (const range of request.ranges) {
    const read = await readDigests(1, 10_000, (cursor) =>
      c.clock.runUntil(c.shard(0).object.digestRecords({ ...request, ranges: [range], cursor })),
    );
    if (!read.ok) throw new Error(read.refusal.detail);
    answered.push(...read.value);
  }
  return answered;
}

const heldIn = async (c: Cluster, ranges: SourceRange[], more: Asked = {}): Promise<boolean[]> =>
  (await digests(c, ranges, more)).map(({ held }) => held);

function hashOf(parts: readonly RangeDigest[]): string {
  const sum = new DigestSum();
  for (const { words, count } of parts) sum.add(words, count);
  return `${sum.count} ${sum.hash}`;
}

/** The digest as a cell computes it from its own rows. */
function expectedHash(c: Cluster, specs: readonly OpSpec[]): string {
  const sum = new DigestSum();
  for (const { type, canonical, value, subject, source } of opsOf(c.envelope.placement, specs)) {
    if (subject === undefined || source === undefined)
      throw new Error("a create needs a subject and a source");
    sum.add(digestWordsOf({ type, canonical, value, subject, source, scope: null }));
  }
  return `${sum.count} ${sum.hash}`;
}

test("[R4] a range's digest is the sum over its rows, whatever happened to them before", async () => {
  const ids = fc.constantFrom("0", "1", "2", "9", "10", "11", "100", "a", "B", "é");
  const bound = fc.option(ids, { nil: undefined });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 40 }), ids), {
        selector: ([name]) => name,
        maxLength: 20,
      }),
      fc.array(fc.tuple(bound, bound), { minLength: 1, maxLength: 4 }),
      async (names, bounds) => {
        const c = await start();
        const specs = names.map(([name, id]) =>
          user(`Name-${name}`, id, { type: name % 3 === 0 ? "USERNAMES" : "ROUTES" }),
        );
        if (specs.length > 0) await own(c, specs);
        const kept = specs.filter((_, index) => index % 4 !== 0);
        const gone = specs.filter((_, index) => index % 4 === 0);
        if (gone.length > 0)
          await own(
            c,
            gone.map((spec) => ({ ...spec, kind: "destroy" })),
          );
        const renamed = kept.map((spec, index): OpSpec =>
          index % 2 === 0 ? spec : { ...spec, value: spec.value.toUpperCase(), kind: "replace" },
        );
        const replaced = renamed.filter(({ kind }) => kind === "replace");
        if (replaced.length > 0) await own(c, replaced);
        const ranges = bounds.map(([gt, lte]) => ({
          after: gt === undefined ? "" : sourceOrder(gt),
          upTo: lte === undefined ? null : sourceOrder(lte),
        }));
        const isIn = ({ source }: OpSpec, range: SourceRange): boolean => {
          const order = sourceOrder(source?.id ?? "");
          return (
            compareBytes(order, range.after) > 0 &&
            (range.upTo === null || compareBytes(order, range.upTo) <= 0)
          );
        };
        const answered = await digests(c, ranges);
        for (const [index, range] of ranges.entries()) {
          const inside = renamed.filter((spec) => isIn(spec, range));
          expect(hashOf(answered.slice(index, index + 1))).toBe(expectedHash(c, inside));
          expect(answered[index]?.held).toBe(false);
          expect(answered[index]?.newestUpdatedAtMs === null).toBe(inside.length === 0);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test("[R4] a digest covers one cell, one source type and the requested bucket types", async () => {
  const c = await start();
  const mine = [user("ada", "1"), user("eve@x", "1", { type: "EMAILS" })];
  await own(c, mine);
  await own(c, [{ value: "group", source: { type: "RAILS_TABLE_NAMESPACES", id: "1" } }]);
  await own(c, [user("theirs", "1")], "2");
  expect(hashOf(await digests(c, [ALL]))).toBe(expectedHash(c, mine));
  expect(hashOf(await digests(c, [ALL], { bucketTypes: [bucketType("EMAILS")] }))).toBe(
    expectedHash(c, mine.slice(1)),
  );
  expect(hashOf(await digests(c, [ALL], { bucketTypes: [bucketType("USERNAMES")] }))).toBe(
    `0 ${"0".repeat(32)}`,
  );
  const every = bucketTypeNames.map(bucketType);
  expect(await digests(c, [ALL], { bucketTypes: every })).toEqual(await digests(c, [ALL]));
  expect(hashOf(await digests(c, [ALL], { sourceType: sourceType("RAILS_TABLE_NAMESPACES") }))).toMatch(
    /^1 /,
  );
});

test("[R4] a digest has the time of the last change in its range", async () => {
  const c = await start();
  await own(c, [user("ada", "1")]);
  const first = c.clock.now();
  await c.clock.pass(1_000);
  await own(c, [user("bob", "2")]);
  const [one, both] = await digests(c, [upTo("1"), ALL]);
  expect(one?.newestUpdatedAtMs).toBeLessThanOrEqual(first);
  expect(both?.newestUpdatedAtMs).toBeGreaterThanOrEqual(first + 1_000);
});

test("[R4] a hold makes the ranges of its present and its future claim void", async () => {
  const c = await start();
  await own(c, [user("ada", "10"), user("bob", "20"), user("eve", "30")]);
  const ranges = [
    between("5", "15"),
    between("15", "25"),
    between("25", "35"),
    between("35", "45"),
    ALL,
    between("10", "20"),
    upTo("10"),
  ];
  const untouched = await digests(c, ranges);
  expect(untouched.map(({ held }) => held)).toEqual(ranges.map(() => false));
  const cases: [OpSpec, boolean[]][] = [
    [user("new", "40"), [false, false, false, true, true, false, false]],
    [
      { kind: "destroy", value: "ada", subject: null, source: null },
      [true, false, false, false, true, false, true],
    ],
    [user("bob", "40", { kind: "replace" }), [false, true, false, true, true, true, false]],
    // The claim moves to a row of another table, and back.
    [
      { kind: "replace", value: "eve", source: { type: "RAILS_TABLE_NAMESPACES", id: "10" } },
      [false, false, true, false, true, false, false],
    ],
  ];
  for (const [spec, expected] of cases) {
    const lease = await begin(c, [spec]);
    expect([spec, await heldIn(c, ranges)]).toEqual([spec, expected]);
    // Only claims count: a hold neither adds nor removes anything.
    expect((await digests(c, ranges)).map((digest) => ({ ...digest, held: false }))).toEqual(untouched);
    await decide(c, lease, "ROLLED_BACK");
    expect(await digests(c, ranges)).toEqual(untouched);
  }
});

test("[R4] [M7] holds are found, however many there are", async () => {
  const c = await start();
  await own(c, [user("ada", "999999")]);
  const held = (first: number): OpSpec[] =>
    Array.from({ length: 1_000 }, (_, index) => user(`held-${first + index}`, String(first + index)));
  for (let lease = 0; lease < 10; lease += 1) await begin(c, held(lease * 1_000));
  const ranges = [between("5000", "5001"), between("20000", "999999")];
  expect(await heldIn(c, ranges)).toEqual([true, false]);
  expect(await heldIn(c, [upTo("4000"), ...ranges])).toEqual([true, true, false]);
});

test("[R4] holds of another cell, source type or bucket type make no range void", async () => {
  const c = await start();
  await own(c, [user("ada", "1")]);
  await begin(c, [user("theirs", "1")], "2");
  await begin(c, [{ value: "group", source: { type: "RAILS_TABLE_NAMESPACES", id: "1" } }]);
  await begin(c, [user("mail@x", "1", { type: "EMAILS" })]);
  expect(await heldIn(c, [ALL], { bucketTypes: [bucketType("ROUTES")] })).toEqual([false]);
  expect(await heldIn(c, [ALL])).toEqual([true]);
  expect(await heldIn(c, [ALL], { cell: "2" })).toEqual([true]);
});

test("[R4] a hold of a running begin counts, the ledger is asked once, and nothing is written", async () => {
  const c = await start();
  await own(c, [user("ada", "1")]);
  c.fate = (call) => (call.method === "exchange" ? "lose_answer" : "deliver");
  const running = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), [user("bob", "2")]));
  await c.clock.pass(10);
  const transactions = c.transactions();
  const { length } = c.calls;
  expect(await heldIn(c, [upTo("1")])).toEqual([false]);
  expect(c.calls.slice(length)).toEqual([]);
  expect(await heldIn(c, [ALL])).toEqual([true]);
  expect(c.calls.slice(length).map(({ method }) => method)).toEqual(["inquire"]);
  expect(c.transactions()).toEqual(transactions);
  await c.clock.runUntil(running);
});

describe("a digest after an acknowledged decision that no shard has heard of", () => {
  const names = Array.from({ length: 6 }, (_, n) => user(`n${n}`, String(n)));
  const destroys = names.map((name): OpSpec => ({ ...name, kind: "destroy" }));

  /** One lease holds the six names, or each name has a lease. Messages with decisions are lost. */
  async function decided(
    specs: readonly OpSpec[],
    outcome: "COMMITTED" | "ROLLED_BACK",
    { scanRows = 5_000, isApart = false } = {},
  ): Promise<Cluster> {
    const c = await Cluster.start({ shards: 1, limits: { scanRows } });
    if (specs.some(({ kind }) => kind === "destroy")) await own(c, names);
    await c.clock.pass(1_000);
    const leases: string[] = [];
    for (const some of isApart ? specs.map((spec) => [spec]) : [[...specs]])
      leases.push(await begin(c, some));
    c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
    for (const lease of leases) expect(await decide(c, lease, outcome)).toMatchObject({ ok: true });
    return c;
  }

  test.for([
    { what: "committed creates", specs: names, outcome: "COMMITTED", left: names },
    { what: "creates that were rolled back", specs: names, outcome: "ROLLED_BACK", left: [] },
    { what: "committed destroys", specs: destroys, outcome: "COMMITTED", left: [] },
    { what: "destroys that were rolled back", specs: destroys, outcome: "ROLLED_BACK", left: names },
  ] as const)("[R4] has its changes: $what", async ({ specs, outcome, left }) => {
    const c = await decided(specs, outcome);
    const [digest] = await digests(c, [ALL]);
    expect(digest?.held).toBe(false);
    expect(hashOf(digest === undefined ? [] : [digest])).toBe(expectedHash(c, left));
  });

  test("[R4] [M7] has all of them, although one message asks about few holds", async () => {
    const c = await decided(names, "COMMITTED", { scanRows: 8, isApart: true });
    const [digest] = await digests(c, [ALL]);
    expect(digest).toMatchObject({ held: false, count: names.length });
    expect(c.calls.filter(({ method }) => method === "inquire").length).toBeGreaterThan(1);
  });

  test("[R4] no hold that begins while the ledger is asked hides an earlier one", async () => {
    const c = await Cluster.start({ shards: 1, limits: { scanRows: 8 } });
    await begin(c, [user("zzz", "5")]);
    c.fate = ({ method }) => (method === "inquire" ? "lose" : "deliver");
    const answer = c.shard(0).object.digestRecords({
      ...c.envelope,
      cell: "1",
      sourceType: sourceType("RAILS_TABLE_USERS"),
      bucketTypes: null,
      ranges: [upTo("9"), between("9", "99")],
      cursor: null,
    });
    await begin(
      c,
      Array.from({ length: 20 }, (_, n) => user(`a${n}`, String(10 + n))),
    );
    expect(await c.clock.runUntil(answer)).toMatchObject({
      ok: true,
      value: { digests: [{ held: true }, { held: false }] },
    });
  });

  test("[R4] [M2] is void while the ledger cannot be asked", async () => {
    const c = await decided(names, "COMMITTED");
    c.fate = ({ method }) => (method === "digestRecords" ? "deliver" : "lose");
    expect(await digests(c, [ALL])).toMatchObject([{ held: true, count: 0 }]);
  });
});

test("[R4] sums of many claims stay exact", async () => {
  const c = await start();
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  const most = 2 ** 32 - 1;
  c.shard(0).database.exec(
    `INSERT INTO claim
     SELECT 1, 'row-' || n, 'row-' || n, 'uuid-' || n, '1', 1, '1', 1, '1', '00011', NULL, 1, 0, 0,
            ${most}, ${most}, ${most}, ${most}
       FROM (WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 5000)
             SELECT n FROM count)`,
  );
  const word = 2 ** 32 - 5_000;
  expect(await digests(c, [ALL])).toMatchObject([{ count: 5_000, words: [word, word, word, word] }]);
});

test("[R4] a range is read from the index alone, without sorting", () => {
  const sql = new NodeSql(new DatabaseSync(":memory:"));
  migrate(sql, shardSchema);
  sql.database.exec(
    `INSERT INTO claim
     VALUES (1, 'ada', 'Ada', 'u-1', '1', 4, '7', 1, '7', '00017', NULL, 5, 10, 20, 1, 2, 3, 4)`,
  );
  const planOf = (statement: string, ...bindings: (string | number)[]): string =>
    JSON.stringify(sql.database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all(...bindings));
  const index =
    "USING COVERING INDEX claim_by_source (cell=? AND source_type=? AND " +
    "(source_order,bucket_type,canonical)>(?,?,?) AND (source_order,bucket_type,canonical)<(?,?,?))";
  for (const statement of [
    ...[null, [1], [1, 2], [1, 2, 3, 4, 5, 6, 10]].map(digestStatement),
    positionStatement,
  ]) {
    const plan = planOf(statement, "1", 1, "", 0, "", "2", 0, "", 10);
    expect(plan).toContain(index);
    expect(plan).not.toContain("TEMP B-TREE");
  }
});

/** Reads the digest of everything from a shard that reads two claims per message, with work in between. */
async function inParts(c: Cluster, change: () => Promise<unknown>): Promise<RangeDigest | undefined> {
  let parts = 0;
  const read = await readDigests(1, 100, async (cursor) => {
    // Messages without a rest only scan the holds.
    if (cursor !== null && cursor.rest !== null) parts += 1;
    if (parts === 1) await change();
    const question = {
      ...c.envelope,
      cell: "1",
      sourceType: sourceType("RAILS_TABLE_USERS"),
      bucketTypes: null,
      ranges: [ALL],
      cursor,
    };
    return c.clock.runUntil(c.shard(0).object.digestRecords(question));
  });
  if (!read.ok) throw new Error(read.refusal.detail);
  expect(parts).toBeGreaterThan(0);
  return read.value[0];
}

describe("a range that takes several messages", () => {
  const five = ["1", "2", "3", "4", "5"].map((id) => user(`n${id}`, id));
  const filled = async (): Promise<Cluster> => {
    const c = await Cluster.start({ shards: 1, limits: { scanRows: 2 } });
    await own(c, five);
    return c;
  };

  test("[R4] [M7] has the sum of its parts, although other cells change theirs meanwhile", async () => {
    const c = await filled();
    const digest = await inParts(c, () => own(c, [user("theirs", "1")], "2"));
    expect(digest).toMatchObject({ count: 5, held: false });
    expect(hashOf(digest === undefined ? [] : [digest])).toBe(expectedHash(c, five));
  });

  test("[R4] [M7] is void if a claim moves from an unread part to a part that was read", async () => {
    const c = await filled();
    const moved = user("n5", "0", { kind: "replace" });
    expect(await inParts(c, () => own(c, [moved]))).toMatchObject({ held: true });
  });

  test("[R4] [M7] is void if a hold began or ended meanwhile, or the shard started again", async () => {
    for (const change of [
      async (c: Cluster) => void (await begin(c, [user("new", "9")])),
      async (c: Cluster, lease: string) => void (await decide(c, lease, "ROLLED_BACK")),
      async (c: Cluster) => void c.shard(0).restart(),
    ]) {
      const c = await filled();
      const lease = await begin(c, [{ value: "other", source: { type: "RAILS_TABLE_NAMESPACES", id: "1" } }]);
      expect(await inParts(c, () => change(c, lease))).toMatchObject({ held: true });
    }
  });

  test("[R4] [M7] is void, like the ranges after it, if it takes more messages than allowed", async () => {
    const c = await filled();
    const ranges = [upTo("1"), between("1", "5"), { after: sourceOrder("5"), upTo: null }];
    const read = await readDigests(ranges.length, 2, (cursor) =>
      c.clock.runUntil(
        c.shard(0).object.digestRecords({
          ...c.envelope,
          cell: "1",
          sourceType: sourceType("RAILS_TABLE_USERS"),
          bucketTypes: null,
          ranges,
          cursor,
        }),
      ),
    );
    expect(read).toMatchObject({
      ok: true,
      value: [{ count: 1, held: false }, { held: true }, { held: true }],
    });
  });
});

test("[M7] the last holds of a scan count against the rows of a message, like the claims", async () => {
  const scanRows = 20;
  const c = await Cluster.start({ shards: 1, limits: { scanRows } });
  const mine = Array.from({ length: 15 }, (_, n) => user(`mine-${n}`, String(n)));
  await own(c, mine);
  await begin(
    c,
    Array.from({ length: 12 }, (_, n) => ({
      value: `held-${n}`,
      source: { type: "RAILS_TABLE_NAMESPACES", id: "1" },
    })),
  );
  const log = privatePath(c.shard(0).object, "#part.log") as ShardLog;
  const scans = new ScanStore(c.shard(0).sql, log.held);
  const changes = new ChangeCounts({ uuid: () => c.uuid(), fraction: () => 0 });
  const question = {
    cell: "1",
    sourceType: sourceType("RAILS_TABLE_USERS"),
    bucketTypes: null,
    ranges: [ALL],
  };
  let rows = 0;
  const claimReads: ClaimReads = {
    run: (_, read) => {
      const done = read();
      rows = done.rows;
      return Promise.resolve(ok(done.value));
    },
  };
  const inquirer = { inquire: () => Promise.reject(new Error("no hold touches the range")) };
  const reader = new DigestReader({
    store: { holdsOn: () => new Map() },
    scans,
    log,
    changes,
    claimReads,
    inquirer,
    limits: { scanRows },
  });
  const read = async (cursor: DigestCursor | null): Promise<DigestRecordsAnswer> => {
    const answer = await reader.digestRecords({ ...question, cursor });
    if (!answer.ok) throw new Error(answer.refusal.detail);
    return answer.value;
  };
  const first = await read(null);
  // The claims do not fit behind the holds, so the range is left to the next message as a whole.
  expect(first.digests).toEqual([]);
  expect(rows).toBeGreaterThanOrEqual(12);
  expect(rows).toBeLessThanOrEqual(scanRows + 2);
  const second = await read(first.next);
  expect(hashOf(second.digests)).toBe(expectedHash(c, mine));
  expect(second.next).toBeNull();
  expect(await digests(c, [ALL])).toEqual(second.digests);
});
