/** What a shard lists of a cell's records, over claims and holds (R3). */
import { expect, test } from "vitest";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type {
  ListCursor,
  ListRecordsAnswer,
} from "../../../../src/coordinator/capabilities/records/messages.ts";
import { sourceOrder } from "../../../../src/common/source-order.ts";
import { decide, isPrepare } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, decideRequest, keyOf, type OpSpec } from "../../../support/ops.ts";
import { bucketType, sourceType } from "../../../support/types.ts";

const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const start = (): Promise<Cluster> => Cluster.start({ shards: 1 });

async function begin(c: Cluster, specs: (OpSpec | string)[], cell = "1"): Promise<string> {
  const lease = c.uuid();
  expect(
    await c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, lease, specs))),
  ).toMatchObject({ ok: true });
  return lease;
}

async function own(c: Cluster, specs: (OpSpec | string)[], cell = "1"): Promise<void> {
  const lease = await begin(c, specs, cell);
  await c.clock.runUntil(c.ledger(cell).object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
}

const user = (value: string, id: string, more: Partial<OpSpec> = {}): OpSpec => ({
  value,
  source: { type: "RAILS_TABLE_USERS", id },
  ...more,
});

function list(
  c: Cluster,
  limit: number,
  after = "",
  upTo: string | null = null,
  cursor: ListCursor | null = null,
): Promise<Result<ListRecordsAnswer>> {
  const request = {
    ...c.envelope,
    cell: "1",
    sourceType: sourceType("RAILS_TABLE_USERS"),
    bucketTypes: [bucketType("ROUTES"), bucketType("EMAILS")],
  };
  return c.clock.runUntil(
    c.shard(0).object.listRecords({
      ...request,
      after,
      upTo,
      cursor,
      limit,
    }),
  );
}

async function page(
  c: Cluster,
  limit: number,
  after = "",
  upTo: string | null = null,
  cursor: ListCursor | null = null,
): Promise<ListRecordsAnswer> {
  const answer = await list(c, limit, after, upTo, cursor);
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
}

/** Inserts `count` claims of cell 1, with the source ids that the SQL expression `idOf` gives. */
function insertClaims(c: Cluster, count: number, orderOf: string): void {
  c.shard(0).database.exec(
    `INSERT INTO claim
     SELECT 1, 'row-' || n, 'row-' || n, 'uuid-' || n, '1', 1, '1', 1, '1', ${orderOf}, NULL, 1, 0, 0,
            1, 2, 3, 4
       FROM (WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ${count})
             SELECT n FROM count)`,
  );
}

test("[R3] records of one source id are sorted by bucket type, then by name", async () => {
  const c = await start();
  await own(c, [user("b", "1"), user("d", "1"), user("b@x", "1", { type: "EMAILS" })]);
  await begin(c, [user("a", "1"), user("c", "1"), user("a@x", "1", { type: "EMAILS" })]);
  const { records } = await page(c, 6);
  expect(records.map(({ canonical }) => canonical)).toEqual(["a", "b", "c", "d", "a@x", "b@x"]);
  expect(records.map(({ status }) => (status === "ACTIVE" ? "A" : "c")).join("")).toBe("cAcAcA");
});

test("[R3] a page has one cell, source type and set of bucket types, within (after, upTo]", async () => {
  const c = await start();
  await own(c, [user("n1", "1"), user("n2", "2"), user("n3", "3"), user("u2", "2", { type: "USERNAMES" })]);
  await own(c, [{ value: "other", source: { type: "RAILS_TABLE_NAMESPACES", id: "2" } }]);
  await own(c, [user("theirs", "2")], "2");
  await begin(c, [user("h2", "2"), user("h4", "4")]);
  await begin(c, [user("their-hold", "2")], "2");
  await begin(c, [
    user("v2", "2", { type: "USERNAMES" }),
    { value: "other-hold", source: { type: "RAILS_TABLE_NAMESPACES", id: "2" } },
  ]);
  const names = async (after: string, upTo: string | null) =>
    (await page(c, 100, after, upTo)).records.map(({ canonical }) => canonical);
  expect(await names("", null)).toEqual(["n1", "h2", "n2", "n3", "h4"]);
  expect(await names(sourceOrder("1"), sourceOrder("3"))).toEqual(["h2", "n2", "n3"]);
  expect(await names(sourceOrder("2"), sourceOrder("4"))).toEqual(["n3", "h4"]);
});

test("[R3] [R2] a page over a hold whose ledger cannot be asked is unavailable", async () => {
  const c = await start();
  await own(c, [user("n1", "1")]);
  await begin(c, [user("n2", "2")]);
  c.fate = (call) => (call.method === "inquire" ? "lose" : "deliver");
  expect(await list(c, 100)).toEqual(no("UNAVAILABLE"));
  // The range up to the hold needs no inquiry.
  expect(await list(c, 100, "", sourceOrder("1"))).toMatchObject({ ok: true, value: { next: null } });
});

test("[R3] [M6] a page is limited and says where to continue, and no record is missing", async () => {
  const c = await start();
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  insertClaims(c, 3_000, "'0' || printf('%03d', length(n)) || n");
  const seen = new Set<string>();
  for (let cursor: ListCursor | null = null; ;) {
    const { records, next }: ListRecordsAnswer = await page(c, 5_000, "", null, cursor);
    expect(records).toHaveLength(500);
    for (const { canonical } of records) seen.add(canonical);
    cursor = next;
    if (cursor === null) break;
  }
  expect(seen.size).toBe(3_000);
});

test("[R3] [M7] the records of one source id are listed, whatever their number", async () => {
  const c = await start();
  await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
  insertClaims(c, 10_000, "'00011'");
  await begin(c, [user("held", "1")]);
  const seen: string[] = [];
  let cursor: ListCursor | null = null;
  do {
    const { records, next }: ListRecordsAnswer = await page(c, 5_000, "", null, cursor);
    seen.push(...records.map(({ canonical }) => canonical));
    cursor = next;
  } while (cursor !== null);
  expect(seen).toHaveLength(10_001);
  expect(seen).toEqual(seen.toSorted());
});

test("[R2] [R3] a lookup and a page inquire once about the hold of a running begin", async () => {
  const c = await start();
  await begin(c, [user("granted", "1")]);
  c.fate = (call) => (call.method === "exchange" ? "lose_answer" : "deliver");
  const running = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), [user("running", "2")]));
  await c.clock.pass(10);
  const keys = ["granted", "running"].map((value) => keyOf("ROUTES", value));
  const lookup = c.shard(0).object.lookup({ ...c.envelope, keys });
  await c.clock.pass(10);
  expect(await lookup).toMatchObject({ value: { found: [{ kind: "record" }, { kind: "none" }] } });
  expect(c.messages("inquire")).toHaveLength(1);
  const request = {
    ...c.envelope,
    cell: "1",
    sourceType: sourceType("RAILS_TABLE_USERS"),
    bucketTypes: [bucketType("ROUTES")],
  };
  const listed = c
    .shard(0)
    .object.listRecords({ ...request, after: "", upTo: null, cursor: null, limit: 10 });
  await c.clock.pass(10);
  expect(await listed).toMatchObject({ value: { records: [{ canonical: "granted" }] } });
  expect(c.messages("inquire")).toHaveLength(2);
  await c.clock.runUntil(running);
});

