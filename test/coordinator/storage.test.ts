/**
 * Goes through the list in docs/reference/storage.md: it is complete, and every bound in it holds. A
 * structure without a proof fails, and so does a proof without a structure.
 */
import { getTableName } from "drizzle-orm";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { migration as mysqlMigration } from "../../src/users/cell/mysql/schema.ts";
import { migration as postgresMigration } from "../../src/users/cell/postgres/schema.ts";
import { raiseIncarnation } from "../../src/coordinator/kernel/instances.ts";
import { HeldNames } from "../../src/coordinator/kernel/shard/held-names.ts";
import { Attempt } from "../../src/coordinator/kernel/ledger/attempt.ts";
import { ReadLimiter } from "../../src/coordinator/capabilities/reads/read-limiter.ts";
import { ledgerSchema } from "../../src/coordinator/kernel/ledger/schema.ts";
import type { ShardLinks } from "../../src/coordinator/kernel/ledger/shard-links.ts";
import { apiLimitName, defaultLimits, limitNames, type Limits } from "../../src/common/limits.ts";
import { migrate } from "../support/migrate.ts";
import { ok, refused } from "../../src/coordinator/kernel/refusal.ts";
import { configOf, type Env } from "../../src/coordinator/env.ts";
import { deploymentOf } from "../../src/coordinator/isolate/deployment.ts";
import { UseRecorder } from "../../src/coordinator/capabilities/keys/edge/use-recorder.ts";
import { SqliteDatabase } from "../../src/hosts/node/sqlite-database.ts";
import { Host } from "../../src/hosts/node/host.ts";
import { MemoryStore } from "../../src/hosts/node/object-store.ts";
import type { Call } from "../../src/coordinator/objects/interceptor.ts";
import { Witness } from "../../src/coordinator/capabilities/loss/edge/witness.ts";
import { SignInLimit } from "../../src/coordinator/console/sign-in.ts";
import * as projection from "../../src/coordinator/d1/schema.ts";
import { defaultRuntime } from "../../src/coordinator/runtime.ts";
import { TestClock } from "../../src/users/testing/clock.ts";
import { makeKeys } from "../../src/users/testing/coordinator.ts";
import { ChangeCounts } from "../../src/coordinator/capabilities/records/change-counts.ts";
import { Cluster } from "../support/cluster.ts";
import { DESTROY } from "../support/holds.ts";
import { ManyRows } from "../../src/coordinator/kernel/shard/many-rows.ts";
import { NodeSql } from "../support/node-sql.ts";
import { insertLeases } from "../support/leases.ts";
import { beginRequest, callerOf, decideRequest } from "../support/ops.ts";
import { sourceType } from "../support/types.ts";
import { privateField, privatePath, sizesIn } from "../support/private-fields.ts";
import { findStructures } from "../support/structures.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/reference/storage.md"), "utf8");

interface Row {
  section: string;
  /** The structure, with what is said about a part of it: `lease: granted`. */
  name: string;
  /** The table, `meta` value or field. */
  structure: string;
  bound: string;
  enforcedBy: string;
}

const rows: Row[] = page.split(/^## /m).flatMap((part) => {
  const [section = ""] = part.split("\n", 1);
  return [...part.matchAll(/^\| `([^`]+)`(:[^|]*?)? *\| (.*?) *\| (.*?) *\|$/gm)].map(
    ([, structure = "", detail = "", bound = "", enforcedBy = ""]) => ({
      section,
      name: `${structure}${detail}`,
      structure,
      bound,
      enforcedBy,
    }),
  );
});
const found = findStructures();
const isInMemory = ({ structure }: Row): boolean =>
  found.memory.includes(structure) || structure.includes("#");
const unique = (names: Iterable<string>): string[] => [...new Set(names)].toSorted();
const inSection = (section: string): Row[] => rows.filter((row) => row.section === section);

describe("the list of what is stored", () => {
  test("has the fields and variables of the sources that can grow, and no others", () => {
    expect(found.memory.length).toBeGreaterThan(40);
    expect(unique(rows.filter(isInMemory).map(({ structure }) => structure))).toEqual(unique(found.memory));
  });

  test("has the tables of each object, and no others", async () => {
    const c = await Cluster.start();
    const objects = { Shard: c.shard(0), Ledger: c.ledger("1"), Directory: c.directory };
    for (const [section, { database }] of Object.entries(objects)) {
      const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
      const listed = [...inSection("Every object"), ...inSection(section)].filter(
        (row) => !isInMemory(row) && !row.structure.startsWith("meta."),
      );
      expect(unique(listed.map(({ structure }) => structure))).toEqual(
        unique(tables.map(({ name }) => String(name))),
      );
    }
  });

  test("has the tables of D1 and of the cell's database, and no others", () => {
    const tables = Object.values(projection).map((table) => getTableName(table));
    expect(unique(inSection("D1: the projection").map(({ structure }) => structure))).toEqual(unique(tables));
    const ofCell = unique(inSection("The cell's database").map(({ structure }) => structure));
    for (const migration of [postgresMigration, mysqlMigration]) {
      const created = migration.join("\n").matchAll(/CREATE TABLE IF NOT EXISTS (\w+)/g);
      expect(unique([...created].map(([, name = ""]) => name))).toEqual(ofCell);
    }
  });

  test("has the values that objects store in `meta`, and no others", () => {
    const listed = rows.flatMap(({ structure }) => /^meta\.(.*)/.exec(structure)?.[1] ?? []);
    expect(unique(listed)).toEqual(found.metaKeys);
  });

  test("names limits, constants with their values, and functions that exist", () => {
    const limits = limitNames.map(apiLimitName);
    for (const { name, bound, enforcedBy } of rows) {
      expect(bound, name).not.toBe("");
      for (const [, limit = ""] of bound.matchAll(/`([a-z_]+)`/g)) expect(limits, name).toContain(limit);
      for (const [, constant = "", value = ""] of bound.matchAll(/`([A-Z][A-Z_]+)` \(([\d,]+)\)/g))
        expect(found.constants.get(constant), name).toContain(Number(value.replaceAll(",", "")));
      expect(bound.match(/`[A-Z][A-Z_]+`(?! \([\d,]+\))/), name).toBeNull();
      const [, enforcer] = /^`([\w.#]+)`$/.exec(enforcedBy) ?? [];
      if (enforcer !== undefined) expect(found.names, name).toContain(enforcer);
    }
  });
});

