/** What a shard tells the change feed: leases, and claims that begin and end, in order. */
import { describe, expect, test } from "vitest";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { Outcome } from "../../../../src/coordinator/kernel/messages.ts";
import { ChangeNotes } from "../../../../src/coordinator/capabilities/feed/logged-changes.ts";
import type { Change } from "../../../../src/coordinator/capabilities/feed/messages.ts";
import type { ChangesPage } from "../../../../src/coordinator/capabilities/feed/messages.ts";
import { migrate } from "../../../support/migrate.ts";
import { changesPage } from "../../../../src/coordinator/capabilities/feed/changes-page.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { ShardLog } from "../../../../src/coordinator/kernel/shard/shard-log.ts";
import type { HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { isDecision } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { NodeSql } from "../../../support/node-sql.ts";
import { beginRequest, decideRequest, keyOf, operator, type OpSpec } from "../../../support/ops.ts";

const source = { type: "RAILS_TABLE_USERS", id: "1" } as const;
const LOG_ROWS = 16_384;

const newCluster = (limits = {}): Promise<Cluster> =>
  Cluster.start({ shards: 1, limits: { sweepAfterMs: 600_000, ...limits } });

async function begin(c: Cluster, ...specs: OpSpec[]): Promise<string> {
  const lease = c.uuid();
  const begun = await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, specs)));
  expect(begun).toMatchObject({ ok: true });
  return lease;
}

const decide = (c: Cluster, lease: string, outcome: Outcome): Promise<Result<unknown>> =>
  c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, outcome)));

const read = (
  c: Cluster,
  after: number | null,
  filter: { cell?: string; type?: number; limit?: number } = {},
): Promise<Result<ChangesPage>> => {
  const { cell = null, type = null, limit = 1_000 } = filter;
  return c.clock.runUntil(c.shard(0).object.listChanges({ ...c.envelope, after, cell, type, limit }));
};

const value = <T>(reply: Result<T>): T => {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
};

function logOf(sql: NodeSql): ShardLog {
  const log = new ShardLog(sql, { now: () => 1_000 });
  log.notes.provide(new ChangeNotes());
  return log;
}

const changes = async (c: Cluster, after = 0, filter = {}): Promise<Change[]> =>
  value(await read(c, after, filter)).changes;

const shown = (all: readonly Change[]): string[] =>
  all.map(({ event, lease, claim }) =>
    claim === undefined ? `${event} ${lease}` : `${event} ${claim.details?.value ?? "(erased)"}`,
  );

const rowCount = (c: Cluster): number =>
  c.shard(0).sql.all<{ n: number }>("SELECT count(*) AS n FROM log")[0]?.n ?? 0;

