/** Tests of the removal of a cell. */
import { v4 as newUuid } from "uuid";
import { beforeAll, expect, test } from "vitest";
import type * as z from "zod";
import type { removalRoutes } from "../../../src/coordinator/capabilities/removal/edge/routes.ts";
import type { Coordinator, Open } from "./coordinator.ts";
import { claim, freshName } from "./leases.ts";
import { path, RemovedCells, SOURCE } from "./removed-cells.ts";

type Answers = typeof removalRoutes;
type Step = z.infer<Answers["stepRemoval"]["responses"][200]["schema"]>;

const reason = "its hardware is lost";
const MOST_CALLS = 2_000;

export function removalSuite(open: Open): void {
  let api: Coordinator;
  let removed: RemovedCells;

  beforeAll(async () => {
    api = await open({ cells: ["1", "2", "3", "4"] });
    removed = new RemovedCells(api);
  });

  /** The digests that an export of the cell has. */
  async function exported(cell: string): Promise<{ source_type: string; count: number; hash: string }[]> {
    const body = { source_type: SOURCE, ranges: [{}] };
    const { digests } = await api.json<{ digests: { count: number; hash: string }[] }>(
      200,
      "POST",
      `/v1/cells/${cell}/records/digests`,
      { body },
    );
    return digests.map(({ count, hash }) => ({ source_type: SOURCE, count, hash }));
  }

  const approvalOf = async (cell: string) => ({ body: { export: await exported(cell) } });

  async function finish(cell: string, limit: number): Promise<Step[]> {
    const steps: Step[] = [];
    for (let calls = 0; steps.at(-1)?.state !== "REMOVED"; calls += 1) {
      expect(calls, "the removal does not end").toBeLessThan(MOST_CALLS);
      // A step that ends early can be repeated: shards may not have applied the last decision yet.
      const { status, text } = await api.send("POST", path(cell, "/steps"), { body: { reason, limit } });
      expect([200, 503]).toContain(status);
      if (status === 200) steps.push(JSON.parse(text) as Step);
    }
    return steps;
  }

  test("[X2] [X3] [X4] releases what the cell has in bounded steps, and nothing else", async () => {
    const [values, others] = [await removed.own("1", 23), await removed.own("2", 3)];
    await api.problem(409, "POST", path("1"), await approvalOf("1"));
    await removed.drain("1");
    expect(await removed.show("1")).toEqual({
      cell_id: "1",
      state: "DRAINING",
      outstanding_leases: 0,
      unapplied_decisions: 0,
      claims: [{ source_type: SOURCE, bucket_type: "ROUTES", count: 23 }],
      claims_total: 23,
      cursor: null,
      progress: null,
      removed_at: null,
    });
    await api.json(200, "POST", path("1"), await approvalOf("1"));
    expect(await removed.show("1")).toMatchObject({ state: "DRAINING", progress: null });
    const steps = await finish("1", 5);
    expect(steps.every(({ released_claims: released }) => released <= 5)).toBe(true);
    expect(steps.reduce((sum, { released_claims: released }) => sum + released, 0)).toBe(23);
    expect(steps.at(-1)).toEqual({ state: "REMOVED", released_claims: 0, claims_left: 0 });
    expect(await removed.show("1")).toMatchObject({
      state: "REMOVED",
      claims: [],
      progress: { exported_claims: 23, released_claims: 23 },
    });
    expect(await removed.show("2")).toMatchObject({ claims_total: 3 });
    // The names are free for others, and the cell's key is refused.
    const lease = `/v1/cells/2/leases/${newUuid()}`;
    await api.json(201, "PUT", lease, { key: "cell 2", body: { creates: [claim(values[0] ?? "")] } });
    await api.problem(409, "PUT", `/v1/cells/3/leases/${newUuid()}`, {
      key: "cell 3",
      body: { creates: [claim(others[0] ?? "")] },
    });
    const refused = await api.problem(403, "GET", "/v1/cells/1/leases", { key: "cell 1" });
    expect(refused).toMatchObject({ reason: "CELL_REMOVED" });
    // The audit says who did it and why.
    await api.cron();
    const { text } = await api.send("GET", "/v1/admin/audit?action=remove_cell");
    const { entries } = JSON.parse(text) as { entries: { part: string }[] };
    expect(entries.toSorted((one, other) => one.part.localeCompare(other.part))).toMatchObject([
      { part: "directory", cell_id: "1", reason, before: { removed_at_ms: null } },
      { part: "ledger-1", cell_id: "1", reason, before: { state: "REMOVING" }, after: { state: "REMOVED" } },
    ]);
  });

  test("[X5] a removed cell is listed only on request, and nothing of it can be changed", async () => {
    const listed = async (query = "") => {
      const { text } = await api.send("GET", `/v1/admin/cells${query}`);
      return (JSON.parse(text) as { cells: { cell_id: string; removed_at: string | null }[] }).cells;
    };
    const { removed_at: removedAt } = await removed.show("1");
    expect(removedAt).not.toBeNull();
    expect((await listed()).map(({ cell_id: id }) => id)).not.toContain("1");
    const all = await listed("?include_removed=true");
    expect(all[0]).toMatchObject({ cell_id: "1", state: "REMOVED", removed_at: removedAt });
    expect(all[1]).toMatchObject({ cell_id: "2", removed_at: null });
    const refused = async (method: string, at: string, body: object) =>
      expect(await api.problem(409, method, `/v1/admin/${at}`, { body })).toMatchObject({
        code: "FAILED_PRECONDITION",
        reason: "CELL_REMOVED",
      });
    const address = "https://again.example";
    await refused("POST", "cells", { cell_id: "1", name: "again", address });
    await refused("PATCH", "cells/1", { address });
    for (const state of ["freeze", "drain", "unfreeze"]) await refused("POST", `cells/1/${state}`, {});
    await refused("POST", "keys", { role: "cell", cell_id: "1" });
    // A step can be repeated, and changes nothing.
    const step = { body: { reason, limit: 1 } };
    expect(await api.json(200, "POST", path("1", "/steps"), step)).toMatchObject({ released_claims: 0 });
    expect(await removed.show("1")).toMatchObject({ state: "REMOVED", removed_at: removedAt });
  });

  test("[X5] its keys are refused on every path, and routers get no address of it", async () => {
    const calls = [
      ["GET", "/v1/cells/1/leases", undefined],
      ["POST", "/v1/records/lookup", { buckets: [{ type: "ROUTES", value: freshName() }] }],
    ] as const;
    for (const [method, at, body] of calls)
      expect(await api.problem(403, method, at, { key: "cell 1", ...(body && { body }) })).toMatchObject({
        code: "PERMISSION_DENIED",
        reason: "CELL_REMOVED",
      });
    const { cells } = await api.json<{ cells: { id: string }[] }>(200, "GET", "/v1/cells", {
      key: "router",
    });
    expect(cells.map(({ id }) => id)).toEqual(["2", "3", "4"]);
  });

  test("[X2] is refused while a lease is open, and if the export is not what the cell has", async () => {
    await removed.own("3", 2);
    const lease = `/v1/cells/3/leases/${newUuid()}`;
    await api.json(201, "PUT", lease, { key: "cell 3", body: { creates: [claim(freshName())] } });
    await removed.drain("3");
    const approve = (body: object) => api.problem(409, "POST", path("3"), { body });
    const all = await exported("3");
    expect(await approve({ export: all })).toMatchObject({ reason: "CELL_HAS_LEASES" });
    await api.json(200, "POST", `${lease}/rollback`, { key: "cell 3" });
    await removed.applied("3");
    const [routes = { source_type: SOURCE, count: 0, hash: "" }] = all;
    for (const wrong of [[], [{ ...routes, count: 1 }], [{ ...routes, hash: "0".repeat(32) }]])
      expect(await approve({ export: wrong })).toMatchObject({ reason: "EXPORT_DIFFERS" });
    const unused = { source_type: "RAILS_TABLE_USERS", count: 1, hash: "1".repeat(32) };
    expect(await approve({ export: [routes, unused] })).toMatchObject({ reason: "EXPORT_DIFFERS" });
    expect(await removed.show("3")).toMatchObject({ state: "DRAINING", claims_total: 2 });
  });

  test("[X3] undraining the cell ends the approval of its removal, until the first step", async () => {
    await removed.own("4", 4);
    await removed.drain("4");
    const step = { body: { reason, limit: 1 } };
    expect(await api.problem(409, "POST", path("4", "/steps"), step)).toMatchObject({
      reason: "CELL_NOT_REMOVING",
    });
    await api.json(200, "POST", path("4"), await approvalOf("4"));
    await api.json(200, "POST", "/v1/admin/cells/4/unfreeze", {});
    await removed.drain("4");
    expect(await api.problem(409, "POST", path("4", "/steps"), step)).toMatchObject({
      reason: "CONCURRENT_CHANGE",
      detail: expect.stringContaining("export and compare them again") as string,
    });
    expect(await removed.show("4")).toMatchObject({ progress: null, claims_total: 4 });
    for (const _ of [1, 2]) await api.json(200, "POST", path("4"), await approvalOf("4"));
    expect(await api.json(200, "POST", path("4", "/steps"), step)).toEqual({
      state: "REMOVING",
      released_claims: 1,
      claims_left: 3,
    });
    expect(await api.problem(409, "POST", "/v1/admin/cells/4/unfreeze", {})).toMatchObject({
      reason: "CELL_REMOVING",
    });
    await api.problem(409, "POST", path("4"), await approvalOf("4"));
  });

  test("a viewer sees a removal, and only operators carry it out", async () => {
    const viewer = await api.json<{ key: `lhk_${string}` }>(201, "POST", "/v1/admin/keys", {
      body: { role: "viewer" },
    });
    await api.json(200, "GET", path("2"), viewer);
    await api.problem(403, "GET", path("2"), { key: "cell 2" });
    const bodies = { "": { export: [] }, "/steps": { reason } };
    for (const [rest, body] of Object.entries(bodies))
      await api.problem(403, "POST", path("2", rest), { ...viewer, body });
  });
}