/** A test elsewhere that proves a bound, by file and title. */
interface Reference {
  file: string;
  title: string;
}
/** Fills a structure beyond its bound. Returns how far it got, and the bound. */
type Fill = () => Promise<[size: number, bound: number]>;
/**
 * `after work`: the bound is a number of shards, of cells or of single values, which is checked after the
 * work of a deployment. `made once`: made when the code is loaded, or at the first use of an environment.
 */
type Proof = Reference | Fill | "after work" | "made once";

const at = (file: string, title: string): Reference => ({ file, title });
const start = (limits: Partial<Limits> = {}, shards = 1): Promise<Cluster> =>
  Cluster.start({ shards, limits });
const sizeOf = (owner: object, path: string): number => {
  const value = privatePath(owner, path);
  if (value instanceof Map || value instanceof Set) return value.size;
  return (value as { length: number }).length;
};
const rowsOf = (database: DatabaseSync, query: string): number =>
  (database.prepare(`SELECT count(*) AS n FROM ${query}`).get() as { n: number }).n;

/** Begins that no shard answers. Returns the cluster while they run. */
async function running(limits: Partial<Limits>, begins: number, shards = 1, more = {}): Promise<Cluster> {
  const c = await start(limits, shards);
  c.fate = () => "slow";
  const names = Array.from({ length: 8 }, (_, k) => `n${k}`);
  for (let n = 0; n < begins; n += 1)
    void c.ledger("1").object.begin(
      beginRequest(
        c.envelope,
        c.uuid(),
        names.map((name) => `${name}-${n}`),
        more,
      ),
    );
  // The first call confirms the placement, which takes one slow message.
  await c.clock.pass(60);
  return c;
}

/** More begins than the shard has room for. Each has two names and a scope of its own. */
async function holding(): Promise<Cluster> {
  // A cell may have half of them.
  const c = await start({ heldNames: 2 * 3 * 2 });
  for (let n = 0; n < 6; n += 1) {
    const ops = ["a", "b"].map((name) => ({ value: `${name}${n}`, scope: `s${n}` }));
    await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ops)));
  }
  return c;
}

const heldBy = (c: Cluster): object => privatePath(c.shard(0).object, "#part.log.held") as object;

const newHeld = (): HeldNames => new HeldNames([], () => undefined);

/** Adds entries with one name each, in one transaction for each. Returns the names. */
function addEntries(held: HeldNames, count: number, grantedBy: number | null = null): string[] {
  return Array.from({ length: count }, (_, n) => {
    held.add([{ ...DESTROY, canonical: `n${n}`, epoch: n + 1, granted_by: grantedBy }], () => n);
    for (const entry of held.take().made)
      held.place(entry, { slot: n, position: n + 1, offset: 0, length: 100 });
    return `1 n${n}`;
  });
}

async function revokedKeys(): Promise<Cluster> {
  const c = await start({ maxRevokedKeys: 5 });
  for (let n = 0; n < 12; n += 1)
    await c.clock.runUntil(
      c.ledger("1").object.revoke({ ...c.envelope, keyId: `k${n}`, expiresAtMs: 1_000 + n }),
    );
  return c;
}

const NOTED = 50;

/** Notes uses of this many keys, while D1 cannot be reached. */
function recorderWithoutD1(keys: number): UseRecorder {
  const runtime = { ...defaultRuntime, log: () => undefined };
  const recorder = new UseRecorder({} as Env, { keyCache: NOTED }, runtime);
  for (let n = 0; n < keys; n += 1)
    recorder.note(
      { keyId: `k${n}`, role: "viewer", cell: null, expiresAtMs: 0, credential: { kind: "key" } },
      { ok: true, value: null },
      () => {},
    );
  return recorder;
}

const statusOf = (part: string): Call => ({
  kind: "ledger",
  part,
  method: "status",
  level: "peer",
  message: { placement: "here" },
});

/** A witness of objects that have answered with a point of each incarnation. */
function witnessOf(parts: number, incarnations: number): Witness {
  const witness = new Witness();
  for (let incarnation = incarnations; incarnation > 0; incarnation -= 1)
    for (let n = 1; n <= parts; n += 1) {
      const call = statusOf(`cell-${n}`);
      witness.after(call, { ...ok(null), point: { incarnation, position: n } }, call.message);
    }
  return witness;
}

function manyIncarnations(): [number, number] {
  const sql = new NodeSql(new DatabaseSync(":memory:"));
  migrate(sql, ledgerSchema);
  sql.database.exec(
    `INSERT INTO incarnation SELECT n, n FROM (
       WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 9999)
       SELECT n FROM count)`,
  );
  sql.transaction(["grant"], () => {
    for (let n = 0; n < 5; n += 1) raiseIncarnation(sql, `00000${n}`, n);
  });
  return [rowsOf(sql.database, "incarnation"), 10_000];
}

