import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import type * as z from "zod";
import type { partRoutes } from "../../../../../src/coordinator/capabilities/loss/edge/routes.ts";
import { placementOf } from "../../../../../src/coordinator/kernel/placement.ts";
import { configOf } from "../../../../../src/coordinator/env.ts";
import { begun, claim, committed, freshName } from "../../../../suites/conformance/leases.ts";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import { faultyD1 } from "../../../cron/faulty-d1.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { restartObjects } from "../../../../support/workerd/restart.ts";
import { saveDirectory } from "../../../../support/workerd/save-directory.ts";
import { stubsOf } from "../../../../support/workerd/stubs.ts";
import { STAMP } from "../../../../support/ops.ts";

type Part = z.infer<(typeof partRoutes)["getPart"]["responses"][200]["schema"]>["part"];
type Reconciliation = z.infer<(typeof partRoutes)["reconcilePart"]["responses"][200]["schema"]>;

let api: Api;

beforeEach(async () => {
  api = await startDeployment("1", "2");
});

const reason = "restored from a backup";
/** A point that no part of this deployment has. */
const seen = { incarnation: 99 * 16 ** 6, position: 1_000_000_000 };
const envelope = () => ({ ...STAMP, placement: placementOf(configOf(env).initialShards) });
const loseShard = (index: number) =>
  stubsOf(env)
    .shard(index)
    .settle({ ...envelope(), seen, keys: [] });
const loseLedger = (cell: string) =>
  stubsOf(env)
    .ledger(cell)
    .inquire({ ...envelope(), seen, shard: 0, questions: [] });

const partOf = async (part: string): Promise<Part> =>
  (await api.json<{ part: Part }>(200, "GET", `/v1/admin/parts/${part}`, {})).part;
const operations = async (): Promise<unknown> =>
  (await api.json<{ operations: unknown }>(200, "GET", "/v1/admin/operations", {})).operations;
const reconcile = (part: string, dryRun: boolean): Promise<Reconciliation> =>
  api.json(200, "POST", `/v1/admin/parts/${part}/reconcile`, { body: { dry_run: dryRun, reason } });
const begin = (verification: boolean) =>
  api.send("POST", "/v1/cells/1/leases", {
    key: "cell 1",
    // On all shards, so that the one under test is among them.
    body: { creates: Array.from({ length: 100 }, () => claim(freshName())), verification },
  });

describe("a shard that has gone back in time", () => {
  test("is reconciled in two steps, after a dry run", async () => {
    await begun(api);
    await loseShard(0);
    expect(await partOf("shard-0")).toMatchObject({ state: "lost", loss: { noticed_by: "a caller", seen } });
    const dryRun = await reconcile("shard-0", true);
    expect(dryRun).toMatchObject({ dry_run: true, part: { state: "lost" }, unreachable: [] });
    expect(await partOf("shard-0")).toEqual(dryRun.part);
    expect((await begin(true)).status).toBe(503);
    const early = await api.problem(409, "POST", "/v1/admin/parts/shard-0/finish", { body: { reason } });
    expect(early.detail).toMatch(/^Shard 0 has not accepted its loss; reconcile it/);

    expect((await reconcile("shard-0", false)).part.state).toBe("reconciling");
    const refused = await begin(false);
    expect([refused.status, (refused.json as { reason: string }).reason]).toEqual([503, "HISTORY_LOST"]);
    expect((await begin(true)).status).toBe(201);

    const { part } = await api.json<{ part: Part }>(200, "POST", "/v1/admin/parts/shard-0/finish", {
      body: { reason },
    });
    expect(part).toMatchObject({ id: "shard-0", state: "complete", loss: null });
    expect((await begin(false)).status).toBe(201);
  });

  test("[A6] keeps the deployment from growing until it is finished", async () => {
    await loseShard(0);
    await reconcile("shard-0", true);
    // Nothing is wrong with this one.
    await reconcile("shard-1", false);
    expect(await operations()).toEqual([]);
    await reconcile("shard-0", false);
    expect(await operations()).toMatchObject([
      { id: "shard-0", kind: "reconciliation", about: "shard-0", started_by: expect.any(String) as string },
    ]);
    const growth = { body: { shards: 20, reason } };
    const refused = await api.problem(409, "POST", "/v1/admin/growth", growth);
    expect(refused).toMatchObject({ reason: "OPERATION_RUNNING", operation: { id: "shard-0" } });
    await api.json(200, "POST", "/v1/admin/parts/shard-0/finish", { body: { reason } });
    expect(await operations()).toEqual([]);
    await api.json(200, "POST", "/v1/admin/growth", growth);
  });
});

