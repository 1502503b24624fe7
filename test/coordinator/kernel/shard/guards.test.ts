/** Tests of shard guards that ordinary work seldom reaches. */
import { expect, test } from "vitest";
import type { Exchange, Prepare } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { damageHolds, passHolds } from "../../../support/holds.ts";
import { beginRequest, decideRequest, exchangeOf, keyOf, type OpSpec } from "../../../support/ops.ts";

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

test("[T1] a shard knows types as numbers only, so it stores names of any type", async () => {
  const c = await start();
  await begin(c, ["ada"]);
  const sent = c.messages("exchange").at(-1)?.message as Exchange;
  const [last] = sent.prepares;
  if (last === undefined) throw new Error("no prepare was sent");
  const strange = { type: 2 ** 31 - 1, id: "1" };
  const prepare: Prepare = {
    ...last,
    lease: c.uuid(),
    ops: last.ops.map((op) => ({ ...op, type: strange.type, subject: strange, source: strange })),
  };
  const answer = await c.clock.runUntil(c.shard(0).object.exchange({ ...sent, prepares: [prepare] }));
  // The same name of another type is another name.
  expect(answer).toMatchObject({ ok: true, value: { prepares: [{ granted: true }] } });
  expect(c.holds().map(({ canonical }) => canonical)).toEqual(["ada", "ada"]);
});

test("[B4] a destroy may have no subject and no source", async () => {
  const c = await start();
  await own(c, ["eve"]);
  await begin(c, [{ kind: "destroy", value: "eve", subject: null, source: null }]);
});

test("[P1] a begin gets no names from a shard with another placement", async () => {
  const c = await start();
  await own(c, ["ada"]);
  const other = c.envelope.placement.replace("shards1", "shards2");
  c.shard(0).database.prepare("UPDATE meta SET value = ? WHERE name = 'placement'").run(other);
  c.shard(0).restart();
  const refused = await c.clock.runUntil(
    c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["bob"])),
  );
  expect(refused).toEqual(no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }));
});

test("[R2] a name whose hold changes during every inquiry was free in between: not found", async () => {
  const c = await start();
  const lease = await begin(c, ["ada"]);
  let asked = 0;
  c.fate = (call) => {
    if (call.method === "inquire") {
      asked += 1;
      // The next lease has the hold before the answer arrives.
      passHolds(c.shard(0), c.uuid());
    }
    return "deliver";
  };
  const look = () =>
    c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", "ada")] }));
  expect(await look()).toMatchObject({ value: { found: [{ kind: "none" }], settled: [false] } });
  expect(asked).toBe(3);
  expect(c.holds()).not.toEqual([expect.objectContaining({ lease })]);
});

test("[R2] a lookup of many names inquires once about each hold, and answers in order", async () => {
  const c = await start();
  await own(c, ["owned"]);
  await begin(c, ["granted"]);
  await begin(c, [{ kind: "destroy", value: "owned", subject: null, source: null }]);
  const keys = ["free", "granted", "owned", "granted"].map((value) => keyOf("ROUTES", value));
  const before = c.messages("inquire").length;
  const answer = await c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys }));
  expect(answer).toMatchObject({
    value: {
      found: [
        { kind: "none" },
        { kind: "record", record: { canonical: "granted", status: "LEASE_CREATING" } },
        { kind: "record", record: { canonical: "owned", status: "LEASE_DESTROYING" } },
        { kind: "record", record: { canonical: "granted" } },
      ],
    },
  });
  expect(c.messages("inquire").length - before).toBe(1);
});

test("a hold without a field that every claim has is an error", async () => {
  const fields = { uuid: 1, value: 2, subjectType: 3, subjectId: 4, sourceType: 5, sourceId: 6 };
  for (const field of Object.values(fields)) {
    const c = await start();
    await begin(c, [user("n1", "1")]);
    damageHolds(c.shard(0), (entry) => {
      Object.assign(entry[10][0] as object, { [field]: null });
      return entry;
    });
    c.shard(0).restart();
    await expect(
      c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", "n1")] })),
    ).rejects.toThrow("must have a value");
  }
});

test("[B4] a destroy that names a subject or source matches only a claim that has them", async () => {
  const c = await start();
  await own(c, [user("ada", "7", { subject: { type: "USER", id: "9" } })]);
  const source = { type: "RAILS_TABLE_USERS", id: "7" } as const;
  const subject = { type: "USER", id: "9" } as const;
  const wrong: Partial<OpSpec>[] = [
    { subject: { ...subject, id: "8" }, source: null },
    { subject: { ...subject, type: "NAMESPACE" }, source: null },
    { subject: null, source: { ...source, id: "8" } },
    { subject: null, source: { ...source, type: "RAILS_TABLE_NAMESPACES" } },
    { subject, source: { ...source, id: "8" } },
    { subject: { ...subject, id: "8" }, source },
  ];
  for (const more of wrong) {
    const request = beginRequest(c.envelope, c.uuid(), [{ kind: "destroy", value: "ada", ...more }]);
    const answer = await c.clock.runUntil(c.ledger("1").object.begin(request));
    expect(answer).toMatchObject({
      refusal: { code: "FAILED_PRECONDITION", conflicts: [{ kind: "mismatch", owner: "self" }] },
    });
  }
  expect(c.holds()).toEqual([]);
  await begin(c, [{ kind: "destroy", value: "ada", subject, source }]);
});