const deliveries = "test/coordinator/kernel/ledger/deliveries.test.ts";
const link = at(
  "test/coordinator/kernel/ledger/shard-link.test.ts",
  "[M6] [B6] while a shard hangs, only running begins have prepares and releases waiting",
);
const open = at(
  deliveries,
  "[C6] [C3] [M6] while a shard is down, commits go on, in limited memory, and none is lost",
);
const marks = at(
  "test/coordinator/kernel/ledger/ages.test.ts",
  "[M4] a clock that goes back again and again leaves a limited number of marks",
);
const merge = at(
  "test/coordinator/capabilities/records/workerd/record-merge.test.ts",
  "[R3] [M7] pages have each record once, in order, with a limited number of messages",
);
const followed = at(
  "test/coordinator/cron/cron.test.ts",
  "[H5] D1 and the ledgers follow a directory that has only been restarted",
);
const outcomes = at(
  "test/coordinator/kernel/ledger/prune.test.ts",
  "[S1] an outcome is kept for the retention, and an eighth longer if no lease replaces it",
);
const message = at(
  "test/coordinator/capabilities/records/digest-records.test.ts",
  "[M7] the last holds of a scan count against the rows of a message, like the claims",
);
const exchanged = at(
  "test/coordinator/kernel/ledger/shard-link.test.ts",
  "[N1] [M6] a message has at most its limit of ops, unless one lease alone has more",
);
const ended = at(
  "test/hosts/node/hosted-object.test.ts",
  "[M6] nothing is left of calls, timers and alarms that have ended",
);
const issuerKeys = at(
  "test/coordinator/auth/tokens/remote-keys.test.ts",
  "[M6] only the URLs of the current identities are kept",
);
const stopping = at(
  "test/hosts/standalone/server.test.ts",
  "a stop answers the requests that are running, also if its signal comes twice",
);
const shares = at(
  "test/coordinator/api/fair-shares.test.ts",
  "[M8] a caller whose request fails gets its share back",
);
const batchCheck = at(
  "test/coordinator/api/lists.test.ts",
  "any route, with the largest limits, may have items with as many faults as possible",
);
const oneGrowth = at(
  "test/coordinator/capabilities/growth/directory.test.ts",
  "[G1] a growth is started, cut and finished, each once",
);
const operations = at(
  "test/coordinator/capabilities/operations/directory.test.ts",
  "[A5] [M6] there is at most one row for each shard, and one for a restore",
);
const typeSet = at("test/common/types/document.test.ts", "[M6] a set has at most 256 types of each kind");

const queue = at(
  "test/coordinator/capabilities/waiting/shard.test.ts",
  "[B11] [M6] a full queue takes no other begin: %o",
);