describe("what is told", () => {
  test("[F1] [F2] a committed lease is told with its claims, in the row that there is anyway", async () => {
    const c = await newCluster();
    const created = await begin(c, { value: "Ada", source }, { value: "grace", source });
    const before = rowCount(c);
    await decide(c, created, "COMMITTED");
    expect(rowCount(c)).toBe(before + 1);
    const told = await changes(c);
    expect(shown(told)).toEqual([
      `granted ${created}`,
      `committed ${created}`,
      "claimed Ada",
      "claimed grace",
    ]);
    const claim = c.shard(0).sql.all<{ uuid: string; epoch: number }>("SELECT uuid, epoch FROM claim")[0];
    expect(told[2]).toMatchObject({
      cell: "1",
      lease: created,
      epoch: claim?.epoch,
      claim: { uuid: claim?.uuid, details: { canonical: "ada", value: "Ada", source: { id: "1" } } },
    });
  });

  test("[F2] a replace and a destroy are told with the claim that they change", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    const replaced = await begin(c, { kind: "replace", value: "ADA", source: { ...source, id: "2" } });
    await decide(c, replaced, "COMMITTED");
    const destroyed = await begin(c, { kind: "destroy", value: "ada", subject: null, source: null });
    await decide(c, destroyed, "COMMITTED");
    const told = await changes(c);
    const claims = told.filter(({ claim }) => claim !== undefined);
    expect(claims.map(({ event }) => event)).toEqual(["claimed", "replaced", "released"]);
    expect(new Set(claims.map(({ claim }) => claim?.uuid)).size).toBe(1);
    // The claim ends with the epoch that the replace gave it.
    expect(claims[2]?.epoch).toBe(claims[1]?.epoch);
    expect(claims[2]?.lease).toBe(destroyed);
    expect(claims[2]?.claim?.details).toMatchObject({ value: "ADA", source: { id: "2" } });
  });

  test("[F4] a page names the incarnations that have reached its ends", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    const first = value(await read(c, 0));
    c.shard(0).restart();
    const [start, old] = first.incarnations;
    expect(start).toBe(0);
    expect(value(await read(c, first.through))).toMatchObject({ incarnations: [old, old] });
    await decide(c, await begin(c, { value: "grace", source }), "COMMITTED");
    const second = value(await read(c, first.through));
    const [, now] = second.incarnations;
    expect(second.incarnations).toEqual([old, now]);
    expect(now).toBeGreaterThan(old);
    const { point } = value(await c.clock.runUntil(c.shard(0).object.part(c.envelope)));
    expect(point).toEqual({ incarnation: now, position: second.through });
    expect(value(await read(c, 0, { limit: 1 }))).toMatchObject({ incarnations: [0, old] });
    // No page has changes of two incarnations.
    expect(value(await read(c, 0))).toMatchObject({ ...first, hasMore: true });
  });

  test("[F2] a lease that is rolled back is told without names, a refused begin not at all", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "taken", source }), "COMMITTED");
    const after = value(await read(c, null)).through;
    const lease = await begin(c, { value: "ada", source });
    await decide(c, lease, "ROLLED_BACK");
    const refused = beginRequest(c.envelope, c.uuid(), [
      { value: "taken", source },
      { value: "x", source },
    ]);
    expect(await c.clock.runUntil(c.ledger("1").object.begin(refused))).toMatchObject({ ok: false });
    expect(shown(await changes(c, after))).toEqual([`granted ${lease}`, `rolled_back ${lease}`]);
  });

  test("[F2] a decision that the shard learns by asking is told in the same way", async () => {
    const c = await newCluster();
    const lease = await begin(c, { value: "ada", source });
    c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
    await decide(c, lease, "COMMITTED");
    expect(shown(await changes(c))).toEqual([]);
    const keys = [keyOf("ROUTES", "ada")];
    value(await c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys })));
    expect(shown(await changes(c))).toEqual([`granted ${lease}`, `committed ${lease}`, "claimed ada"]);
  });

  test("[F3] a lease that stays open is told as granted after a sweep, and once only", async () => {
    const c = await newCluster({ sweepAfterMs: 5_000, maxBackoffMs: 5_000 });
    const lease = await begin(c, { value: "ada", source }, { value: "grace", source });
    expect(await changes(c)).toEqual([]);
    await c.pass(60_000);
    expect(shown(await changes(c))).toEqual([`granted ${lease}`]);
    await decide(c, lease, "COMMITTED");
    expect(shown(await changes(c))).toEqual([
      `granted ${lease}`,
      `committed ${lease}`,
      "claimed ada",
      "claimed grace",
    ]);
  });
});

test("[F2] a shard goes on if the claim of a committed destroy was lost behind its back", async () => {
  const c = await newCluster();
  await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
  const lease = await begin(c, { kind: "destroy", value: "ada", subject: null, source: null });
  c.shard(0).sql.transaction(["clear"], () => c.shard(0).sql.all("DELETE FROM claim"));
  await decide(c, lease, "COMMITTED");
  expect(c.shard(0).halted).toBe(false);
  expect(c.holds()).toEqual([]);
  const told = (await changes(c)).filter((change) => change.lease === lease);
  expect(shown(told)).toEqual([`granted ${lease}`, `committed ${lease}`]);
});

describe("a lease of many names", () => {
  test("[F2] [F3] is told once if it ends in several transactions, never as granted later", async () => {
    const c = await newCluster({ sweepAfterMs: 5_000 });
    const names = Array.from({ length: 40 }, (_, n) => `name-${n}`);
    const lease = await begin(c, ...names.map((name) => ({ value: name, source })));
    c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
    await decide(c, lease, "COMMITTED");
    // Each lookup asks about its own names only.
    for (const some of [names.slice(0, 10), names.slice(10, 30)]) {
      const keys = some.map((name) => keyOf("ROUTES", name));
      value(await c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys })));
    }
    c.fate = () => "deliver";
    await c.pass(60_000);
    const told = await changes(c);
    expect(shown(told.filter(({ claim }) => claim === undefined))).toEqual([
      `granted ${lease}`,
      `committed ${lease}`,
    ]);
    expect(told).toHaveLength(2 + names.length);
  });
});