test("[R3] a shard's pages continue within a source id, over claims and granted holds", async () => {
  const c = await Cluster.start({ shards: 1 });
  const lease = c.uuid();
  const specs = ["1", "2", "2", "2", "3", "3", "10"].map((id, index) => ({
    value: `n${index}`,
    source: { type: "RAILS_TABLE_USERS" as const, id },
  }));
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, specs.slice(0, 4))));
  await c.clock.runUntil(decide(c, "1", lease, "COMMITTED"));
  // The other names are only granted: claims and granted holds are one list.
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), specs.slice(4))));
  let cursor: ListCursor | null = null;
  const pageAt = async (limit: number): Promise<string[]> => {
    const answer = await c.clock.runUntil(
      c.shard(0).object.listRecords({
        ...c.envelope,
        cell: "1",
        sourceType: sourceType("RAILS_TABLE_USERS"),
        bucketTypes: [bucketType("ROUTES")],
        after: "",
        upTo: null,
        cursor,
        limit,
      }),
    );
    if (!answer.ok) throw new Error(answer.refusal.detail);
    cursor = answer.value.next;
    return answer.value.records.map(({ source }) => source.id);
  };
  const pages: string[][] = [];
  for (let isLast = false; !isLast; isLast = cursor === null) pages.push(await pageAt(2));
  expect(pages).toEqual([["1", "2"], ["2", "2"], ["3", "3"], ["10"]]);
  expect(await pageAt(7)).toEqual(["1", "2", "2", "2", "3", "3", "10"]);
});