test("[B6] conflicts say whether the cell owns the name; only `leased` has a retry time", async () => {
  const c = await start();
  await own(c, ["mine", "held"]);
  await own(c, ["theirs"], "2");
  await begin(c, ["being-made"], "2");
  await begin(c, [{ kind: "destroy", value: "held", subject: null, source: null }]);
  const request = beginRequest(c.envelope, c.uuid(), [
    "mine",
    "theirs",
    "being-made",
    { kind: "destroy", value: "theirs" },
    { kind: "destroy", value: "held" },
    { kind: "destroy", value: "nobody" },
    { kind: "replace", value: "none" },
  ]);
  const answer = await c.clock.runUntil(
    c.ledger("1").object.begin({ ...request, ops: request.ops.toReversed() }),
  );
  const conflicts = answer.ok ? [] : (answer.refusal.conflicts ?? []);
  expect(
    conflicts.map(({ list: name, index, kind, owner, retryAfterMs }) => [
      name,
      index,
      kind,
      owner,
      retryAfterMs !== undefined,
    ]),
  ).toEqual([
    ["creates", 0, "taken", "self", false],
    ["creates", 1, "taken", "other", false],
    ["creates", 2, "leased", "other", true],
    ["destroys", 0, "not_owner", "other", false],
    ["destroys", 1, "leased", "self", true],
    ["destroys", 2, "absent", undefined, false],
    ["replaces", 0, "absent", undefined, false],
  ]);
});

test("[B8] settle returns the state of each key in order: free, granted or unknown", async () => {
  const c = await start();
  await begin(c, ["ada"]);
  await begin(c, ["bob"], "2");
  c.fate = (call) => (call.to === "ledger 2" ? "lose" : "deliver");
  const keys = ["free", "ada", "bob"].map((value) => keyOf("ROUTES", value));
  expect(await c.clock.runUntil(c.shard(0).object.settle({ ...c.envelope, keys }))).toMatchObject({
    ok: true,
    value: { states: ["free", "granted", "unknown"] },
  });
});

test("[M7] [N2] another cell's begin comes in between the parts of a large message", async () => {
  const c = await start();
  await begin(c, ["warm-up"]);
  await begin(c, ["warm-up-2"], "2");
  const answered: string[] = [];
  c.fate = () => "deliver";
  const large = Array.from({ length: 8 }, (_, lease) =>
    c.ledger("1").object.begin(
      beginRequest(
        c.envelope,
        c.uuid(),
        Array.from({ length: 250 }, (_unused, n) => `large-${lease}-${n}`),
      ),
    ),
  );
  const before = c.shard(0).sql.counts.transactions;
  const all = Promise.all(large).then(() => answered.push("large"));
  const small = c
    .ledger("2")
    .object.begin(beginRequest(c.envelope, c.uuid(), ["small"]))
    .then(() => answered.push("small"));
  await c.clock.runUntil(Promise.all([all, small]));
  expect(answered).toEqual(["small", "large"]);
  // 2,000 rows take at least two transactions of 1,000 rows.
  expect(c.shard(0).sql.counts.transactions - before).toBeGreaterThanOrEqual(2);
  expect(c.holds().filter(({ canonical }) => canonical.startsWith("large"))).toHaveLength(2_000);
});

test("[M6] [M7] while the disk hangs, a shard keeps a limited number of messages of each cell", async () => {
  const c = await start();
  await begin(c, ["warm-up"]);
  const release = c.shard(0).sql.holdFlushes();
  const exchange = (cell: string) => c.shard(0).object.exchange(exchangeOf(c.envelope, cell));
  const first = exchange("1");
  await c.clock.pass(10);
  const answers = Promise.all([first, ...Array.from({ length: 102 }, () => exchange("1")), exchange("2")]);
  await c.clock.pass(10);
  release();
  const refused = (await c.clock.runUntil(answers)).flatMap((answer, index) =>
    answer.ok ? [] : [[index, answer.refusal.code]],
  );
  // One is being written, and 100 wait. Another cell has a queue of its own.
  expect(refused).toEqual([
    [101, "UNAVAILABLE"],
    [102, "UNAVAILABLE"],
  ]);
});

test("[M6] [C6] a shard without room refuses more names, and carries out everything else", async () => {
  const c = await Cluster.start({ shards: 1, limits: { shardBytes: 200_000 } });
  const refusal = { code: "RESOURCE_EXHAUSTED", reason: "SHARD_FULL", retryAfterMs: 60_000 };
  const leases: string[] = [];
  const names = (n: number): string[] => Array.from({ length: 20 }, (_, k) => `${"x".repeat(200)}-${n}-${k}`);
  for (let n = 0; c.shard(0).sql.sizeBytes() <= 200_000; n += 1) leases.push(await begin(c, names(n)));
  expect(leases.length).toBeGreaterThan(5);
  const refused = (specs: OpSpec[]) =>
    c.clock.runUntil(c.ledger("2").object.begin(beginRequest(c.envelope, c.uuid(), specs)));
  expect(await refused([user("new", "1")])).toMatchObject({ ok: false, refusal });
  for (const lease of leases)
    await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  expect(c.claims()).toHaveLength(20 * leases.length);
  expect(c.holds()).toEqual([]);
  // Destroys make room.
  for (let n = 0; n < leases.length - 1; n += 1) {
    const destroys = names(n).map((value) => ({ kind: "destroy" as const, value }));
    await own(c, destroys);
  }
  // What has ended stays only while there is room for it (K3).
  await refused([user("new", "1")]);
  await c.pass(60_000);
  expect(await refused([user("newer", "2")])).toMatchObject({ ok: true });
});