describe("the pages", () => {
  test("[F4] without a position, a page is empty and tells the newest one", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    const page = value(await read(c, null));
    expect(page).toMatchObject({ after: page.through, changes: [], hasMore: false });
    await decide(c, await begin(c, { value: "grace", source }), "COMMITTED");
    expect(shown(await changes(c, page.through)).slice(2)).toEqual(["claimed grace"]);
  });

  test("[F4] end with the transaction that fills them, and give everything once, in order", async () => {
    const c = await newCluster();
    for (let n = 0; n < 10; n += 1)
      await decide(c, await begin(c, { value: `a${n}`, source }, { value: `b${n}`, source }), "COMMITTED");
    const all = await changes(c);
    const paged: Change[] = [];
    let pages = 0;
    for (let after = 0; ;) {
      const page = value(await read(c, after, { limit: 5 }));
      expect(page.after).toBe(after);
      paged.push(...page.changes);
      pages += 1;
      after = page.through;
      if (!page.hasMore) break;
    }
    expect(paged).toEqual(all);
    // Each commit has 4 changes, so two of them fill a page.
    expect(pages).toBe(5);
    const positions = all.map(({ position }) => position);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
  });

  test("[F5] have only the changes of one cell, and the claims of one type, if that is asked", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    await decide(c, await begin(c, { value: "ada", type: "USERNAMES", source }), "COMMITTED");
    const { type } = keyOf("USERNAMES", "ada");
    expect(shown(await changes(c, 0, { type }))).toEqual(["claimed ada"]);
    expect(await changes(c, 0, { cell: "2" })).toEqual([]);
    expect(await changes(c, 0, { cell: "1" })).toEqual(await changes(c));
    // The filters leave nothing, but the page says how far it has read.
    const page = value(await read(c, 0, { cell: "2" }));
    expect(page).toMatchObject({
      after: 0,
      through: value(await read(c, null)).through,
      changes: [],
      hasMore: false,
    });
  });

  test("[F4] a position that the shard does not have is refused, and can be asked again", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    expect(await read(c, 1_000_000)).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
  });

  test("[F4] a shard that has accepted a loss has no changes from before", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    const before = value(await read(c, null)).through;
    const { point } = value(await c.clock.runUntil(c.shard(0).object.part(c.envelope)));
    const declared = { incarnation: point?.incarnation ?? 0 };
    const message = { ...c.envelope, cells: ["1", "2"], declared, dryRun: false, operator };
    expect(await c.clock.runUntil(c.shard(0).object.reconcile(message))).toMatchObject({ ok: true });
    for (const after of [0, before])
      expect(await read(c, after)).toMatchObject({ ok: false, refusal: { reason: "CHANGES_PRUNED" } });
    expect(value(await read(c, null)).through).toBeGreaterThan(before);
  });
});

