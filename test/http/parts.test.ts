import { beforeEach, describe, expect, test } from "vitest";
import type * as z from "zod";
import type { partRoutes } from "../../src/http/contract/part-routes.ts";
import { MESSAGE_VERSION } from "../../src/core/messages.ts";
import { configOf } from "../../src/env.ts";
import { begun, claim, committed, freshName } from "../suites/conformance/leases.ts";
import { type Api, env, startDeployment } from "../support/workerd/api.ts";
import { stubsOf } from "../support/workerd/stubs.ts";

type Part = z.infer<(typeof partRoutes)["getPart"]["responses"][200]["schema"]>["part"];
type Reconciliation = z.infer<(typeof partRoutes)["reconcilePart"]["responses"][200]["schema"]>;

let api: Api;

beforeEach(async () => {
  api = await startDeployment("1", "2");
});

const reason = "restored from a backup";
/** A point that no part of this deployment has. */
const seen = { incarnation: 99 * 16 ** 6, position: 1_000_000_000 };
const envelope = () => ({ version: MESSAGE_VERSION, placement: configOf(env).placement });
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
