/** Tests of the scrub: what it finds, what it must not report, and how it continues. */
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type {
  CheckHolds,
  ScrubBegin,
  ScrubFinding,
  ScrubPass,
  ScrubStatus,
} from "../../../../src/coordinator/capabilities/scrub/messages.ts";
import { PAST_CLAIM_TABLES } from "../../../../src/coordinator/capabilities/past-claims/shard.ts";
import { RANGE_HOLD_TABLES } from "../../../../src/coordinator/capabilities/transfer/range-holds.ts";
import { migrate } from "../../../support/migrate.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { scrubStatements } from "../../../../src/coordinator/capabilities/scrub/shard.ts";
import type { StoredEntry } from "../../../../src/coordinator/kernel/shard/hold-entries.ts";
import { MAX_FINDINGS } from "../../../../src/coordinator/capabilities/scrub/scrub.ts";
import { Cluster, type Fate } from "../../../support/cluster.ts";
import { begin, decide, LOST, own, saveLedger, saveShard } from "../../../support/go-back.ts";
import { damageHolds, entryWith, HOLDS, loseHolds } from "../../../support/holds.ts";
import { NodeSql } from "../../../support/node-sql.ts";
import { bucketType, ruleOf } from "../../../support/types.ts";

type Part = "shard" | "ledger";

const start = (limits: Partial<Limits> = {}, shards = 1): Promise<Cluster> =>
  Cluster.start({ shards, limits });

/** Above every incarnation, so that a declared loss counts. */
const MAX = Number.MAX_SAFE_INTEGER;

const rules = [[bucketType("ROUTES"), ruleOf("ROUTES")]] satisfies [number, unknown][];

function step(c: Cluster, part: Part, startWhen: ScrubBegin = "if_none"): Promise<Result<ScrubStatus>> {
  const object = part === "shard" ? c.shard(0).object : c.ledger("1").object;
  return c.clock.runUntil(object.scrub({ ...c.envelope, begin: startWhen, rules }));
}

function valueOf<T>(reply: Result<T>): T {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
}

/** Runs a whole pass, and returns it. */
async function scrub(c: Cluster, part: Part): Promise<ScrubPass> {
  let status = valueOf(await step(c, part, "always"));
  for (let steps = 0; status.running !== null; steps += 1) {
    if (steps > 1_000) throw new Error("the pass does not end");
    status = valueOf(await step(c, part));
  }
  if (status.last === null) throw new Error("no pass has ended");
  return status.last;
}

const kinds = ({ findings }: ScrubPass): string[] => findings.map(({ kind }) => kind);

/** Some claims, past claims, open leases and decisions, of two cells. */
async function fill(c: Cluster): Promise<void> {
  for (const name of ["a", "b", "c", "d"]) await own(c, "1", name);
  await own(c, "2", "e");
  await own(c, "1", { kind: "destroy", value: "a" });
  await own(c, "1", { kind: "replace", value: "b", source: { type: "RAILS_TABLE_ROUTES", id: "007" } });
  await begin(c, "1", c.uuid(), ["open"]);
  await begin(c, "1", c.uuid(), [{ kind: "destroy", value: "c" }]);
  await begin(c, "1", c.uuid(), [{ kind: "replace", value: "d" }]);
}

describe("a scrub of rows that follow the rules", () => {
  test.each(["shard", "ledger"] as const)("[Z1] finds nothing, and changes no row of a %s", async (part) => {
    const c = await start();
    await fill(c);
    await c.pass(10_000);
    const { database } = part === "shard" ? c.shard(0) : c.ledger("1");
    const tables = part === "shard" ? ["claim", "past_claim", "log", "incarnation"] : ["lease"];
    const rows = () => tables.map((table) => database.prepare(`SELECT * FROM ${table}`).all());
    const before = rows();
    const pass = await scrub(c, part);
    expect(pass).toMatchObject({ counts: {}, findings: [], clearedHolds: 0, unchecked: 0, number: 1 });
    expect(pass.rows).toBe(part === "shard" ? 4 + 3 + 2 : 3 + 9);
    expect(rows()).toEqual(before);
  });

  test("[Z3] an inquiry ends a hold whose execution is over, and no other", async () => {
    const c = await start();
    const orphan = c.uuid();
    await begin(c, "1", orphan, ["orphan"]);
    await begin(c, "1", c.uuid(), ["open"]);
    // The ledger has never heard of the lease, as after a crash before the grant (B7).
    c.ledger("1").database.prepare("DELETE FROM lease WHERE lease = ?").run(orphan);
    expect(await scrub(c, "shard")).toMatchObject({ clearedHolds: 0 });
    await c.clock.pass(c.limits.sweepAfterMs);
    expect(await scrub(c, "shard")).toMatchObject({ clearedHolds: 1, findings: [], unchecked: 0 });
    expect(c.holds().map(({ canonical }) => canonical)).toEqual(["open"]);
  });

  test("[Z3] a hold whose ledger does not answer is unchecked, and stays", async () => {
    const c = await start();
    await begin(c, "1", c.uuid(), ["open"]);
    await c.clock.pass(c.limits.sweepAfterMs);
    c.fate = ({ method }): Fate => (method === "inquire" ? "lose" : "deliver");
    expect(await scrub(c, "shard")).toMatchObject({ unchecked: 1, clearedHolds: 0, findings: [] });
    expect(c.holds()).toHaveLength(1);
  });
});