describe("the log", () => {
  const hold = (epoch: number, name: string): HoldRow => ({
    bucket_type: 1,
    canonical: name,
    kind: "create",
    cell: "1",
    lease: `lease-${epoch}`,
    incarnation: 1,
    counter: epoch,
    epoch,
    held_at_ms: 1,
    uuid: `uuid-${epoch}-${name.slice(0, 6)}`,
    value: name,
    subject_type: 1,
    subject_id: "1",
    source_type: 1,
    source_id: "1",
    source_order: "1",
    scope: null,
    granted_by: null,
  });

  function newLog(): { sql: NodeSql; log: ShardLog } {
    const sql = new NodeSql();
    migrate(sql, shardSchema);
    return { sql, log: logOf(sql) };
  }

  const commit = ({ sql, log }: { sql: NodeSql; log: ShardLog }, ...names: string[]): void =>
    sql.transaction(["exchange"], () => {
      const epoch = log.nextEpoch();
      for (const name of names) log.notes.current.noteCommitted(hold(epoch, name), undefined, false);
      log.append();
    });

  const everything = { cell: null, type: null, limit: 1_000 };

  function namesAfter(log: ShardLog, after: number): string[] | undefined {
    const names: string[] = [];
    for (let position = after; ;) {
      const found = changesPage(log, position, everything);
      if (found === undefined) return undefined;
      const { page } = found;
      names.push(...page.changes.flatMap(({ claim }) => claim?.details?.value ?? []));
      if (!page.hasMore) return names;
      position = page.through;
    }
  }

  const dropped = (sql: NodeSql): number =>
    sql.all<{ n: number }>("SELECT count(*) AS n FROM log WHERE changes IS NULL")[0]?.n ?? 0;

  test("[F4] a position whose changes are no longer in the ring is refused, later ones are told", () => {
    const store = newLog();
    for (let n = 0; n < LOG_ROWS + 100; n += 1) commit(store, `name-${n}`);
    for (const log of [store.log, logOf(store.sql)]) {
      expect(namesAfter(log, 99)).toBeUndefined();
      const names = namesAfter(log, 100);
      expect(names).toHaveLength(LOG_ROWS);
      expect([names?.[0], names?.at(-1)]).toEqual(["name-100", `name-${LOG_ROWS + 99}`]);
    }
  });

  test("[F4] [G9] tells all changes of a new shard that got its names in many transactions", () => {
    const store = newLog();
    const receive = (): void => store.sql.transaction(["receive"], () => store.log.append());
    const both = (): ShardLog[] => [store.log, logOf(store.sql)];
    for (let n = 0; n < LOG_ROWS + 100; n += 1) receive();
    for (const log of both()) expect(namesAfter(log, 0)).toEqual([]);
    commit(store, "first");
    for (let n = 0; n < LOG_ROWS - 1; n += 1) receive();
    for (const log of both()) expect(namesAfter(log, 0)).toEqual(["first"]);
    receive();
    commit(store, "second");
    const first = LOG_ROWS + 101;
    for (const log of both()) {
      expect(namesAfter(log, first - 1)).toBeUndefined();
      expect(namesAfter(log, first)).toEqual(["second"]);
    }
  });

  test("[F4] a page ends with an incarnation, also if its last rows are no longer in the ring", () => {
    const store = newLog();
    for (let n = 0; n < LOG_ROWS + 100; n += 1) store.sql.transaction(["receive"], () => store.log.append());
    commit(store, "later");
    const found = changesPage(store.log, 10, everything, 50);
    expect(found?.page).toEqual({ after: 10, through: 50, changes: [], hasMore: true });
  });

  test("[F4] drops the oldest changes when all are too large, and keeps the reports of routers", () => {
    const store = newLog();
    const long = "x".repeat(1_000);
    const namesOf = (n: number): string[] => Array.from({ length: 100 }, (_, m) => `${n}-${m}-${long}`);
    // Each row has some 100,000 characters, so the log has room for the changes of some 300 rows.
    for (let n = 0; n < 400; n += 1) commit(store, ...namesOf(n));
    const rows = dropped(store.sql);
    expect(rows).toBeGreaterThan(50);
    expect(rows).toBeLessThan(150);
    for (const log of [store.log, logOf(store.sql)]) {
      expect(namesAfter(log, rows - 1)).toBeUndefined();
      expect(namesAfter(log, rows)).toHaveLength((400 - rows) * 100);
      expect(log.holdsAfter(0, 1_000)).toHaveLength(400);
    }
  });

  test("[F2] a decision is told if a sweep has found the grant in the same transaction", () => {
    const { sql, log } = newLog();
    const told = (name: string, note: (of: HoldRow) => void): string[] => {
      const after = log.position;
      sql.transaction(["clear", "exchange"], () => {
        const of = hold(log.nextEpoch(), name);
        log.notes.current.noteGranted(of);
        note(of);
        log.append();
      });
      expect(log.notes.current.isTold({ epoch: log.position, granted_by: null })).toBe(false);
      return changesPage(log, after, everything)?.page.changes.map(({ event }) => event) ?? [];
    };
    const committed = told("ada", (of) => log.notes.current.noteCommitted(of, undefined, false));
    expect(committed).toEqual(["granted", "committed", "claimed"]);
    const rolledBack = told("grace", (of) => log.notes.current.noteRolledBack(of, false));
    expect(rolledBack).toEqual(["granted", "rolled_back"]);
  });

  test("[F3] a shard remembers a limited number of grants, and tells the others once more", () => {
    const { sql, log } = newLog();
    const tell = (first: number, last: number): number => {
      const before = log.position;
      for (let epoch = first; epoch <= last; epoch += 1)
        sql.transaction(["clear"], () => {
          log.notes.current.noteGranted(hold(epoch, "name"));
          if (!log.notes.current.isEmpty) log.append();
        });
      return log.position - before;
    };
    expect(tell(1, 10_000)).toBe(10_000);
    expect(tell(1, 10_000)).toBe(0);
    expect(tell(10_001, 10_001)).toBe(1);
    expect(tell(1, 10_001)).toBe(10_001);
    // A grant that is told counts until the lease is decided.
    commit({ sql, log }, "name");
    expect(log.notes.current.isTold({ epoch: log.position, granted_by: null })).toBe(false);
  });

  test("[F1] changes that are too long for one row are written to several, each once", () => {
    const store = newLog();
    const names = Array.from({ length: 900 }, (_, n) => `${n}-${"é".repeat(500)}`);
    commit(store, ...names);
    const longest =
      store.sql.all<{ n: number }>("SELECT max(octet_length(changes)) AS n FROM log")[0]?.n ?? 0;
    expect(longest).toBeLessThan(2_000_000);
    expect(namesAfter(store.log, 0)).toEqual(names);
    const events = changesPage(store.log, 0, everything)?.page.changes.map(({ event }) => event);
    expect(events?.filter((event) => event !== "claimed")).toEqual(["granted", "committed"]);
    commit(store, "later");
    expect(namesAfter(logOf(store.sql), 0)).toEqual([...names, "later"]);
  });
});