const proofs: Record<string, Proof> = {
  // Every object
  meta: "after work",
  "meta.tables": "after work",
  "meta.capability_steps": "after work",
  "meta.object_name": "after work",
  "meta.placement": "after work",
  "meta.history_lost": "after work",
  "meta.has_grown": "after work",
  "meta.history_accepted": "after work",
  "meta.scrub": at(
    "test/coordinator/capabilities/scrub/scrub.test.ts",
    "[Z4] [M6] keeps the first findings, and counts all",
  ),
  "GroupCommit.#queue": at(
    "test/coordinator/kernel/shard/guards.test.ts",
    "[M6] [M7] while the disk hangs, a shard keeps a limited number of messages of each cell",
  ),
  "Histogram.#counts": "after work",
  "Counts.#counts": at(
    "test/coordinator/kernel/metrics/counts.test.ts",
    "[M6] more labels than there is room for are counted together",
  ),
  "FairQueue.#byOwner": at(
    "test/coordinator/kernel/shard/read-queue.test.ts",
    "[M7] [M6] a read that would wait too long, or behind too many of its cell, is refused",
  ),
  "Tables.#steps": "made once",
  "PlacementGuard.#used": "after work",
  "PlacementGuard.#asking": at(
    "test/coordinator/kernel/placement-guard.test.ts",
    "[G3] messages with a newer placement share one question to the directory",
  ),
  "Scrub.#underWay": at(
    "test/coordinator/capabilities/scrub/scrub.test.ts",
    "[Z4] [M6] steps at the same time share one step",
  ),
  "Timers.#windows": at(
    "test/coordinator/objects/ports.test.ts",
    "no timer is cleared, and none is set when nothing waits any more",
  ),
  "Semaphore.#waiting": async () => {
    const c = await running({ fanOut: 1 }, 20, 4);
    // One link has the permit, and the others wait for it.
    return [sizeOf(c.ledger("1").object, "#part.links.#exchanges.#waiting"), 3];
  },
  // Shard
  claim: at(
    "test/coordinator/kernel/shard/guards.test.ts",
    "[M6] [C6] a shard without room refuses more names, and carries out everything else",
  ),
  "log: holds": async () => [(await holding()).holds().length, 3 * 2],
  "HeldNames.#byName": async () => [sizeOf(heldBy(await holding()), "#byName"), 3 * 2],
  "HeldNames.#byScope": async () => [sizeOf(heldBy(await holding()), "#byScope"), 3],
  "HeldNames.#written": async () => [sizeOf(heldBy(await holding()), "#written"), 3],
  "HeldNames.#ordered": async () => {
    const held = newHeld();
    const entries = addEntries(held, 20);
    held.end(entries.slice(0, 10));
    const before = sizeOf(held, "#ordered");
    held.end(entries.slice(10, 11));
    return [before + sizeOf(held, "#ordered"), 2 * 10 + 9];
  },
  "HeldNames.#cached": async () => {
    const held = newHeld();
    addEntries(held, 10_200);
    return [sizeOf(held, "#cached"), 10_000];
  },
  "HeldNames.#moved": async () => {
    const held = newHeld();
    addEntries(held, 20, 1);
    return [sizeOf(held, "#moved"), 20];
  },
  "HeldNames.#countByCell": "after work",
  "HeldNames.#made": async () => [sizeOf(heldBy(await busyCluster()), "#made"), 0],
  "HeldNames.#endedNames": async () => [sizeOf(heldBy(await busyCluster()), "#endedNames"), 0],
  range_hold: at(
    "test/coordinator/capabilities/transfer/transfers.test.ts",
    "[Y2] [M6] a shard has a limited number of range holds",
  ),
  "RangeHolds.#byRange": at(
    "test/coordinator/capabilities/transfer/transfers.test.ts",
    "[Y2] [M6] a shard has a limited number of range holds",
  ),
  log: at(
    "test/coordinator/kernel/shard/shard-log.test.ts",
    "[H1] the log keeps a constant number of rows, and each transaction raises the position",
  ),
  incarnation: async () => manyIncarnations(),
  past_claim: at(
    "test/coordinator/capabilities/past-claims/shard.test.ts",
    "[K3] [M6] above the limit of rows, the oldest past claims are dropped",
  ),
  past_segment: at(
    "test/coordinator/capabilities/past-claims/shard.test.ts",
    "[K3] [M6] above the limit of rows, the oldest past claims are dropped",
  ),
  "PastClaims.#segments": at(
    "test/coordinator/capabilities/past-claims/shard.test.ts",
    "[K3] [M6] above the limit of rows, the oldest past claims are dropped",
  ),
  "meta.past_complete_since_ms": "after work",
  moved_name: at(
    "test/coordinator/capabilities/growth/growth.test.ts",
    "[G4] [M6] a name that changes often waits once",
  ),
  "meta.growth_source": "after work",
  "meta.growth_target": "after work",
  "meta.aborted_growth": "after work",
  "GrowthSource.#working": at(
    "test/coordinator/capabilities/growth/growth.test.ts",
    "[G4] [M6] steps at the same time share one step",
  ),
  "Residence.#waking": at(
    "test/coordinator/capabilities/growth/growth.test.ts",
    "[G7] [M6] a new shard that waits tells each source once at a time",
  ),
  "NameQueues.#queues": queue,
  "NameQueues.#byCell": queue,
  "NameQueues.#changed": queue,
  "ReadQueue.#waiting": at(
    "test/coordinator/kernel/shard/read-queue.test.ts",
    "[M7] [M6] a read that would wait too long, or behind too many of its cell, is refused",
  ),
  "InquiryQueue.#byCell": at(
    "test/coordinator/kernel/shard/inquiry-queue.test.ts",
    "[M6] messages and their number are limited, and every hold is in at most one",
  ),
  "log: changes": at(
    "test/coordinator/capabilities/feed/changes.test.ts",
    "[F4] drops the oldest changes when all are too large, and keeps the reports of routers",
  ),
  "ShardLog.#ledgers": async () => {
    const c = await busyCluster();
    c.shard(0).restart();
    return [sizeOf(privatePath(c.shard(0).object, "#part.log") as object, "#ledgers"), 0];
  },
  "LedgerPoints.#ledgers": "after work",
  "LedgerPoints.#cells": async () => {
    const c = await start();
    const shard = c.shard(0);
    const log = privatePath(shard.object, "#part.log") as { jumpTo(position: number): void; append(): void };
    shard.sql.transaction(["exchange"], () => {
      for (let n = 0; n < 16_500; n += 1) log.append();
    });
    const points = privatePath(shard.object, "#part.capabilities.loss.points") as object;
    return [sizeOf(points, "#cells"), 16_384];
  },
  "LedgerPoints.#noted": "after work",
  "OpenStreams.#streams": at(
    "test/coordinator/capabilities/feed/workerd/changes.test.ts",
    "[M6] a limited number of streams is open, and one that was left without a word makes room",
  ),
  "ChangeNotes.#noted": async () => {
    const c = await busyCluster();
    const notes = privatePath(c.shard(0).object, "#part.capabilities.feed.notes") as object;
    return [sizeOf(notes, "#noted"), 0];
  },
  "ChangeNotes.#told": at(
    "test/coordinator/capabilities/feed/changes.test.ts",
    "[F3] a shard remembers a limited number of grants, and tells the others once more",
  ),
  "ShardLog.#held": async () => {
    const c = await start();
    const shard = c.shard(0);
    const log = privatePath(shard.object, "#part.log") as { noteHeld(keyHash: string): void; append(): void };
    shard.sql.transaction(["exchange"], () => {
      for (let n = 0; n < 100; n += 1) log.noteHeld("0123456789abcdef");
      log.append();
    });
    return [sizeOf(log, "#held"), 0];
  },
  "ChangeCounts.#counts": () => {
    const counts = new ChangeCounts({ uuid: () => "", fraction: () => 0 });
    for (const cell of ["1", "2", "1"]) counts.add(cell);
    return Promise.resolve([sizeOf(counts, "#counts"), 2]);
  },
  "ManyRows.#texts": async () => {
    const many = new ManyRows(1, (values) => `SELECT * FROM (VALUES ${values})`);
    const sql = new NodeSql(new DatabaseSync(":memory:"));
    for (let length = 1; length < 300; length += 1)
      many.all(
        sql,
        Array.from({ length }, () => ["a"]),
      );
    return [sizeOf(many, "#texts"), 100];
  },
  "Preparation.#occupants": exchanged,
  "Preparation.#made": exchanged,
  "DigestReading.#ranges": message,
  "DigestReading.#touched": message,
  "DigestReading.#cursor": message,
  "DigestReading.#types": message,
  // Ledger
  "lease: granted": at(
    "test/coordinator/kernel/ledger/guards.test.ts",
    "[M6] granted leases and running begins count together toward the limit",
  ),
  "lease: fences": async () => {
    const c = await start({ fences: 4 });
    for (let n = 0; n < 9; n += 1)
      await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, c.uuid(), "ROLLED_BACK")));
    return [rowsOf(c.ledger("1").database, "lease WHERE decided = 2"), 4];
  },
  "lease: outcomes": outcomes,
  transfer: at(
    "test/coordinator/capabilities/transfer/transfers.test.ts",
    "[Y2] [M6] a ledger forgets the oldest transfers of a source, and none that can be undone",
  ),
  revoked_key: async () => [rowsOf((await revokedKeys()).ledger("1").database, "revoked_key"), 5],
  "meta.applied": "after work",
  "meta.cell_state": "after work",
  "meta.cell_state_set_at_ms": "after work",
  "meta.cell_state_version": "after work",
  "meta.pruned_position": "after work",
  "meta.removal": at(
    "test/coordinator/capabilities/removal/ledger.test.ts",
    "[X3] counts each released claim once, also if the answer of a step is lost",
  ),
  "Removal.#running": at(
    "test/coordinator/capabilities/removal/ledger.test.ts",
    "[X3] calls at the same time share one step",
  ),
  "meta.refused_through_ms": "after work",
  "meta.clock_marks": marks,
  "meta.status": "after work",
  "meta.contradictions": at(
    "test/coordinator/capabilities/status/contradictions.test.ts",
    "[U4] a refused commit is counted before its answer, also through a crash",
  ),
  "Begins.#running": async () => [
    sizeOf((await running({ concurrentBegins: 7 }, 20)).ledger("1").object, "#part.begins.#running"),
    7,
  ],
  "Begins.#givenUp": async () => {
    const c = await start({ concurrentBegins: 7 });
    const { object } = c.ledger("1");
    for (let n = 0; n < 20; n += 1)
      await c.clock.runUntil(object.giveUp({ ...c.envelope, lease: "none", call: `call ${n}` }));
    return [sizeOf(object, "#part.begins.#givenUp"), 7];
  },
  "CountByCell.#counts": at(
    "test/coordinator/capabilities/transfer/transfers.test.ts",
    "[Y2] [B2] [M6] prepares use up none of the begins and leases of the destination",
  ),
  "WaitTime.over": async () => {
    const { object } = (await running({ concurrentBegins: 7 }, 20, 1, { waitMs: 10_000 })).ledger("1");
    const begins = [
      ...(privatePath(object, "#part.begins.#running") as Map<string, { waitTime: unknown }>).values(),
    ];
    return [begins.filter(({ waitTime }) => waitTime !== undefined).length, 7];
  },
  "Attempt.#byShard": async () => {
    const { attempt } = await attemptOn(4);
    const ops = [...(privateField(attempt, "#byShard") as Map<number, unknown[]>).values()];
    return [ops.flat().length, 20];
  },
  "Attempt.#answers": async () => {
    const { c, attempt } = await attemptOn(4);
    await c.clock.runUntil(attempt.inParallel(0));
    return [sizeOf(attempt, "#answers"), 4];
  },
  "Deliveries.#open": open,
  "Deliveries.#idle": open,
  "Deliveries.#asked": at(
    deliveries,
    "[N1] the decision of a lease that a shard has asked about is sent at once",
  ),
  "Deliveries.#applied": at(
    deliveries,
    "[M6] [C2] applied decisions that wait for the alarm take limited memory",
  ),
  "OldOutcomes.#found": async () => {
    const c = await start({ outcomeRetentionS: 600 });
    insertLeases(c.ledger("1").database, { count: 150, prefix: "old-", pending: 0 });
    c.ledger("1").database.exec(
      `INSERT INTO meta VALUES ('applied', '{"through":150,"last":150,"shards":{}}')`,
    );
    c.ledger("1").restart();
    await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["a"])));
    return [sizeOf(c.ledger("1").object, "#part.oldOutcomes.#found"), 99];
  },
  "ShardLink.#prepares": link,
  "ShardLink.#decisions": link,
  "ShardLinks.#links": "after work",
  "SeenShards.#points": "after work",
  "SeenShards.#incarnations": "after work",
  "SeenShards.#news": "after work",
  "SeenShards.#confirmed": "after work",
  "SeenShards.#comparing": at(
    "test/coordinator/capabilities/transfer/transfers.test.ts",
    "[Y6] [M6] a new instance decides a transfer only once every shard has told what it knows",
  ),
  "Transfers.#precommits": at(
    "test/coordinator/capabilities/transfer/transfers.test.ts",
    "[Y6] cuts at the same time share their messages",
  ),
  "LedgerStore.#applied": "after work",
  "RevokedKeys.#ids": async () => [
    sizeOf((await revokedKeys()).ledger("1").object, "#part.capabilities.keys.keys.#ids"),
    5,
  ],
  "ChangeTimes.#marks": marks,
  "ReadLimiter.#running": async () => [sizeOf(reads(), "#running"), 6],
  "ReadLimiter.#countByKey": async () => [sizeOf(reads(), "#countByKey"), 6],
  "LedgerReconciler.#accepting": "after work",
  // Directory
  cell: at("test/coordinator/capabilities/cells/directory.test.ts", "[M6] the number of cells is limited"),
  audit: at(
    "test/coordinator/capabilities/audit/directory.test.ts",
    "[O3] without room for its entry, a change is refused, and calls of cells are not",
  ),
  "minted_key: revoked": at(
    "test/coordinator/capabilities/keys/directory.test.ts",
    "[M6] [A1] unexpired revoked keys are limited; correcting one needs no room",
  ),
  minted_key: at(
    "test/coordinator/capabilities/keys/directory.test.ts",
    "[M6] [A1] keys are limited; expired ones make room, first those that were never revoked",
  ),
  verification_slot: at(
    "test/coordinator/capabilities/slots/directory.test.ts",
    "[A3] the number of slots is limited, and a refusal says when to ask again",
  ),
  verification_place: at(
    "test/coordinator/capabilities/slots/directory.test.ts",
    "[A3] the queue is bounded by the registered cells, with one place for each",
  ),
  "meta.position": "after work",
  "meta.revoked_through_ms": "after work",
  "meta.types": typeSet,
  "meta.growth": "after work",
  "meta.operations": operations,
  "meta.identities": at(
    "test/coordinator/capabilities/identities/workerd/identities.test.ts",
    "the identities have a limit in bytes",
  ),
  "DirectoryStore.#settings": "after work",
  // Isolates
  deployments: "made once",
  configs: "made once",
  limitOf: "made once",
  "Types.entries": typeSet,
  "Types.#indexes": typeSet,
  "TypesCopy.#declared": typeSet,
  "TypesCopy.#running": "after work",
  patterns: typeSet,
  "Components.#schemas": "made once",
  "DirectoryCopy.#copy": at(
    "test/coordinator/capabilities/keys/directory.test.ts",
    "[A1] [M6] a snapshot lists the revoked keys that expire last, and tells what it left out",
  ),
  "DirectoryCopy.#refresh": "after work",
  "DirectoryCopy.#loss": "after work",
  "RecentAnswer.#latest": "after work",
  "Exposition.#samples": at(
    "test/coordinator/capabilities/metrics/workerd/route.test.ts",
    "begins, lookups and commits of a deployment are counted, and every sample is as declared",
  ),
  "Readiness.#failedCells": at(
    "test/coordinator/isolate/readiness.test.ts",
    "one check calls the directory, every shard and 16 of 1,000 ledgers",
  ),
  "FairShares.#shares": shares,
  "Share.#running": at(
    "test/coordinator/api/fair-shares.test.ts",
    "[M8] a caller has a larger share while no other one has called for a second",
  ),
  "Share.#waiting": at(
    "test/coordinator/api/fair-shares.test.ts",
    "[M8] a caller with 1,000 requests that wait is refused, and no other caller",
  ),
  "BatchCheck.given": batchCheck,
  "BatchCheck.#ops": batchCheck,
  "BatchCheck.#fieldByName": batchCheck,
  "BatchCheck.#fault": batchCheck,
  shared: "made once",
  "KeyVerifier.#checked": at(
    "test/coordinator/auth/key.test.ts",
    "checks a signature once, and remembers a limited number of keys",
  ),
  "KeyVerifier.#accepted": "after work",
  "RemoteKeys.#known": at(
    "test/coordinator/auth/tokens/public-keys.test.ts",
    "[M6] a set has at most 100 keys",
  ),
  "RemoteKeys.#reading": at(
    "test/coordinator/console/access.test.ts",
    "requests share one read of the keys, and a failure for 10 seconds",
  ),
  "IssuerKeys.#identities": issuerKeys,
  "IssuerKeys.#remote": issuerKeys,
  "IssuerKeys.#inline": issuerKeys,
  "TokenVerifier.#signers": at(
    "test/coordinator/auth/tokens/token-verifier.test.ts",
    "[M6] those that were used last, and no others",
  ),
  "CertificateVerifier.#known": at(
    "test/coordinator/auth/certificates/certificate-verifier.test.ts",
    "a certificate is checked once, and again after `keyCache` others",
  ),
  requestLists: "made once",
  "UseRecorder.#noted": async () => [sizeOf(recorderWithoutD1(2_000), "#noted"), NOTED],
  "UseRecorder.#waiting": async () => [sizeOf(recorderWithoutD1(2_000), "#waiting"), 1_000],
  "PageTokens.#accepted": "after work",
  "ConsoleSessions.#session": "after work",
  "ConsoleSessions.#form": "after work",
  limits: "made once",
  "SignInLimit.#failed": () => {
    const limit = new SignInLimit();
    for (let n = 0; n < 1_100; n += 1) limit.failed(`address-${n}`, 0);
    return Promise.resolve([sizeOf(limit, "#failed"), 1_000]);
  },
  "Hmac.#key": "after work",
  "CallTracing.#works": "made once",
  "SpanExporter.#open": at(
    "test/coordinator/tracing/exporter.test.ts",
    "a call that never returns is exported as failed, and a limited number is open",
  ),
  "SpanExporter.#finished": at(
    "test/coordinator/tracing/exporter.test.ts",
    "while a collector hangs, a limited number of spans waits, and further ones are lost",
  ),
  fieldsOf: "made once",
  "Sender.#interceptors": "made once",
  "Witness.#seen": async () => [sizeOf(witnessOf(1_400, 1), "#seen"), 1_300],
  "SeenPoints.#points": async () => {
    const seen = privateField(witnessOf(1, 20), "#seen") as Map<string, object>;
    return [Math.max(...[...seen.values()].map((points) => sizeOf(points, "#points"))), 8];
  },
  "DirectoryWatch.#confirmed": followed,
  "LedgerPull.#known": at(
    "test/coordinator/cron/cron.test.ts",
    "[S4] corrects whatever D1 has wrong, and writes no row that is right",
  ),
  "Merge.#buffers": merge,
  "Merge.#records": merge,
  "Ledgers.#unreachable": at(
    "test/coordinator/capabilities/stale/workerd/stale.test.ts",
    "does not ask an unreachable ledger again",
  ),
  // The host in Node
  "HostedNamespace.#objects": at(
    "test/users/testing/hours.test.ts",
    "[S1] [S2] [S3] [S4] [M6] nothing grows over hours of leases, fences, keys and restarts",
  ),
  "AlarmQueue.#waiting": ended,
  "AlarmQueue.#running": at(
    "test/hosts/node/hosted-object.test.ts",
    "[M3] ring without a call, eight at once, in their order",
  ),
  "RunningInstance.#callers": ended,
  "RunningInstance.#cancels": ended,
  "SqliteDatabase.#statements": at(
    "test/hosts/node/sqlite-database.test.ts",
    "[M6] the number of prepared statements is limited, and those in use are kept",
  ),
  "Statement.#values": at(
    "test/hosts/node/d1.test.ts",
    "statements return rows, and the number of rows that they changed",
  ),
  "Storage.#stores": at(
    "test/hosts/standalone/storage.test.ts",
    "tables, alarms and the projection survive, and names tell which objects have tables",
  ),
  "Connections.#accepted": stopping,
  "Connections.#ready": stopping,
  "WalSync.#syncing": at(
    "test/hosts/standalone/storage.test.ts",
    "[C2] [B5] covers the writes before its sync began, and shares the sync",
  ),
  // D1
  cells: at("test/coordinator/capabilities/cells/directory.test.ts", "[M6] the number of cells is limited"),
  keys: at(
    "test/coordinator/cron/cron.test.ts",
    "[M6] keeps a limited number of keys, and forgets only expired ones",
  ),
  type_sets: typeSet,
  growths: oneGrowth,
  operation_sets: operations,
  open_leases: at(
    "test/coordinator/kernel/ledger/guards.test.ts",
    "[M6] granted leases and running begins count together toward the limit",
  ),
  seen_points: followed,
  "audit: copies": at(
    "test/coordinator/capabilities/audit/workerd/cron.test.ts",
    "[O2] entries go when they are older than the retention, and no earlier",
  ),
  webhooks: at(
    "test/coordinator/capabilities/webhooks/workerd/webhooks.test.ts",
    "the number of endpoints is limited",
  ),
  webhook_alerts: at(
    "test/coordinator/capabilities/webhooks/workerd/webhooks.test.ts",
    "alerts of keys are limited, and all of them end",
  ),
  webhook_deliveries: at(
    "test/coordinator/capabilities/webhooks/workerd/webhooks.test.ts",
    "only the latest 100 are kept",
  ),
  credential_uses: at(
    "test/coordinator/capabilities/keys/workerd/credential-uses.test.ts",
    "rows are forgotten after the life of a key, and beyond 10,000",
  ),
  cron_runs: at("test/coordinator/cron/cron.test.ts", "the rows of runs are deleted after a week"),
};