describe("a scrub of a shard", () => {
  const damages: [kind: string, table: string, damage: string | ((entry: StoredEntry) => StoredEntry)][] = [
    ["wrong_epoch", "claims", "UPDATE claim SET epoch = 1000000 WHERE canonical = 'b'"],
    ["wrong_epoch", "holds", entryWith("open", (entry) => (entry[2] = 1_000_000))],
    ["wrong_epoch", "holds", entryWith("d", (entry) => (entry[2] = 1))],
    ["wrong_epoch", "past_claims", "UPDATE past_claim SET epoch = 1000000 WHERE canonical = 'a'"],
    [
      "wrong_epoch",
      "past_claims",
      "UPDATE past_claim SET epoch = (SELECT max(epoch) FROM claim) WHERE canonical = 'b'",
    ],
    ["wrong_digest", "claims", "UPDATE claim SET digest_2 = digest_2 + 1 WHERE canonical = 'b'"],
    ["wrong_digest", "claims", "UPDATE claim SET subject_id = '2' WHERE canonical = 'b'"],
    ["wrong_source_order", "claims", "UPDATE claim SET source_order = '0017' WHERE canonical = 'b'"],
    ["wrong_canonical_form", "holds", entryWith("open", setField(2, "Other"))],
    ["wrong_canonical_form", "past_claims", "UPDATE past_claim SET value = 'Other' WHERE canonical = 'a'"],
    ["unfit_hold", "holds", "DELETE FROM claim WHERE canonical = 'c'"],
    ["unfit_hold", "holds", "UPDATE claim SET cell = '2' WHERE canonical = 'd'"],
    ["unfit_hold", "holds", entryWith("d", setField(1, null))],
    ["unfit_hold", "holds", entryWith("d", setField(0, 1))],
  ];

  test.each(damages)("[Z2] finds a %s in the %s", async (kind, table, damage) => {
    const c = await start();
    await fill(c);
    damageShard(c, damage);
    const pass = await scrub(c, "shard");
    expect(pass.findings).toEqual([expect.objectContaining({ kind, table })]);
    expect(pass.counts).toEqual({ [kind]: 1 });
    expect(pass.findings[0]?.key?.type).toBe(bucketType("ROUTES"));
  });

  const unlogged: [what: string, change: (entry: StoredEntry) => StoredEntry | null][] = [
    ["is not in the log", (entry) => (entry[9][0] === `${bucketType("ROUTES")} d` ? null : entry)],
    ["has another cell in the log", entryWith("d", (entry) => (entry[4] = "2"))],
    ["has another time in the log", entryWith("d", (entry) => (entry[8] += 1))],
    ["has another kind in the log", entryWith("d", setField(0, 1))],
    ["is in another entry of the log", entryWith("d", (entry) => (entry[1] += 1))],
  ];

  test.each(unlogged)("[Z2] finds a held name that %s", async (_, change) => {
    const c = await start();
    await fill(c);
    damageHolds(c.shard(0), change);
    const { findings } = await scrub(c, "shard");
    expect(findings).toEqual([
      expect.objectContaining({
        kind: "unlogged_hold",
        table: "holds",
        key: { type: bucketType("ROUTES"), canonical: "d" },
        cell: "1",
        lease: null,
        epoch: null,
      }),
    ]);
  });

  test("[Z2] finds a spelling that gives another canonical form", async () => {
    const c = await start();
    await fill(c);
    c.shard(0).database.exec("UPDATE claim SET value = 'Other' WHERE canonical = 'b'");
    expect(kinds(await scrub(c, "shard"))).toEqual(["wrong_canonical_form", "wrong_digest"]);
  });

  test("[Z2] does not compare the form of a name whose type the message does not have", async () => {
    const c = await start();
    await fill(c);
    c.shard(0).database.exec("UPDATE past_claim SET value = 'Other'");
    const { object } = c.shard(0);
    const done = await c.clock.runUntil(object.scrub({ ...c.envelope, begin: "always" }));
    expect(valueOf(done).last?.findings).toEqual([]);
  });

  test("[Z2] finds a name that belongs to another shard", async () => {
    const c = await start({}, 2);
    for (const name of ["a", "b", "c", "d", "e", "f"]) await own(c, "1", name);
    const [foreign] = c.shard(1).database.prepare("SELECT * FROM claim LIMIT 1").all();
    if (foreign === undefined) throw new Error("the test has no name on shard 1");
    const columns = Object.keys(foreign);
    c.shard(0)
      .database.prepare(`INSERT INTO claim (${columns.join()}) VALUES (${columns.map(() => "?").join()})`)
      .run(...Object.values({ ...foreign, epoch: 1 }));
    const { findings } = await scrub(c, "shard");
    expect(findings).toEqual([
      expect.objectContaining({
        kind: "wrong_shard",
        table: "claims",
        key: { type: foreign["bucket_type"], canonical: foreign["canonical"] },
        cell: "1",
        lease: null,
        epoch: 1,
      }) as ScrubFinding,
    ]);
  });

  test("[Z4] each statement reads a limited number of rows in the order of its primary key", () => {
    const sql = new NodeSql(new DatabaseSync(":memory:"));
    migrate(sql, [...shardSchema, PAST_CLAIM_TABLES, RANGE_HOLD_TABLES]);
    for (const statement of Object.values(scrubStatements)) {
      const bindings = Array<number>(statement.split("?").length - 1).fill(1);
      const plan = JSON.stringify(sql.database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all(...bindings));
      expect(plan).toContain("USING PRIMARY KEY");
      expect(plan).not.toContain("SCAN");
      expect(plan).not.toContain("FOR ORDER BY");
    }
  });
});