describe("a point that a cell has made up", () => {
  const callWith = (point: string) =>
    api.send("GET", "/v1/cells/1/leases", { key: "cell 1", headers: { "leasehold-history": point } });
  const readyFailed = async (): Promise<unknown> =>
    (await api.json<{ failed: unknown }>(200, "GET", "/readyz", { key: null })).failed;

  test.each(["4007199254740001.1", "9007199254740991.9007199254740991", `16777217.${2 ** 52}`])(
    "[L7] is refused if no ledger can have had it: %s",
    async (point) => {
      const refused = await callWith(point);
      expect(refused.status).toBe(400);
      expect(refused.json).toMatchObject({ code: "INVALID_ARGUMENT", field: "leasehold-history" });
      expect(await partOf("ledger-1")).toMatchObject({ state: "complete" });
      expect(await readyFailed()).toEqual([]);
    },
  );

  test("[L7] stops only the cell's own ledger, until an operator reconciles it", async () => {
    expect((await callWith(`${99 * 16 ** 6}.1`)).json).toMatchObject({ reason: "HISTORY_LOST" });
    api = new Api();
    expect(await readyFailed()).toEqual(["ledger of cell 1"]);
    await api.json(201, "POST", "/v1/cells/2/leases", {
      key: "cell 2",
      body: { creates: [claim(freshName())] },
    });
    expect(await reconcile("ledger-1", false)).toMatchObject({ part: { state: "complete" } });
    expect((await begin(false)).status).toBe(201);
  });
});

describe("a ledger that has gone back in time", () => {
  test("is reconciled in one step, with the keys that the directory knows to be revoked", async () => {
    const key = await api.json<{ id: string; key: `lhk_${string}` }>(201, "POST", "/v1/admin/keys", {
      body: { role: "cell", cell_id: "1" },
    });
    await api.json(200, "POST", `/v1/admin/keys/${key.id}/revoke`, {});
    await committed(api);
    await loseLedger("1");
    expect((await begin(false)).status).toBe(503);
    expect(await partOf("ledger-1")).toMatchObject({ state: "lost" });
    expect(await reconcile("ledger-1", true)).toMatchObject({
      part: { state: "lost" },
      cell_state: "ACTIVE",
    });
    expect((await api.send("POST", "/v1/admin/parts/ledger-1/finish", { body: { reason } })).status).toBe(
      409,
    );
    expect(await reconcile("ledger-1", false)).toMatchObject({
      dry_run: false,
      part: { state: "complete", loss: null },
      rebuilt_leases: [],
      unreachable: [],
    });
    expect((await begin(false)).status).toBe(201);
    expect(await partOf("ledger-2")).toMatchObject({ state: "complete" });
  });
});