/** The tables of the cell's database belong to the SDK, whose tests need a server. */
const OF_THE_CELL = "The cell's database";

function reads(): ReadLimiter {
  const limits = { ...defaultLimits, concurrentReads: 6 };
  const limiter = new ReadLimiter(new VirtualClock(), limits);
  for (let n = 0; n < 20; n += 1) limiter.start(`read-${n}`, `key-${n}`);
  return limiter;
}

/** An attempt of a batch of 20 names on some shards, none of which answers. */
async function attemptOn(shards: number): Promise<{ c: Cluster; attempt: Attempt }> {
  const c = await start({}, shards);
  const never = { prepare: () => new Promise(() => {}) } as unknown as ShardLinks;
  const names = Array.from({ length: 20 }, (_, n) => `n${n}`);
  const holder = { cell: "1", lease: c.uuid(), incarnation: 1, counter: 1 };
  const attempt = new Attempt(
    c.clock,
    never,
    c.limits,
    holder,
    beginRequest(c.envelope, holder.lease, names),
  );
  return { c, attempt };
}

describe("each bound of the list", () => {
  test("has a proof, and each proof belongs to a structure", () => {
    const names = rows.filter(({ section }) => section !== OF_THE_CELL).map(({ name }) => name);
    expect(unique(Object.keys(proofs))).toEqual(unique(names));
  });

  const references = Object.entries(proofs).flatMap(([name, proof]) =>
    typeof proof === "object" ? [[name, proof] as const] : [],
  );
  test.each(references)("is proven elsewhere by a test that exists: %s", (_, { file, title }) => {
    expect(readFileSync(join(root, file), "utf8")).toContain(`"${title}"`);
  });

  const fills = Object.entries(proofs).flatMap(([name, proof]) =>
    typeof proof === "function" ? [[name, proof] as const] : [],
  );
  test.each(fills)("[M6] stops what would grow beyond it: %s", async (_, fill) => {
    const [size, bound] = await fill();
    expect(size).toBe(bound);
  });
});