describe("erasing a name", () => {
  test("[K5] the changes of its past claims have no details any more, those of its claim do", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "Ada", source }), "COMMITTED");
    await decide(
      c,
      await begin(c, { kind: "replace", value: "aDA", source: { ...source, id: "2" } }),
      "COMMITTED",
    );
    await decide(c, await begin(c, { value: "other", source }), "COMMITTED");
    const before = await changes(c);
    const key = keyOf("ROUTES", "ada");
    const erased = await c.clock.runUntil(
      c.shard(0).object.erasePeriods({ ...c.envelope, key, dryRun: false }),
    );
    expect(erased).toMatchObject({ ok: true, value: { erased: 1, changes: 1, hasMore: false } });
    const after = await changes(c);
    expect(shown(after.filter(({ claim }) => claim !== undefined))).toEqual([
      "claimed (erased)",
      "replaced aDA",
      "claimed other",
    ]);
    const facts = (all: Change[]): unknown[] => all.map(({ claim, ...rest }) => [rest, claim?.uuid]);
    expect(facts(after)).toEqual(facts(before));
    const stored = JSON.stringify(c.shard(0).sql.all("SELECT changes FROM log"));
    expect(stored).not.toContain("Ada");
  });

  test("[K5] [F5] an erased release is told to those who asked for its type", async () => {
    const c = await newCluster();
    await decide(c, await begin(c, { value: "ada", source }), "COMMITTED");
    const { type } = keyOf("ROUTES", "ada");
    const { through } = value(await read(c, 0, { type }));
    await decide(
      c,
      await begin(c, { kind: "destroy", value: "ada", subject: null, source: null }),
      "COMMITTED",
    );
    value(
      await c.clock.runUntil(
        c
          .shard(0)
          .object.erasePeriods({ ...c.envelope, key: keyOf("ROUTES", "ada"), operator, dryRun: false }),
      ),
    );
    expect(shown(await changes(c, through, { type }))).toEqual(["released (erased)"]);
    expect(await changes(c, through, { type: keyOf("EMAILS", "a@example.com").type })).toEqual([]);
  });

  test("[K5] a name that only the log has is erased there, and a dry run says so", async () => {
    const c = await newCluster({ nameHistoryS: 86_400 });
    await decide(c, await begin(c, { value: "ada", source }, { value: "1", source }), "COMMITTED");
    await decide(
      c,
      await begin(c, { kind: "destroy", value: "ada", subject: null, source: null }),
      "COMMITTED",
    );
    await c.clock.pass(3 * 86_400_000);
    await c.clock.runUntil(c.shard(0).object.alarm());
    const erase = async (dryRun: boolean): Promise<unknown> =>
      value(
        await c.clock.runUntil(
          c.shard(0).object.erasePeriods({ ...c.envelope, key: keyOf("ROUTES", "ada"), operator, dryRun }),
        ),
      );
    const found = { erased: 0, changes: 2, hasMore: false, claimEpoch: null };
    expect(await erase(true)).toEqual(found);
    expect(await erase(false)).toEqual(found);
    expect(await erase(false)).toEqual({ ...found, changes: 0 });
    const claims = (await changes(c)).filter(({ claim }) => claim !== undefined);
    expect(shown(claims)).toEqual(["claimed (erased)", "claimed 1", "released (erased)"]);
  });
});

test("a shard counts the reads of its changes", async () => {
  const c = await Cluster.start({ shards: 1 });
  const request = { ...c.envelope, after: null, cell: null, type: null, limit: 10 };
  await c.clock.runUntil(c.shard(0).object.listChanges(request));
  expect(await c.clock.runUntil(c.shard(0).object.metrics(c.envelope))).toMatchObject({
    value: { changeReads: 1 },
  });
});