describe("a scrub of a ledger", () => {
  test("[Z3] finds a granted lease that has lost a hold, and says on which shard", async () => {
    const c = await start({}, 4);
    const lease = c.uuid();
    await begin(c, "1", lease, ["a", "b", "c", "d", "e", "f"]);
    await begin(c, "1", c.uuid(), ["g"]);
    const shard = [0, 1, 2, 3].find((index) => holdsOn(c, index) > 0) ?? 0;
    const holds = loseHolds(c.shard(shard));
    const pass = await scrub(c, "ledger");
    expect(pass.findings.filter((each) => each.lease === lease)).toEqual([
      {
        kind: "missing_holds",
        table: "leases",
        key: null,
        cell: "1",
        lease,
        epoch: null,
        missing: { shard, holds: expect.any(Number) as number },
        foundAtMs: c.clock.now(),
      },
    ]);
    expect(pass.findings.reduce((sum, { missing }) => sum + (missing?.holds ?? 0), 0)).toBe(holds);
  });

  test("[Z3] finds a hold with another epoch, and one of another attempt", async () => {
    const c = await start();
    await begin(c, "1", c.uuid(), ["a"]);
    await begin(c, "1", c.uuid(), ["b"]);
    damageShard(
      c,
      entryWith("b", (entry) => (entry[2] -= 1)),
    );
    damageShard(
      c,
      entryWith("a", (entry) => (entry[7] += 1)),
    );
    expect(kinds(await scrub(c, "ledger"))).toEqual(["missing_holds", "missing_holds"]);
  });

  test("[Z3] a destroy without a claim has no hold, and one that has lost it is found", async () => {
    const c = await start();
    await own(c, "1", "a");
    const destroys = ["a", "b"].map((value) => ({ kind: "destroy" as const, value }));
    await begin(c, "1", c.uuid(), destroys, { allowMissing: true });
    await begin(c, "1", c.uuid(), [{ kind: "destroy", value: "c" }], { allowMissing: true });
    expect(await scrub(c, "ledger")).toMatchObject({ rows: 2, findings: [], unchecked: 0 });
    loseHolds(c.shard(0));
    expect(kinds(await scrub(c, "ledger"))).toEqual(["missing_holds"]);
  });

  test("[Z3] a lease that is decided before the shards answer is no finding", async () => {
    const c = await start();
    const lease = c.uuid();
    await begin(c, "1", lease, ["a"]);
    let decided: Promise<unknown> | undefined;
    c.fate = ({ method }): Fate => {
      if (method !== "checkHolds") return "deliver";
      decided ??= c.ledger("1").object.decide({
        ...c.envelope,
        caller: { role: "cell", keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER },
        requestId: "request-2",
        lease,
        outcome: "COMMITTED",
      });
      return "slow";
    };
    const pass = await scrub(c, "ledger");
    expect(decided).toBeDefined();
    expect(c.holds()).toEqual([]);
    expect(pass).toMatchObject({ findings: [], unchecked: 0 });
  });

  test("[Z3] a lease on a shard that does not answer is unchecked, and others are checked", async () => {
    const c = await start({}, 4);
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) await begin(c, "1", c.uuid(), [name]);
    const lost = holdsOn(c, 2);
    expect(lost).toBeGreaterThan(0);
    c.fate = ({ to, method }): Fate => (to === "shard 2" && method === "checkHolds" ? "lose" : "deliver");
    for (const index of [0, 1, 2, 3]) loseHolds(c.shard(index));
    const pass = await scrub(c, "ledger");
    expect(pass).toMatchObject({ unchecked: lost, counts: { missing_holds: 8 - lost } });
  });

  test("[Z3] finds a lease whose row cannot be read, and a decision that nobody delivers", async () => {
    const c = await start();
    const [open, decided] = [c.uuid(), c.uuid()];
    await begin(c, "1", open, ["a"]);
    await begin(c, "1", decided, ["b"]);
    c.fate = ({ method }): Fate => (method === "exchange" ? "lose" : "deliver");
    await decide(c, "1", decided, "COMMITTED");
    await c.pass(10_000);
    expect(await scrub(c, "ledger")).toMatchObject({ rows: 3, findings: [] });
    c.fate = () => "deliver";
    await c.pass(600_000);
    const { database } = c.ledger("1");
    database.prepare("UPDATE lease SET payload = 'x' WHERE lease = ?").run(open);
    database.prepare("UPDATE lease SET pending = 1 WHERE lease = ?").run(decided);
    const { findings } = await scrub(c, "ledger");
    expect(findings.map(({ kind, table, lease }) => ({ kind, table, lease }))).toEqual([
      { kind: "unreadable_lease", table: "leases", lease: open },
      { kind: "undelivered_decision", table: "decisions", lease: decided },
    ]);
  });

  test("[Z3] finds a granted lease that no list has", async () => {
    const c = await start();
    const lease = c.uuid();
    await begin(c, "1", lease, ["a"]);
    await own(c, "1", "b");
    await c.pass(10_000);
    expect(kinds(await scrub(c, "ledger"))).toEqual([]);
    c.ledger("1").database.prepare("UPDATE lease SET pending = 0 WHERE lease = ?").run(lease);
    expect((await scrub(c, "ledger")).findings).toMatchObject([{ kind: "unlisted_lease", lease }]);
  });

  test("[Z3] a shard that went back in time notices it, and is no finding", async () => {
    const c = await start();
    await own(c, "1", "a");
    const goBack = saveShard(c);
    await begin(c, "1", c.uuid(), ["b"]);
    goBack();
    expect(await scrub(c, "ledger")).toMatchObject({ findings: [], unchecked: 1 });
    expect(await step(c, "shard")).toEqual(LOST);
    const status = await c.clock.runUntil(c.shard(0).object.scrubStatus(c.envelope));
    expect(valueOf(status)).toMatchObject({ state: "lost", running: null, last: null });
  });

  test("[Z3] a ledger that went back in time notices it, and is no finding", async () => {
    const c = await start();
    await own(c, "1", "a");
    const lease = c.uuid();
    await begin(c, "1", lease, ["b"]);
    const goBack = saveLedger(c);
    await decide(c, "1", lease, "COMMITTED");
    c.ledger("1").restart();
    await own(c, "1", "c");
    goBack();
    expect(await step(c, "ledger")).toEqual(LOST);
  });

  test("[Z4] what the running pass finds again counts once", async () => {
    const c = await start();
    await own(c, "1", "a");
    c.shard(0).database.exec("UPDATE claim SET epoch = 1000000");
    expect((await scrub(c, "shard")).counts).toEqual({ wrong_epoch: 1 });
    // The next pass has found the row, and has not ended.
    const running = {
      pass: { ...(await scrub(c, "shard")), endedAtMs: null },
      cursor: { table: "holds", behind: [] },
    };
    const last = await scrub(c, "shard");
    const stored = JSON.stringify({ running, last });
    c.shard(0).database.prepare("UPDATE meta SET value = ? WHERE name = 'scrub'").run(stored);
    const { object } = c.shard(0);
    expect(valueOf(await c.clock.runUntil(object.ping(c.envelope))).scrub.findings).toBe(1);
    expect(valueOf(await c.clock.runUntil(object.metrics(c.envelope))).scrub.findings).toBe(1);
  });

  test("[Z3] [Z5] what a reconciling shard has lost is no finding", async () => {
    const c = await start();
    await own(c, "1", "a");
    await begin(c, "1", c.uuid(), ["b"]);
    const message = { ...c.envelope, cells: ["1", "2"], dryRun: false, declared: { incarnation: MAX } };
    const { status } = valueOf(await c.clock.runUntil(c.shard(0).object.reconcile(message)));
    expect(status.state).toBe("reconciling");
    loseHolds(c.shard(0));
    const { object } = c.shard(0);
    expect(await scrub(c, "ledger")).toMatchObject({ findings: [], unchecked: 1 });
    expect(await step(c, "shard")).toEqual(LOST);
    expect(valueOf(await c.clock.runUntil(object.ping(c.envelope))).scrub.isDue).toBe(false);
    const finished = object.finishReconciliation({ ...c.envelope, removedCells: [] });
    expect(valueOf(await c.clock.runUntil(finished)).state).toBe("complete");
    expect(await scrub(c, "shard")).toMatchObject({ findings: [], number: 1 });
  });

  test("[M7] a shard refuses a message about too many holds", async () => {
    const c = await start();
    await own(c, "1", "a");
    const keys = Array.from({ length: 20_001 }, (_, index) => ({ type: 1, canonical: String(index) }));
    const executions = [{ lease: c.uuid(), incarnation: 1, counter: 1, epoch: 1, grantedBy: 0, keys }];
    const message: CheckHolds = { ...c.envelope, cell: "1", executions };
    expect(await c.clock.runUntil(c.shard(0).object.checkHolds(message))).toMatchObject({
      ok: false,
      refusal: { code: "INVALID_ARGUMENT" },
    });
  });
});