const SHARDS = 3;
const CELLS = ["1", "2", "3"];

/** Returns how many entries a bound allows in the deployments below. Undefined: another test proves it. */
function allowedBy({ bound }: Row): number | undefined {
  const single = /^(\d+) /.exec(bound)?.[1];
  if (single !== undefined) return Number(single);
  if (/^one (point )?per shard/.test(bound)) return SHARDS;
  return bound.startsWith("one per cell") ? CELLS.length : undefined;
}

function expectWithin(sizes: ReadonlyMap<string, readonly number[]>): string[] {
  const checked: string[] = [];
  for (const row of rows.filter(isInMemory)) {
    const most = allowedBy(row);
    const measured = sizes.get(row.structure);
    if (most === undefined || measured === undefined) continue;
    checked.push(row.structure);
    expect(Math.max(...measured), row.structure).toBeLessThanOrEqual(most);
  }
  return checked;
}

/** The structures of these sections whose bounds are only checked after work. */
const checkedAfterWork = (...sections: string[]): string[] =>
  unique(
    rows
      .filter((row) => sections.includes(row.section) && isInMemory(row) && proofs[row.name] === "after work")
      .map(({ structure }) => structure),
  );

/** Returns the collections of objects of the sources that are not in the list. */
function notListed(collections: Iterable<string>): string[] {
  const listed = new Set(rows.map(({ structure }) => structure));
  return [...collections].filter(
    (name) => found.names.has(`${name.split(".")[0] ?? ""}.constructor`) && !listed.has(name),
  );
}