test("[R3] [R2] a page of names whose begins are running is empty, and says where to continue", async () => {
  const c = await Cluster.start({ shards: 1 });
  const done = c.uuid();
  const last = { value: "last", source: { type: "RAILS_TABLE_USERS" as const, id: "9" } };
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, done, [last])));
  await c.clock.runUntil(decide(c, "1", done, "COMMITTED"));
  c.fate = (call) => (isPrepare(call) ? "lose_answer" : "deliver");
  const specs = ["1", "2", "3"].map((id) => ({
    value: `n${id}`,
    source: { type: "RAILS_TABLE_USERS" as const, id },
  }));
  const running = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), specs));
  await c.clock.pass(50);
  const pageAt = async (cursor: ListCursor | null) => {
    const request = {
      ...c.envelope,
      cell: "1",
      sourceType: sourceType("RAILS_TABLE_USERS"),
      bucketTypes: [bucketType("ROUTES")],
      after: "",
      upTo: null,
      cursor,
      limit: 2,
    };
    const [answer] = await Promise.all([c.shard(0).object.listRecords(request), c.clock.pass(20)]);
    if (!answer.ok) throw new Error(answer.refusal.detail);
    return answer.value;
  };
  const first = await pageAt(null);
  expect(first).toMatchObject({ records: [], next: { behind: [sourceOrder("2"), 1, "n2"] } });
  expect(await pageAt(first.next)).toMatchObject({ records: [{ canonical: "last" }], next: null });
  await c.clock.runUntil(running);
});

test("[R3] holds that end while a page is made do not extend its range", async () => {
  const c = await Cluster.start({ shards: 1 });
  const leases: string[] = [];
  for (const id of ["1", "2", "3", "4", "5", "6"]) {
    const lease = c.uuid();
    leases.push(lease);
    const spec = { value: `n${id}`, source: { type: "RAILS_TABLE_USERS" as const, id } };
    await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, [spec])));
  }
  const pageAt = (cursor: ListCursor | null) =>
    c.shard(0).object.listRecords({
      ...c.envelope,
      cell: "1",
      sourceType: sourceType("RAILS_TABLE_USERS"),
      bucketTypes: [bucketType("ROUTES")],
      after: "",
      upTo: null,
      cursor,
      limit: 2,
    });
  let ends = 0;
  c.fate = (call) => {
    // During each inquiry, one of the first three leases is rolled back.
    if (call.method === "inquire" && ends < 3) void decide(c, "1", leases[ends++] ?? "", "ROLLED_BACK");
    return call.method === "inquire" ? "slow" : "deliver";
  };
  const seen: string[] = [];
  for (let cursor: ListCursor | null = null; ;) {
    const answer: Result<ListRecordsAnswer> = await c.clock.runUntil(pageAt(cursor));
    if (!answer.ok) throw new Error(answer.refusal.detail);
    seen.push(...answer.value.records.map(({ source }) => source.id));
    cursor = answer.value.next;
    if (cursor === null) break;
  }
  expect(seen).toEqual(expect.arrayContaining(["4", "5", "6"]));
  expect(new Set(seen).size).toBe(seen.length);
});

test.each([
  // Without holds, a message of 40 rows has 10 records.
  [0, "1", [10, 10, 10]],
  [12, "1", [7, 7, 7, 7, 2]],
  // More holds leave room for too few records, so a message with only the scan comes before them.
  [25, "1", [0, 10, 0, 10, 0, 10]],
  // Those of other cells are not visited.
  [25, "2", [10, 10, 10]],
])(
  "[M7] the last holds of a scan count against the rows of a listing's message: %i of cell %s",
  async (holds, holder, counts) => {
    const c = await Cluster.start({ shards: 1, limits: { scanRows: 40 } });
    const mine = Array.from({ length: 30 }, (_, n) => user(`mine-${n}`, String(n)));
    await own(c, mine);
    if (holds > 0)
      await begin(
        c,
        Array.from({ length: holds }, (_, n) => ({
          value: `held-${n}`,
          source: { type: "RAILS_TABLE_NAMESPACES", id: "1" } as const,
        })),
        holder,
      );
    const listed: number[] = [];
    for (let cursor: ListCursor | null = null, isLast = false; !isLast;) {
      const answer = await list(c, 100, "", null, cursor);
      if (!answer.ok) throw new Error(answer.refusal.detail);
      listed.push(answer.value.records.length);
      cursor = answer.value.next;
      isLast = cursor === null;
    }
    expect(listed).toEqual(counts);
  },
);