describe("passes", () => {
  test("[Z4] each step reads few rows, and a pass reads each row once, also across restarts", async () => {
    const c = await start({ scanRows: 2 });
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    for (const name of names) await own(c, "1", name);
    await begin(c, "1", c.uuid(), ["open"]);
    c.shard(0).database.exec("UPDATE claim SET digest_0 = digest_0 + 1");
    let status = valueOf(await step(c, "shard"));
    const found: (string | undefined)[] = [];
    let rows = 0;
    for (; status.running !== null; status = valueOf(await step(c, "shard"))) {
      expect(status.running.rows - rows).toBeLessThanOrEqual(2);
      ({ rows } = status.running);
      c.shard(0).restart();
    }
    found.push(...(status.last?.findings ?? []).map(({ key }) => key?.canonical));
    expect(found).toEqual(names);
    expect(status.last?.rows).toBe(names.length + 1);
  });

  test("[Z4] a ledger's pass reads each lease once, also across restarts", async () => {
    const c = await start({ scanRows: 2 });
    const leases = ["a", "b", "c", "d", "e"].map((name) => ({ name, lease: c.uuid() }));
    for (const { name, lease } of leases) await begin(c, "1", lease, [name]);
    for (const name of ["x", "y", "z"]) await own(c, "1", name);
    loseHolds(c.shard(0));
    let status = valueOf(await step(c, "ledger"));
    let rows = 0;
    for (; status.running !== null; status = valueOf(await step(c, "ledger"))) {
      expect(status.running.rows - rows).toBeLessThanOrEqual(2);
      ({ rows } = status.running);
      c.ledger("1").restart();
    }
    expect(status.last?.findings.map(({ lease }) => lease)).toEqual(leases.map(({ lease }) => lease));
    expect(status.last?.rows).toBe(5);
  });

  test("[Z4] [M6] keeps the first findings, and counts all", async () => {
    const c = await start({ scanRows: 10 });
    for (let index = 0; index < MAX_FINDINGS + 5; index += 1) await own(c, "1", `name-${index}`);
    c.shard(0).database.exec("UPDATE claim SET digest_0 = digest_0 + 1");
    const pass = await scrub(c, "shard");
    expect(pass.findings).toHaveLength(MAX_FINDINGS);
    expect(pass.counts).toEqual({ wrong_digest: MAX_FINDINGS + 5 });
    c.shard(0).database.exec("UPDATE claim SET digest_0 = digest_0 - 1");
    expect(await scrub(c, "shard")).toMatchObject({ number: 2, counts: {}, findings: [] });
  });

  test("[Z4] [M6] steps at the same time share one step", async () => {
    const c = await start({ scanRows: 2 });
    for (const name of ["a", "b", "c", "d", "e"]) await own(c, "1", name);
    const { object } = c.shard(0);
    const message = { ...c.envelope, begin: "if_none" as const };
    const both = Promise.all([object.scrub(message), object.scrub(message)]);
    const [first, second] = await c.clock.runUntil(both);
    expect(first).toEqual(second);
    expect(valueOf(first).running?.rows).toBe(2);
  });

  test("[Z4] the record is no part of the history", async () => {
    const c = await start();
    await own(c, "1", "a");
    const point = async () => valueOf(await c.clock.runUntil(c.shard(0).object.part(c.envelope))).point;
    const before = await point();
    c.shard(0).restart();
    await scrub(c, "shard");
    expect(await point()).toEqual(before);
  });

  test("[Z5] a pass is due a day after the last one began", async () => {
    const c = await start({ scrubEveryS: 86_400 });
    await own(c, "1", "a");
    const isDue = async () => valueOf(await c.clock.runUntil(c.shard(0).object.ping(c.envelope))).scrub.isDue;
    expect(await isDue()).toBe(true);
    expect(valueOf(await step(c, "shard", "when_due")).last?.number).toBe(1);
    await c.clock.pass(86_400_000 - 1_000);
    expect(await isDue()).toBe(false);
    expect(valueOf(await step(c, "shard", "when_due")).last?.number).toBe(1);
    await c.clock.pass(1_000);
    expect(await isDue()).toBe(true);
    expect(valueOf(await step(c, "shard", "when_due")).last?.number).toBe(2);
  });

  test("[Z5] [M4] a clock that was set back makes a pass due", async () => {
    const c = await start({ scrubEveryS: 86_400 });
    await own(c, "1", "a");
    await scrub(c, "shard");
    c.clock.jump(-2 * 86_400_000);
    expect(valueOf(await step(c, "shard", "when_due")).last?.number).toBe(2);
  });

  test("[Z5] 0 seconds: only operators scrub", async () => {
    const c = await start({ scrubEveryS: 0 });
    await own(c, "1", "a");
    const ping = await c.clock.runUntil(c.shard(0).object.ping(c.envelope));
    expect(valueOf(ping).scrub.isDue).toBe(false);
    expect(valueOf(await step(c, "shard", "when_due")).last).toBeNull();
    expect(valueOf(await step(c, "shard")).last?.number).toBe(1);
  });
});

const holdsOn = (c: Cluster, shard: number): number =>
  c.shard(shard).database.prepare(`SELECT 1 FROM ${HOLDS}`).all().length;

/** Returns a change of the first hold of an entry. */
function setField(index: number, value: string | number | null): (entry: StoredEntry) => void {
  return ([, , , , , , , , , , [hold]]) => {
    if (Array.isArray(hold)) Object.assign(hold, { [index]: value });
  };
}

/** Changes rows of the shard, or entries of its log, which the next instance reads. */
function damageShard(c: Cluster, damage: string | ((entry: StoredEntry) => StoredEntry)): void {
  const shard = c.shard(0);
  if (typeof damage === "string") return shard.database.exec(damage);
  damageHolds(shard, damage);
  shard.restart();
}