/** Work of every kind, with faults, on all cells and shards. */
async function busyCluster(): Promise<Cluster> {
  const c = await Cluster.start({ cells: CELLS, shards: SHARDS });
  const run = <T>(work: Promise<T>): Promise<T> => c.clock.runUntil(work);
  const names = (n: number): string[] => Array.from({ length: 6 }, (_, k) => `n${k}-${n}`);
  for (let round = 0; round < 12; round += 1) {
    for (const cell of CELLS) {
      const ledger = c.ledger(cell).object;
      const lease = c.uuid();
      c.fate = (call) => (round % 4 === 3 && call.method === "exchange" ? "lose_answer" : "deliver");
      // Cells compete for the same names.
      await run(ledger.begin(beginRequest(c.envelope, lease, names(round))));
      c.fate = () => "deliver";
      await run(
        ledger.decide(decideRequest(c.envelope, lease, round % 3 === 0 ? "COMMITTED" : "ROLLED_BACK")),
      );
      await run(
        ledger.listLeases({
          ...c.envelope,
          caller: callerOf(),
          afterPosition: 0,
          createdAfterMs: 0,
          limit: 10,
        }),
      );
      await run(ledger.revoke({ ...c.envelope, keyId: `k${round}`, expiresAtMs: round }));
      const sdk = { name: "leasehold", version: `${round}` };
      await run(ledger.reportStatus({ ...c.envelope, caller: callerOf(), sdk }));
      await run(c.directory.object.takeSlot({ ...c.envelope, cell, uuid: `run-${round}` }));
    }
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const query = {
        ...c.envelope,
        cell: "1",
        sourceType: sourceType("RAILS_TABLE_ROUTES"),
        bucketTypes: null,
      };
      await run(
        c.shard(shard).object.listRecords({ ...query, after: "", upTo: null, limit: 10, cursor: null }),
      );
      await run(
        c.shard(shard).object.digestRecords({ ...query, ranges: [{ after: "", upTo: null }], cursor: null }),
      );
    }
  }
  await c.pass(60_000);
  return c;
}

