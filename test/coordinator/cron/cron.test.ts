import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import type { MintedKey } from "../../../src/coordinator/capabilities/keys/messages.ts";
import type { DeclaredTypes, TypeSet } from "../../../src/coordinator/capabilities/types/messages.ts";
import { runCron, type CronReport } from "../../../src/coordinator/cron/cron.ts";
import { Database } from "../../../src/coordinator/d1/database.ts";
import { listFailedCopies } from "../../../src/coordinator/cron/health.ts";
import { mirrorGrowth, mirrorTypes } from "../../../src/coordinator/capabilities/projection/edge/mirror.ts";
import { defaultRuntime } from "../../../src/coordinator/runtime.ts";
import {
  begin,
  countRows,
  decide,
  emptyD1,
  env,
  envWith,
  envelope,
  expectD1ToMatch,
  leasesInD1,
  ledgerOf,
  revoke,
  saveLedger,
  setState,
  startFleet,
  uuidOf,
  valueOf,
} from "./fleet.ts";
import { restartObjects } from "../../support/workerd/restart.ts";
import type { OperationKind } from "../../../src/coordinator/capabilities/operations/operations.ts";
import type { Growth, GrowthStep } from "../../../src/coordinator/capabilities/growth/messages.ts";
import type { Envelope } from "../../../src/coordinator/kernel/messages.ts";
import type { ScrubStep } from "../../../src/coordinator/capabilities/scrub/messages.ts";
import { DirectoryCopies } from "../../../src/coordinator/d1/directory-copies.ts";
import { shipped, type BucketTypeName } from "../../support/types.ts";
import { stubsOf } from "../../support/workerd/stubs.ts";
import { faultyD1, isPage } from "./faulty-d1.ts";
import { recordingMaintain, withoutLedger } from "./ledger-calls.ts";

beforeEach(() => startFleet("1", "2"));

const directory = () => stubsOf(env).directory();

const keyOf = (n: number): MintedKey => ({
  keyId: `k${n}`,
  role: "router",
  cell: null,
  note: null,
  createdAtMs: n,
  expiresAtMs: Date.now() + 1e9,
  revokedAtMs: null,
});

/** Brings the directory back to the state in which it had no keys yet. */
async function forgetKeys(): Promise<void> {
  await runInDurableObject(directory(), (_, state) => {
    const { sql } = state.storage;
    sql.exec("DELETE FROM minted_key");
    sql.exec("UPDATE meta SET value = 3 WHERE name = 'position'");
  });
  await restartObjects(env, "1", "2");
}

describe("[A6] [A7] operations", () => {
  const started = (id: string, kind: OperationKind) =>
    directory().beginOperation({ ...envelope(), operation: { id, kind, about: id } });
  const running = async () =>
    valueOf(await directory().operations(envelope())).operations.map(({ id }) => id);
  /** Runs the cron so much later that operations of now are old. */
  const runLater = () =>
    runCron(env, Date.now(), {
      ...defaultRuntime,
      clock: { ...defaultRuntime.clock, now: () => Date.now() + 181_000 },
    });

  test("that have ended in their parts end after three minutes, and no others", async () => {
    valueOf(await started("shard-0", "reconciliation"));
    valueOf(await started("shard-1", "reconciliation"));
    valueOf(await started("restored", "restore"));
    const message = { ...envelope(), dryRun: false, cells: ["1", "2"], declared: { incarnation: 0 } };
    valueOf(await stubsOf(env).shard(1).reconcile(message));
    await runCron(env, Date.now());
    expect(await running()).toEqual(["shard-0", "shard-1", "restored"]);
    const copies = new DirectoryCopies(env);
    expect(valueOf(await copies.operations())?.operations.map(({ id }) => id)).toEqual(await running());
    expect(await runLater()).toMatchObject({ error: null });
    expect(await running()).toEqual(["shard-1", "restored"]);
    valueOf(
      await stubsOf(env)
        .shard(1)
        .finishReconciliation({ ...envelope(), removedCells: [] }),
    );
    expect(await runLater()).toMatchObject({ error: null });
    expect(await running()).toEqual(["restored"]);
  });

  test("end later if the directory can't be reached", async () => {
    valueOf(await started("shard-0", "reconciliation"));
    const restored = valueOf(await started("restored", "restore"));
    expect(restored.kind).toBe("restore");
    await runCron(env, Date.now());
    await runLater();
    expect(await running()).toEqual(["restored"]);
  });
});