describe("a directory that has gone back in time", () => {
  const cell = { cell_id: "3", name: "Cell 3", address: "https://cell-3.example", location_hint: "weur" };
  type Key = { id: string; key: `lhk_${string}` };
  const mint = (role: string): Promise<Key> => api.json(201, "POST", "/v1/admin/keys", { body: { role } });

  test("[H8] stops what needs it, and gets its cells, keys and revocations back from D1", async () => {
    const revoked = await mint("operator");
    const restore = await saveDirectory("1", "2", "3");
    const router = await mint("router");
    await api.json(201, "POST", "/v1/admin/cells", { body: cell });
    await api.json(200, "POST", `/v1/admin/keys/${revoked.id}/revoke`, {});
    await runCron(env, Date.now());
    await restore();
    // Another isolate, which has seen nothing, and in which the revoked key works again.
    api = new Api();
    await api.json(200, "GET", "/v1/admin/cells", { key: revoked.key });
    const report = await runCron(env, Date.now());
    expect(report.error).toContain("the directory has lost a part of its history");

    api = new Api();
    for (const key of ["router", router.key, revoked.key] as const)
      expect(await api.problem(503, "GET", "/v1/records/ROUTES/x", { key })).toMatchObject({
        reason: "HISTORY_LOST",
      });
    expect((await api.problem(503, "POST", "/v1/admin/keys", { body: { role: "router" } })).reason).toBe(
      "HISTORY_LOST",
    );
    const ready = await api.send("GET", "/readyz", { key: undefined });
    expect([ready.status, (ready.json as { failed: string[] }).failed]).toEqual([503, ["directory"]]);

    // The revoked key may not decide what is restored.
    expect(await api.problem(401, "GET", "/v1/admin/parts/directory", { key: revoked.key })).toMatchObject({
      reason: "KEY_REVOKED",
    });
    expect(await partOf("directory")).toMatchObject({ state: "lost", loss: { noticed_by: "a caller" } });
    const finished = await api.problem(409, "POST", "/v1/admin/parts/directory/finish", { body: { reason } });
    expect(finished.detail).toContain("has not accepted its loss");
    const restored = { cells: ["3"], keys: 1, revocations: 1 };
    expect(await reconcile("directory", true)).toMatchObject({ part: { state: "lost" }, restored });
    expect(await reconcile("directory", false)).toMatchObject({
      part: { state: "complete", loss: null },
      restored,
    });

    await api.json(404, "GET", "/v1/records/ROUTES/x", { key: router.key });
    await api.problem(401, "GET", "/v1/admin/cells", { key: revoked.key });
    const { cells } = await api.json<{ cells: { cell_id: string }[] }>(200, "GET", "/v1/admin/cells");
    expect(cells.map(({ cell_id: id }) => id)).toEqual(["1", "2", "3"]);
    expect(cells[2]).toMatchObject(cell);
    // D1 copies all keys again, and the next change as well.
    expect(await runCron(env, Date.now())).toMatchObject({ error: null });
    await api.json(200, "POST", `/v1/admin/keys/${router.id}/revoke`, {});
    expect(await runCron(env, Date.now())).toMatchObject({ error: null });
    const copied = await env.DB.prepare("SELECT count(*) AS n FROM keys WHERE revoked_at_ms > 0").first();
    expect(copied).toEqual({ n: 2 });
    expect(await reconcile("directory", false)).toMatchObject({ restored: { cells: [], keys: 0 } });
  });

  /** A directory that has lost a revocation that D1 has, and that nobody has told. */
  async function unaware(): Promise<Key> {
    const revoked = await mint("operator");
    const restore = await saveDirectory("1", "2", "3");
    await api.json(200, "POST", `/v1/admin/keys/${revoked.id}/revoke`, {});
    await runCron(env, Date.now());
    await restore();
    await env.DB.prepare("DELETE FROM seen_points").run();
    for (const id of ["1", "2"])
      await runInDurableObject(stubsOf(env).ledger(id), (_, { storage: { sql } }) => {
        sql.exec("DELETE FROM meta WHERE name = 'applied'");
      });
    await restartObjects(env, "1", "2", "3");
    api = new Api();
    return revoked;
  }
  const declare = (dryRun: boolean): Promise<Reconciliation> =>
    api.json(200, "POST", "/v1/admin/parts/directory/reconcile", {
      body: { dry_run: dryRun, declare_lost: true, reason },
    });

  test("[H8] is not changed, nor are its copies, if it is not lost and nobody declares it", async () => {
    const revoked = await unaware();
    expect(await declare(true)).toMatchObject({ part: { state: "complete" }, restored: { revocations: 1 } });
    expect(await reconcile("directory", false)).toMatchObject({
      part: { state: "complete" },
      restored: { cells: [], keys: 0, revocations: 0 },
    });
    await runCron(env, Date.now());
    expect(await declare(false)).toMatchObject({ part: { state: "complete" }, restored: { revocations: 1 } });
    expect((await api.send("GET", "/v1/admin/cells", { key: revoked.key })).status).toBe(401);
  });

  test("[H8] gets its revocations back although the cron runs in between", async () => {
    const revoked = await unaware();
    // The cron runs before each access of the reconciliation to D1.
    let isRunning = false;
    const { env: between } = faultyD1(async () => {
      if (!isRunning) {
        isRunning = true;
        await runCron(env, Date.now());
        isRunning = false;
      }
      return undefined;
    });
    api = new Api({ DB: between.DB });
    expect(await declare(false)).toMatchObject({ part: { state: "complete" }, restored: { revocations: 1 } });
    await runCron(env, Date.now());
    api = new Api();
    expect((await api.send("GET", "/v1/admin/cells", { key: revoked.key })).status).toBe(401);
    const copied = await env.DB.prepare("SELECT count(*) AS n FROM keys WHERE revoked_at_ms > 0").first();
    expect(copied).toEqual({ n: 1 });
  });

  test("[H8] an isolate that was told of it lets a revoked key in no more", async () => {
    const revoked = await mint("router");
    const restore = await saveDirectory("1", "2", "3");
    await api.json(200, "POST", `/v1/admin/keys/${revoked.id}/revoke`, {});
    await runCron(env, Date.now());
    await restore();
    api = new Api();
    await api.json(404, "GET", "/v1/records/ROUTES/x", { key: revoked.key });
    await runCron(env, Date.now());
    // Any call of the directory tells the isolate, whatever it asks for.
    expect((await api.problem(503, "POST", "/v1/admin/keys", { body: { role: "router" } })).reason).toBe(
      "HISTORY_LOST",
    );
    expect((await api.problem(503, "GET", "/v1/records/ROUTES/x", { key: revoked.key })).reason).toBe(
      "HISTORY_LOST",
    );
  });

  test("[P2] [H8] that is empty, with an empty D1, can register its cells again", async () => {
    await committed(api);
    await runCron(env, Date.now());
    await runInDurableObject(stubsOf(env).directory(), (_, { storage: { sql } }) => {
      for (const table of ["cell", "incarnation"]) sql.exec(`DELETE FROM ${table}`);
      sql.exec("DELETE FROM meta WHERE name IN ('placement', 'position')");
    });
    for (const table of ["cells", "keys", "seen_points", "open_leases"])
      await env.DB.prepare(`DELETE FROM ${table}`).run();
    await restartObjects(env, "1", "2", "3");
    api = new Api();
    const first = { ...cell, cell_id: "1" };
    expect((await api.problem(503, "POST", "/v1/admin/cells", { body: first })).reason).toBe("HISTORY_LOST");
    expect(await declare(false)).toMatchObject({ part: { state: "complete" }, restored: { cells: [] } });
    await api.json(201, "POST", "/v1/admin/cells", { body: first });
    expect((await begin(false)).status).toBe(201);
  });

  test("[H8] lets nobody reconcile it while D1 cannot say which keys were revoked", async () => {
    await stubsOf(env)
      .directory()
      .snapshot({ ...envelope(), seen });
    const down = new Api({
      DB: {
        prepare: () => {
          throw new Error("D1_ERROR: down");
        },
      },
    });
    const body = { dry_run: true, reason };
    const refused = await down.problem(503, "POST", "/v1/admin/parts/directory/reconcile", { body });
    expect(refused.detail).toContain("D1 cannot be reached");
  });

  test("[P2] [H8] that has lost all cells gets the placement of the shards back", async () => {
    await committed(api);
    await runCron(env, Date.now());
    await runInDurableObject(stubsOf(env).directory(), (_, { storage: { sql } }) => {
      for (const table of ["cell", "minted_key", "incarnation"]) sql.exec(`DELETE FROM ${table}`);
      sql.exec("DELETE FROM meta WHERE name IN ('placement', 'position')");
    });
    await restartObjects(env, "1", "2", "3");
    for (const changes of [{}, { LEASEHOLD_SHARDS: "8" }]) {
      const other = new Api(changes);
      const refused = await other.problem(503, "POST", "/v1/admin/cells", { body: cell });
      expect(refused.reason).toBe("HISTORY_LOST");
      expect(refused.detail).toContain("so it has lost its cells");
    }
    const misplaced = new Api({ LEASEHOLD_SHARDS: "8" });
    const body = { dry_run: false, declare_lost: true, reason };
    expect(await misplaced.json(200, "POST", "/v1/admin/parts/directory/reconcile", { body })).toMatchObject({
      part: { state: "complete" },
      restored: { cells: ["1", "2"] },
    });
    api = new Api();
    expect((await begin(false)).status).toBe(201);
  });
});