test("[M6] after work of every kind, an object keeps no more than its list allows", async () => {
  const c = await busyCluster();
  const roots = [...c.nodes.map(({ object }) => object), c.directory.object];
  const { sizes, collections } = sizesIn(roots);
  expect(expectWithin(sizes)).toEqual(
    expect.arrayContaining(checkedAfterWork("Every object", "Shard", "Ledger", "Directory")),
  );
  expect(notListed(collections)).toEqual([]);
  // The work has reached them, so that the comparison means something.
  expect(Math.max(...(sizes.get("SeenShards.#points") ?? []))).toBe(SHARDS);
  expect(Math.max(...(sizes.get("LedgerPoints.#ledgers") ?? []))).toBe(CELLS.length);
  // Nothing is left of calls that have ended.
  for (const name of ["Begins.#running", "GroupCommit.#queue", "Semaphore.#waiting", "ShardLink.#decisions"])
    expect(Math.max(...(sizes.get(name) ?? [0])), name).toBe(0);
  for (const { database } of [...c.nodes, c.directory]) {
    const listed = rows.map(({ structure }) => structure);
    for (const { name } of database.prepare("SELECT name FROM meta").all())
      expect(listed).toContain(`meta.${String(name)}`);
  }
  for (const cell of CELLS) {
    const [{ value = "" } = {}] = c
      .ledger(cell)
      .database.prepare("SELECT value FROM meta WHERE name = 'applied'")
      .all();
    const { shards } = JSON.parse(String(value)) as { shards: Record<string, unknown> };
    expect(Object.keys(shards).length).toBeLessThanOrEqual(SHARDS);
  }
});

/** An isolate of the Worker with its objects in this process. */
async function isolate(): Promise<{
  env: Env;
  call: (method: string, path: string, body?: object) => Promise<number>;
}> {
  const clock = new TestClock();
  const log = (): void => {};
  const secret = randomBytes(32).toString("hex");
  const host = new Host({
    clock,
    log,
    variables: { LEASEHOLD_SIGNING_SECRET: secret, LEASEHOLD_SHARDS: String(SHARDS) },
    store: () => new MemoryStore(),
    d1: new SqliteDatabase(),
  });
  const { env } = host;
  const keys = await makeKeys(secret, CELLS, clock.now(), configOf(env).limits.keyLifetimeS);
  const call = async (method: string, path: string, body?: object): Promise<number> => {
    const key = path.startsWith("/v1/cells/") ? keys.cell(path.split("/")[3] ?? "") : keys.operator;
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = new Request(`https://leasehold.test${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const response = await host.dispatch(request);
    await response.text();
    return response.status;
  };
  for (const cell of CELLS)
    await call("POST", "/v1/admin/cells", { cell_id: cell, name: cell, address: `https://${cell}.test` });
  return { env, call };
}

test("[M6] after requests of many cells, an isolate keeps no more than its list allows", async () => {
  const { env, call } = await isolate();
  for (const cell of CELLS) {
    expect(await call("GET", `/v1/cells/${cell}/leases`)).toBe(200);
    expect(await call("GET", `/v1/cells/${cell}/records?source_type=RAILS_TABLE_USERS`)).toBe(200);
  }
  expect(await call("GET", "/v1/records/ROUTES/nobody")).toBe(404);
  expect(await call("GET", "/readyz")).toBe(200);
  const { sizes, collections } = sizesIn([deploymentOf(env)]);
  expect(expectWithin(sizes)).toEqual(expect.arrayContaining(checkedAfterWork("Isolates of the Worker")));
  expect(notListed(collections)).toEqual([]);
});

test("[M6] an isolate remembers no cell that has told nothing, as an operator may name any", async () => {
  const witness = new Witness();
  const call = statusOf("cell-50");
  witness.before(call, call.message);
  witness.after(call, refused("NOT_FOUND", "there is no such cell"), call.message);
  expect(sizeOf(witness, "#seen")).toBe(0);
});