describe("a run of the cron", () => {
  test("[S4] copies the open leases of all cells, and records itself", async () => {
    await begin("1", uuidOf(1), "a", "b");
    await begin("1", uuidOf(2), "c");
    await begin("2", uuidOf(3), "d");
    await decide("1", uuidOf(2), "COMMITTED");
    await decide("2", uuidOf(4), "ROLLED_BACK");
    const report = await runCron(env, Date.now());
    expect(report).toMatchObject({
      cellsPulled: 2,
      cellsFailed: 0,
      leasesUpserted: 2,
      error: null,
    });
    expect(report.durationMs).toBe(report.finishedAtMs - report.startedAtMs);
    await expectD1ToMatch("1");
    await expectD1ToMatch("2");
    expect(await leasesInD1("1")).toMatchObject([{ uuid: uuidOf(1), creates: 2 }]);
    const run = await env.DB.prepare("SELECT * FROM cron_runs").first();
    expect(run).toMatchObject({
      started_at_ms: report.startedAtMs,
      finished_at_ms: report.finishedAtMs,
      cells_pulled: 2,
      cells_failed: 0,
      leases_upserted: 2,
      error: null,
    });
  });

  test("copies the cells and their changes", async () => {
    await runCron(env, Date.now());
    const { updatedAtMs } = valueOf(await directory().snapshot(envelope())).cells[1] ?? { updatedAtMs: 0 };
    valueOf(
      await directory().changeCell({
        ...envelope(),
        cell: "2",
        address: "https://moved.example",
        updatedAtMs,
      }),
    );
    await runCron(env, Date.now());
    const { results } = await env.DB.prepare(
      "SELECT cell_id, name, address FROM cells ORDER BY cell_id",
    ).all();
    expect(results).toEqual([
      { cell_id: "1", name: "Cell 1", address: "https://cell-1.example" },
      { cell_id: "2", name: "Cell 2", address: "https://moved.example" },
    ]);
  });

  const copiedTypes = async (): Promise<TypeSet | null> => {
    const row = await env.DB.prepare("SELECT position, entries FROM type_sets").first<{
      position: number;
      entries: string;
    }>();
    return row && { position: row.position, entries: JSON.parse(row.entries) as TypeSet["entries"] };
  };
  const setIn = ({ position, entries }: DeclaredTypes): TypeSet => ({ position, entries });
  const useType = async (name: BucketTypeName): Promise<DeclaredTypes> =>
    valueOf(
      await directory().useTypes({
        ...envelope(),
        entries: shipped.select([{ kind: "bucket", name }]),
        copiedAt: 0,
      }),
    );

  test("[T6] copies the set of types, and which of them are in use", async () => {
    await runCron(env, Date.now());
    // Nothing was declared and nothing is in use, so there is nothing to restore.
    expect(await countRows("type_sets")).toBe(0);
    const first = await useType("ROUTES");
    await runCron(env, Date.now());
    expect(await copiedTypes()).toEqual(setIn(first));
    const entries = shipped.entries.filter(({ name }) => name !== "EMAILS");
    const changed = valueOf(
      await directory().changeTypes({ ...envelope(), position: first.position, entries, copiedAt: 0 }),
    );
    await runCron(env, Date.now());
    expect(await copiedTypes()).toEqual(setIn(changed));
    expect(changed.entries.filter(({ isInUse }) => isInUse).map(({ name }) => name)).toEqual(["ROUTES"]);
    expect(await countRows("type_sets")).toBe(1);
  });

  test("[T6] replaces the set of types only by a later one", async () => {
    const database = new Database(env);
    const set = (position: number): TypeSet => ({ position, entries: shipped.entries.slice(position) });
    // What D1 has is answered, so that a directory can compare it with its own.
    for (const [position, kept] of [
      [0, 0],
      [2, 2],
      [1, 2],
      [2, 2],
      [3, 3],
      [0, 3],
    ] as const)
      expect(await mirrorTypes(database, set(position))).toEqual({ ok: true, value: kept });
    expect(await copiedTypes()).toEqual(set(3));
  });

  test("[H4] [T6] tells the directory of a set that is newer than its own", async () => {
    await useType("ROUTES");
    await env.DB.prepare("DELETE FROM seen_points").run();
    const { entries } = shipped;
    await mirrorTypes(new Database(env), { position: 1_000_000, entries });
    const report = await runCron(env, Date.now());
    expect(report.error).toContain("the directory has lost a part of its history");
    expect(await copiedTypes()).toEqual({ position: 1_000_000, entries });
  });

  test("[T6] writes the set of types only if it has changed, and tells if that fails", async () => {
    await useType("ROUTES");
    await runCron(env, Date.now());
    const isTypes = (sql: readonly string[]): boolean => sql.some((text) => text.includes("type_sets"));
    const { env: counted, done } = faultyD1();
    await runCron(counted, Date.now());
    expect(done.filter(({ sql }) => isTypes(sql)).map(({ rowsWritten }) => rowsWritten)).toEqual([0]);
    const failing = faultyD1((_, sql) => (isTypes(sql) ? "before" : undefined)).env;
    const report = await runCron(failing, Date.now());
    expect(report.error).not.toBeNull();
    expect(report).toMatchObject({ cellsPulled: 2, cellsFailed: 0 });
  });

  const growthAt = (position: number): Growth => ({
    id: "g",
    from: 4,
    to: 5,
    phase: "copying",
    startedAtMs: 1,
    startedBy: "k",
    cutAtMs: null,
    position,
  });
  const copiedGrowth = async (): Promise<Growth | null> => valueOf(await new DirectoryCopies(env).growth());
  const startGrowth = async (): Promise<Growth> =>
    valueOf(await directory().startGrowth({ ...envelope(), to: 5, growthCopiedAt: 0 }));

  test("[G1] [M3] tells shards of an abort again until they have dropped all copies", async () => {
    const { id } = await startGrowth();
    await runCron(env, Date.now());
    valueOf(await directory().abortGrowth({ ...envelope(), id, growthCopiedAt: 0 }));
    const told: string[] = [];
    const getByName = (name: string) => {
      const real = env.CLAIM_SHARD.getByName(name);
      return {
        ping: (message: Envelope) => real.ping(message),
        scrub: (message: ScrubStep) => real.scrub(message),
        growStep: async (message: GrowthStep) => {
          told.push(name);
          const answer = await real.growStep(message);
          return answer.ok ? { ...answer, value: { ...answer.value, state: "cleaning" } } : answer;
        },
      };
    };
    for (let runs = 0; runs < 2; runs += 1)
      expect((await runCron(envWith({ CLAIM_SHARD: { getByName } }), Date.now())).error).toBeNull();
    expect(told).toHaveLength(2 * 5);
    expect(await copiedGrowth()).toMatchObject({ isAborted: true });
    expect(await copiedGrowth()).not.toHaveProperty("isDropped");
    await runCron(env, Date.now());
    expect(await copiedGrowth()).toMatchObject({ isDropped: true });
  });

  test("[G2] copies the growth that runs, and keeps the copy when it has ended", async () => {
    expect(await copiedGrowth()).toBeNull();
    const started = await startGrowth();
    for (let runs = 0; runs < 2; runs += 1) await runCron(env, Date.now());
    expect(await copiedGrowth()).toEqual(started);
    valueOf(await directory().abortGrowth({ ...envelope(), id: started.id, growthCopiedAt: 0 }));
    expect((await runCron(env, Date.now())).error).toBeNull();
    expect(await copiedGrowth()).toEqual({ ...started, isAborted: true, isDropped: true });
    const later = await startGrowth();
    await runCron(env, Date.now());
    expect(await copiedGrowth()).toEqual(later);
  });

  test("[G1] tells the shards once that a growth was aborted", async () => {
    const { id } = await startGrowth();
    await runCron(env, Date.now());
    valueOf(await directory().abortGrowth({ ...envelope(), id, growthCopiedAt: 0 }));
    const notes = [];
    for (let runs = 0; runs < 3; runs += 1) {
      const { env: counted, done } = faultyD1();
      await runCron(counted, Date.now());
      notes.push(done.filter(({ sql }) => sql.some((text) => text.includes('update "growths"'))).length);
    }
    // That it was aborted, and that all shards were told.
    expect(notes).toEqual([2, 0, 0]);
  });

  test("[G2] replaces the copy of a growth only by a later one", async () => {
    const database = new Database(env);
    for (const [position, kept] of [
      [2, 2],
      [1, 2],
      [2, 2],
      [3, 3],
    ] as const)
      expect(await mirrorGrowth(database, growthAt(position))).toEqual({ ok: true, value: kept });
    expect(await copiedGrowth()).toEqual(growthAt(3));
  });

  test("[G2] [H4] tells the directory of a growth that is newer than its own", async () => {
    await mirrorGrowth(new Database(env), growthAt(1_000_000));
    const report = await runCron(env, Date.now());
    expect(report.error).toContain("the directory has lost a part of its history");
  });

  test("copies the keys in several pages, and their revocation", async () => {
    for (let n = 1; n <= 7; n += 1) valueOf(await directory().recordKey({ ...envelope(), key: keyOf(n) }));
    const smallPages = envWith({ LEASEHOLD_PULL_ROWS: "3" });
    await runCron(smallPages, Date.now());
    expect(await countRows("keys")).toBe(7);
    valueOf(await directory().revokeKey({ ...envelope(), key: keyOf(2) }));
    await runCron(smallPages, Date.now());
    expect(await countRows("keys", "revoked_at_ms IS NOT NULL AND key_id = 'k2'")).toBe(1);
    expect(await countRows("keys")).toBe(7);
    const { env: counted, done } = faultyD1();
    await runCron(counted, Date.now());
    expect(done.filter(({ sql }) => sql.some((text) => text.includes("INTO keys")))).toEqual([]);
  });

  test("[M6] keeps a limited number of keys, and forgets only expired ones", async () => {
    const few = envWith({ LEASEHOLD_MAX_KEYS: "3" });
    const record = async (n: number, expiresAtMs: number) => {
      const key = { keyId: `k${n}`, role: "router" as const, cell: null, note: null, createdAtMs: n };
      const message = { ...envelope(), key: { ...key, expiresAtMs, revokedAtMs: null } };
      valueOf(await directory().recordKey(message));
    };
    for (let n = 1; n <= 4; n += 1) await record(n, n);
    await runCron(few, Date.now());
    expect(await countRows("keys")).toBe(3);
    for (let n = 5; n <= 9; n += 1) await record(n, Date.now() + 1e9);
    await runCron(few, Date.now());
    expect(await countRows("keys", "expires_at_ms > 1000")).toBe(5);
    expect(await countRows("keys")).toBe(5);
  });

  test("[H2] a directory that went back in time is noticed by what D1 remembers", async () => {
    valueOf(await directory().recordKey({ ...envelope(), key: keyOf(1) }));
    await runCron(env, Date.now());
    await forgetKeys();
    valueOf(await directory().recordKey({ ...envelope(), key: keyOf(2) }));
    const report = await runCron(env, Date.now());
    expect(report.error).toContain("the directory has lost a part of its history");
    expect(await countRows("keys", "key_id = 'k1'")).toBe(1);
  });

  test("[H2] a directory is noticed that lost a change from during a run", async () => {
    valueOf(await directory().recordKey({ ...envelope(), key: keyOf(1) }));
    await runCron(env, Date.now());
    const { position = 0 } = valueOf(await directory().snapshot(envelope())).point ?? {};
    // The revocation arrives between the run's snapshot and its listing of keys.
    let isRevoked = false;
    const { env: slow } = faultyD1(async (_, sql) => {
      if (!isRevoked && sql.some((text) => text.includes('max("position")'))) {
        isRevoked = true;
        valueOf(await directory().revokeKey({ ...envelope(), key: keyOf(1) }));
      }
      return undefined;
    });
    expect(await runCron(slow, Date.now())).toMatchObject({ error: null });
    expect(await countRows("keys", "revoked_at_ms > 0")).toBe(1);
    await runInDurableObject(directory(), (_, { storage: { sql } }) => {
      sql.exec("UPDATE minted_key SET revoked_at_ms = NULL, position = ?", position);
      sql.exec("UPDATE meta SET value = ? WHERE name = 'position'", position);
    });
    await restartObjects(env, "1", "2");
    expect((await runCron(env, Date.now())).error).toContain("has lost a part of its history");
    expect(await countRows("keys", "revoked_at_ms > 0")).toBe(1);
  });

  test("[H2] [H3] a directory that went back in time is noticed by what a ledger remembers", async () => {
    valueOf(await directory().recordKey({ ...envelope(), key: keyOf(1) }));
    await runCron(env, Date.now());
    await forgetKeys();
    await emptyD1();
    valueOf(await directory().recordKey({ ...envelope(), key: keyOf(2) }));
    expect((await runCron(env, Date.now())).error).toContain("the directory has not confirmed its history");
    const part = valueOf(await directory().part(envelope()));
    // The ledgers are visited at the same time, so either may be the one that is named.
    expect(part.state).toBe("lost");
    expect(part.loss?.noticedBy).toMatch(/^the ledger of cell [12]$/);
  });

  test("[H2] [H3] a directory that forgot all cells is noticed by their ledgers", async () => {
    await runCron(env, Date.now());
    await env.DB.prepare("DELETE FROM seen_points").run();
    await runInDurableObject(directory(), (_, state) => {
      const { sql } = state.storage;
      for (const table of ["cell", "incarnation"]) sql.exec(`DELETE FROM ${table}`);
      sql.exec("DELETE FROM meta WHERE name IN ('position', 'placement')");
    });
    await restartObjects(env, "1", "2");
    const report = await runCron(env, Date.now());
    expect(report.error).toContain("the directory has not confirmed its history");
  });

  test("[H5] D1 and the ledgers follow a directory that has only been restarted", async () => {
    await runCron(env, Date.now());
    for (let n = 1; n <= 3; n += 1) {
      await restartObjects(env, "1", "2");
      valueOf(await directory().recordKey({ ...envelope(), key: keyOf(n) }));
      expect(await runCron(env, Date.now())).toMatchObject({ error: null });
    }
    const { point } = valueOf(await directory().snapshot(envelope()));
    const row = await env.DB.prepare("SELECT incarnation, position FROM seen_points").first();
    expect(row).toEqual(point);
    const { directory: seen } = valueOf(
      await ledgerOf("1").pull({ ...envelope(), after: 0, through: null, has: [], limit: 1 }),
    );
    expect(seen).toEqual(point);
  });

  test("reads and writes no open leases of a cell on its own if nothing has changed", async () => {
    await begin("1", uuidOf(1), "a");
    await runCron(env, Date.now());
    const before = await leasesInD1("1");
    const { env: counted, done } = faultyD1();
    const report = await runCron(counted, Date.now());
    expect(report).toMatchObject({ cellsPulled: 2, leasesUpserted: 0 });
    const read = done.flatMap(({ sql }) => sql).filter((text) => text.includes("open_leases"));
    expect(read).toEqual([expect.stringMatching(/^select .* from "cells"$/s)]);
    expect(await leasesInD1("1")).toEqual(before);
  });

  test("[S4] corrects whatever D1 has wrong, and writes no row that is right", async () => {
    await Promise.all(Array.from({ length: 130 }, (_, n) => begin("1", uuidOf(n), `name-${n}`)));
    for (const rows of ["500", "7", "1"]) {
      const pages = envWith({ LEASEHOLD_PULL_ROWS: rows });
      for (let runs = 0; runs < 2; runs += 1) await runCron(pages, Date.now());
      const leases = await leasesInD1("1");
      // One lease is missing, and the ledger has no lease at one of the others' positions, or another one.
      const [first, second] = [leases.at(3)?.created_position, leases.at(-2)?.created_position];
      await env.DB.batch([
        env.DB.prepare("DELETE FROM open_leases WHERE created_position = ?").bind(first),
        env.DB.prepare("UPDATE open_leases SET uuid = 'gone' WHERE created_position = ?").bind(second),
        env.DB.prepare(
          `INSERT INTO open_leases SELECT cell_id, created_position + 2000000000000, 'gone', created_at_ms,
             creates, destroys, replaces, missing
           FROM open_leases ORDER BY created_position LIMIT 120`,
        ),
      ]);
      const { env: counted, done } = faultyD1();
      expect(await runCron({ ...pages, DB: counted.DB }, Date.now())).toMatchObject({
        leasesUpserted: 2,
        error: null,
      });
      await expectD1ToMatch("1");
      const written = done.filter(isPage).reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
      expect(written).toBe(2 + 2 + 120);
    }
  });

  test("catches up in many pages, also after D1 was emptied", async () => {
    await Promise.all(Array.from({ length: 60 }, (_, n) => begin("1", uuidOf(n), `name-${n}`)));
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        decide("1", uuidOf(n * 2), n % 3 === 0 ? "ROLLED_BACK" : "COMMITTED"),
      ),
    );
    const smallPages = envWith({ LEASEHOLD_PULL_ROWS: "7" });
    expect(await runCron(smallPages, Date.now())).toMatchObject({ leasesUpserted: 30, cellsPulled: 2 });
    await expectD1ToMatch("1");
    await emptyD1();
    expect(await runCron(smallPages, Date.now())).toMatchObject({ leasesUpserted: 30 });
    await expectD1ToMatch("1");
  });

  test("[S4] never has a lease that was granted and decided between two runs", async () => {
    await runCron(env, Date.now());
    await begin("1", uuidOf(1), "a");
    await decide("1", uuidOf(1), "ROLLED_BACK");
    expect(await runCron(env, Date.now())).toMatchObject({ leasesUpserted: 0 });
    await expectD1ToMatch("1");
  });

  test("[S4] deletes a lease that was decided, also one of an earlier run", async () => {
    await begin("1", uuidOf(1), "a");
    await begin("1", uuidOf(2), "b");
    await runCron(env, Date.now());
    expect(await leasesInD1("1")).toHaveLength(2);
    await decide("1", uuidOf(1), "COMMITTED");
    await runCron(env, Date.now());
    expect(await leasesInD1("1")).toMatchObject([{ uuid: uuidOf(2) }]);
    await expectD1ToMatch("1");
  });

  test("copies no names, and takes none from the ledger", async () => {
    await begin("1", uuidOf(1), "secret-name");
    const message = { ...envelope(), after: 0, through: null, has: [], limit: 10 };
    const pulled = valueOf(await ledgerOf("1").pull(message));
    expect(JSON.stringify(pulled)).not.toContain("secret-name");
    await runCron(env, Date.now());
    const { results } = await env.DB.prepare("SELECT * FROM open_leases").all();
    expect(JSON.stringify(results)).not.toContain("secret-name");
  });

  test("pulls a frozen cell too", async () => {
    await begin("1", uuidOf(1), "a");
    valueOf(await ledgerOf("1").setState({ ...envelope(), state: "FROZEN", stateVersion: 0 }));
    await decide("1", uuidOf(1), "COMMITTED");
    expect(await runCron(env, Date.now())).toMatchObject({ cellsPulled: 2, leasesUpserted: 0 });
    await expectD1ToMatch("1");
  });

  test("pulls the other cells when one ledger fails, and stores its error until it works again", async () => {
    await begin("1", uuidOf(1), "a");
    await begin("2", uuidOf(2), "b");
    expect(await runCron(withoutLedger("1"), Date.now())).toMatchObject({
      cellsPulled: 1,
      cellsFailed: 1,
      leasesUpserted: 1,
      error: null,
    });
    await expectD1ToMatch("2");
    expect(
      await countRows(
        "cells",
        "cell_id = '1' AND last_error = 'the object was reset' AND last_pulled_at_ms IS NULL",
      ),
    ).toBe(1);
    await runCron(env, Date.now());
    await expectD1ToMatch("1");
    expect(await countRows("cells", "last_error IS NULL AND last_pulled_at_ms IS NOT NULL")).toBe(2);
  });

  test("pulls the other cells when a stub cannot be made", async () => {
    await begin("2", uuidOf(1), "a");
    expect(await runCron(withoutLedger("1", "throws"), Date.now())).toMatchObject({
      cellsPulled: 1,
      cellsFailed: 1,
    });
    await expectD1ToMatch("2");
  });

  test("may overlap with other runs", async () => {
    await Promise.all(Array.from({ length: 20 }, (_, n) => begin("1", uuidOf(n), `name-${n}`)));
    const smallPages = { LEASEHOLD_PULL_ROWS: "3" };
    const deciding = Promise.all(Array.from({ length: 20 }, (_, n) => decide("1", uuidOf(n), "COMMITTED")));
    // Pauses before each D1 statement, so that the runs and the decisions interleave.
    const pause = (): Promise<undefined> => new Promise((resume) => setTimeout(resume, 1, undefined));
    await Promise.all([1, 2, 3].map(() => runCron({ ...faultyD1(pause).env, ...smallPages }, Date.now())));
    await deciding;
    await runCron(env, Date.now());
    await expectD1ToMatch("1");
  });

  test("pulls the cells in D1 when the directory cannot be reached", async () => {
    await runCron(env, Date.now());
    await begin("1", uuidOf(1), "a");
    const fail = (): Promise<never> => Promise.reject(new Error("the object was reset"));
    const report = await runCron(
      envWith({ DIRECTORY: { getByName: () => ({ snapshot: fail, listKeys: fail, pullAudit: fail }) } }),
      Date.now(),
    );
    expect(report).toMatchObject({
      cellsPulled: 2,
      leasesUpserted: 1,
      error: "the directory cannot be reached: the object was reset",
    });
    await expectD1ToMatch("1");
  });

  test("wakes all ledgers when D1 is down", async () => {
    await begin("1", uuidOf(1), "a");
    const { env: down, woken } = recordingMaintain(faultyD1(() => "before").env);
    const report = await runCron(down, Date.now());
    expect(report).toMatchObject({
      cellsPulled: 0,
      cellsFailed: 2,
      error: expect.stringContaining("Network connection lost"),
    });
    expect([...woken].toSorted()).toEqual(["1", "2"]);
  });

  test("the rows of runs are deleted after a week", async () => {
    await runCron(env, Date.now());
    await env.DB.prepare("UPDATE cron_runs SET started_at_ms = started_at_ms - 604801000").run();
    await runCron(env, Date.now());
    expect(await countRows("cron_runs")).toBe(1);
  });
});

