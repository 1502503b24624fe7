/** Tests of what cells say of themselves. */
import { describe, expect, test } from "vitest";
import type * as z from "zod";
import type { cell as cellSchema, cellStatus } from "../../../src/coordinator/api/contract/schemas.ts";
import type { KeyName } from "./client.ts";
import type { Coordinator, Open } from "./coordinator.ts";
import { begun } from "./leases.ts";

type Status = z.output<typeof cellStatus>;
type Cell = z.output<typeof cellSchema>;

const sdk = { name: "leasehold", version: "0.1.0" };
const path = (cell: string): string => `/v1/cells/${cell}/status`;

export function statusSuite(open: Open): void {
  const opened = (): Promise<Coordinator> => open({ cells: ["1", "2"] });
  const report = async (api: Coordinator, body: object, cell = "1"): Promise<Status> =>
    (await api.json<{ status: Status }>(200, "PUT", path(cell), { key: `cell ${cell}`, body })).status;
  const read = async (api: Coordinator, cell = "1", key: KeyName = "operator"): Promise<Status | null> =>
    (await api.json<{ status: Status | null }>(200, "GET", path(cell), { key })).status;

  test("[U1] an operator and the cell read what the cell reported last, and when it arrived", async () => {
    const api = await opened();
    expect(await read(api)).toBeNull();
    const reconciliation = { outcome: "done", is_full: true, counts: { processed: 2, rolled_back: 1 } };
    const sent = { ...reconciliation, stale_leases: 1, unreleased_deletions: 4, started_ago_ms: 90_000 };
    const status = await report(api, { sdk, reconciliation: { ...sent, ended_ago_ms: 60_000 } });
    expect(status).toMatchObject({ cell_id: "1", sdk, reconciliation });
    const { started_at: startedAt = "", ended_at: endedAt = "" } = status.reconciliation ?? {};
    expect(Date.parse(endedAt) - Date.parse(startedAt)).toBe(30_000);
    expect(Date.parse(status.reported_at) - Date.parse(endedAt)).toBe(60_000);
    expect(status.reconciliation).toMatchObject({ stale_leases: 1, unreleased_deletions: 4 });
    const shown = { ...status, age_ms: expect.any(Number) as number };
    for (const key of ["operator", "cell 1"] as const) {
      const { reconciliation: run, ...rest } = (await read(api, "1", key)) ?? { reconciliation: undefined };
      expect(rest).toEqual({ ...shown, reconciliation: undefined });
      expect(run?.ended_ago_ms).toBeGreaterThanOrEqual(60_000);
    }
    const { cells } = await api.json<{ cells: Cell[] }>(200, "GET", "/v1/admin/cells", {});
    expect(cells.map(({ status: its }) => its?.sdk.version)).toEqual(["0.1.0", undefined]);
    expect(cells[1]?.status).toBeNull();
  });

  test("[U3] a report that comes too early stores nothing, and learns when to come again", async () => {
    const api = await opened();
    await report(api, { sdk });
    const refused = await api.problem(429, "PUT", path("1"), {
      key: "cell 1",
      body: { sdk: { ...sdk, version: "9" } },
    });
    expect(refused).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      reason: "STATUS_TOO_EARLY",
      retryable: true,
    });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(5);
    expect((await read(api))?.sdk.version).toBe("0.1.0");
    // Each cell has its own limit.
    await report(api, { sdk }, "2");
  });

  describe("[U1] decides nothing", () => {
    test("a frozen cell may report, and a lease is decided whatever the status says", async () => {
      const api = await opened();
      const { uuid } = await begun(api);
      await api.json(200, "POST", "/v1/admin/cells/1/freeze");
      await report(api, { sdk, reconciliation: { outcome: "done", stale_leases: 99 } });
      await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
    });

    test("only the cell itself reports", async () => {
      const api = await opened();
      for (const key of ["operator", "router", "cell 2"] as const)
        await api.problem(403, "PUT", path("1"), { key, body: { sdk } });
      await api.problem(403, "GET", path("1"), { key: "cell 2" });
      expect(await api.problem(404, "GET", path("9"))).toMatchObject({ reason: "CELL_UNKNOWN" });
      expect(await read(api)).toBeNull();
    });
  });
}
