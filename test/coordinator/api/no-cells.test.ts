/** A deployment before its first cell is registered. */
import { expect, test } from "vitest";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import { Api, env, startDeployment } from "../../support/workerd/api.ts";

test("[P2] is ready, answers reads, and may still change its number of shards", async () => {
  const api = await startDeployment();
  expect(await api.json(200, "GET", "/readyz", { key: undefined })).toMatchObject({ status: "no_cells" });
  expect(await api.json(200, "GET", "/v1/admin/cells")).toMatchObject({ cells: [] });
  expect(await api.json(200, "GET", "/v1/leases/stale")).toMatchObject({ leases: [] });
  expect(await api.problem(503, "GET", "/v1/records/ROUTES/x", { key: "router" })).toMatchObject({
    code: "UNAVAILABLE",
    reason: "NO_CELLS",
    detail: expect.stringContaining("No cell is registered yet"),
  });
  expect(await runCron(env, Date.now())).toMatchObject({ cellsFailed: 0, error: null });
  const resharded = new Api({ LEASEHOLD_SHARDS: "8" });
  const body = { cell_id: "1", name: "Cell 1", address: "https://cell-1.example" };
  await resharded.json(201, "POST", "/v1/admin/cells", { body });
  await resharded.json(404, "GET", "/v1/records/ROUTES/x", { key: "router" });
  expect(await resharded.json(200, "GET", "/readyz", { key: undefined })).toMatchObject({ status: "ok" });
  expect(await api.json(200, "GET", "/v1/admin/cells")).toMatchObject({ cells: [{ cell_id: "1" }] });
});