describe("a copy that no longer matches its source", () => {
  test("[S4] has no gap in the next run after D1 is restored while a run writes pages", async () => {
    await Promise.all(Array.from({ length: 12 }, (_, n) => begin("1", uuidOf(n), `name-${n}`)));
    const smallPages = { LEASEHOLD_PULL_ROWS: "3" };
    let pages = 0;
    const { env: restored } = faultyD1(async (_, sql) => {
      if (isPage({ sql }) && ++pages === 3)
        await env.DB.batch([
          env.DB.prepare("DELETE FROM open_leases"),
          env.DB.prepare("UPDATE cells SET seen = NULL"),
        ]);
      return undefined;
    });
    await runCron({ ...restored, ...smallPages }, Date.now());
    expect(await leasesInD1("1")).toHaveLength(6);
    await runCron(env, Date.now());
    await expectD1ToMatch("1");
  });

  test("has no gap in its keys either", async () => {
    for (let n = 1; n <= 9; n += 1) valueOf(await directory().recordKey({ ...envelope(), key: keyOf(n) }));
    const smallPages = { LEASEHOLD_PULL_ROWS: "3" };
    let pages = 0;
    const { env: restored } = faultyD1(async (_, sql) => {
      if (sql.some((text) => text.includes("INTO keys")) && ++pages === 2)
        await env.DB.prepare("DELETE FROM keys").run();
      return undefined;
    });
    await runCron({ ...restored, ...smallPages }, Date.now());
    expect(await countRows("keys")).toBe(0);
    await runCron(env, Date.now());
    expect(await countRows("keys")).toBe(9);
  });

  test("[S4] has what a slow run writes late until the next run", async () => {
    await Promise.all(Array.from({ length: 12 }, (_, n) => begin("1", uuidOf(n), `name-${n}`)));
    const smallPages = { LEASEHOLD_PULL_ROWS: "3" };
    let pages = 0;
    const { env: slow } = faultyD1(async (_, sql) => {
      if (!isPage({ sql }) || ++pages > 1) return undefined;
      // The slow run has read the first leases as open, and writes them after another run has read their end.
      await runCron(env, Date.now());
      for (const n of [0, 1, 2]) await decide("1", uuidOf(n), "COMMITTED");
      await runCron(env, Date.now());
      return undefined;
    });
    expect(await runCron({ ...slow, ...smallPages }, Date.now())).toMatchObject({ cellsFailed: 0 });
    expect(await leasesInD1("1")).toHaveLength(12);
    await runCron(env, Date.now());
    await expectD1ToMatch("1");
  });

  describe("[H2] [H4] of a ledger that went back in time", () => {
    const events: string[] = [];
    const run = (): Promise<CronReport> =>
      runCron(env, Date.now(), { ...defaultRuntime, log: (event) => void events.push(event) });

    beforeEach(async () => {
      events.length = 0;
      await begin("1", uuidOf(1), "a");
      await runCron(env, Date.now());
    });

    const losses: [what: string, change: () => Promise<unknown>][] = [
      ["a grant", () => begin("1", uuidOf(2), "b")],
      ["a decision", () => decide("1", uuidOf(1), "COMMITTED")],
      ["a fence", () => decide("1", uuidOf(2), "ROLLED_BACK")],
      ["a freeze", () => setState("1", "FROZEN")],
      ["a revoked key", () => revoke("1", "k1")],
    ];
    for (const [what, change] of losses)
      for (const since of ["nothing", "another change"])
        test(`stops it, if the ledger lost ${what} and ${since} came since`, async () => {
          const restore = await saveLedger("1");
          await change();
          await runCron(env, Date.now());
          await restore();
          // No shard hears of it.
          if (since === "another change") await revoke("1", "k9");
          expect(await run()).toMatchObject({ cellsPulled: 1, cellsFailed: 1, error: null });
          expect(events).toContain("cell_failed");
          expect(await listFailedCopies(env, 1, undefined)).toMatchObject({
            value: { copies: [{ cell: "1", error: expect.stringContaining("has lost a part") }] },
          });
          expect(valueOf(await ledgerOf("1").part(envelope()))).toMatchObject({
            state: "lost",
            loss: { noticedBy: "the cron" },
          });
        });

    test("copies it again once its loss is accepted, and gives D1 a lease that is open again", async () => {
      const restore = await saveLedger("1");
      await decide("1", uuidOf(1), "COMMITTED");
      await runCron(env, Date.now());
      expect(await leasesInD1("1")).toEqual([]);
      await restore();
      expect(await run()).toMatchObject({ cellsFailed: 1 });
      const message = { ...envelope(), dryRun: false, revokedKeys: [], removedAtMs: null };
      valueOf(await ledgerOf("1").reconcile(message));
      for (let n = 0; n < 2; n += 1) expect(await run()).toMatchObject({ cellsPulled: 2, cellsFailed: 0 });
      expect(await leasesInD1("1")).toMatchObject([{ uuid: uuidOf(1) }]);
      expect(await listFailedCopies(env, 1, undefined)).toMatchObject({ value: { copies: [] } });
    });

    test("[H5] does not forget what another run has stored meanwhile", async () => {
      const restore = await saveLedger("1");
      // The run has read the point from before the loss. It gets the ledger's answer after the restore.
      let steps = 0;
      const { env: overtaken } = faultyD1(async (_, sql) => {
        if (steps === 0 && sql.some((each) => /^select .* from "cells"$/s.test(each))) steps = 1;
        else if (steps === 1) {
          steps = 2;
          await revoke("1", "k1");
          await runCron(env, Date.now());
          await restore();
          await revoke("1", "k9");
        }
        return undefined;
      });
      expect(await runCron(overtaken, Date.now())).toMatchObject({ cellsPulled: 2 });
      expect(steps).toBe(2);
      expect(await run()).toMatchObject({ cellsFailed: 1 });
    });
  });

  test("[H4] does not take a decision or a forgotten outcome for a loss", async () => {
    await begin("1", uuidOf(1), "a");
    await runCron(env, Date.now());
    await decide("1", uuidOf(1), "COMMITTED");
    expect(await runCron(env, Date.now())).toMatchObject({ cellsPulled: 2 });
    const { position } = valueOf(await ledgerOf("1").status(envelope()));
    await runInDurableObject(ledgerOf("1"), (_, state) => {
      state.storage.sql.exec("DELETE FROM lease");
      state.storage.sql.exec("INSERT INTO meta (name, value) VALUES ('pruned_position', ?)", position);
    });
    await restartObjects(env, "1");
    expect(await runCron(env, Date.now())).toMatchObject({ cellsPulled: 2 });
  });
});