describe("a part that has noticed nothing", () => {
  const declare = (part: string, dryRun: boolean): Promise<Reconciliation> =>
    api.json(200, "POST", `/v1/admin/parts/${part}/reconcile`, {
      body: { dry_run: dryRun, declare_lost: true, reason },
    });

  test("is reconciled if an operator declares its loss, and not by a dry run", async () => {
    await committed(api);
    expect((await reconcile("shard-0", false)).part).toMatchObject({ state: "complete", loss: null });
    expect((await declare("shard-0", true)).part).toMatchObject({ state: "complete", loss: null });
    expect((await begin(false)).status).toBe(201);
    expect((await declare("shard-0", false)).part).toMatchObject({
      state: "reconciling",
      loss: { noticed_by: "an operator", seen: null },
    });
    expect((await begin(false)).status).toBe(503);
    expect((await declare("ledger-1", false)).part).toMatchObject({ state: "complete", loss: null });
    await api.json(200, "POST", "/v1/admin/parts/shard-0/finish", { body: { reason } });
    expect((await begin(false)).status).toBe(201);
  });
});

describe("a part that does not exist", () => {
  test.each([
    ["shard-999", /^There is no shard-999; the shards are shard-0 to shard-\d+/],
    ["ledger-77", /^Cell 77 is not registered/],
  ])("%s is not found", async (part, detail) => {
    expect((await api.problem(404, "GET", `/v1/admin/parts/${part}`, {})).detail).toMatch(detail);
    const body = { dry_run: true, reason };
    expect((await api.problem(404, "POST", `/v1/admin/parts/${part}/reconcile`, { body })).code).toBe(
      "NOT_FOUND",
    );
    expect(
      (await api.problem(404, "POST", `/v1/admin/parts/${part}/finish`, { body: { reason } })).code,
    ).toBe("NOT_FOUND");
  });
});
