/** Tests of the list of who owned a name, and of its erasure. */
import { v4 as newUuid } from "uuid";
import { beforeAll, expect, test } from "vitest";
import type * as z from "zod";
import type { historyRoutes } from "../../../src/coordinator/capabilities/past-claims/edge/routes.ts";
import type { Coordinator, Open } from "./coordinator.ts";
import { claim, freshName } from "./leases.ts";

type Page = z.infer<(typeof historyRoutes)["listHistory"]["responses"][200]["schema"]>;
type Erased = z.infer<(typeof historyRoutes)["eraseHistory"]["responses"][200]["schema"]>;

export function nameHistorySuite(open: Open): void {
  let api: Coordinator;

  beforeAll(async () => {
    api = await open();
  });

  const change = async (cell: string, body: object): Promise<string> => {
    const uuid = newUuid();
    const [path, key] = [`/v1/cells/${cell}/leases/${uuid}`, `cell ${cell}`] as const;
    await api.json(201, "PUT", path, { key, body });
    await api.json(200, "POST", `${path}/commit`, { key });
    return uuid;
  };

  const list = (value: string, query = ""): Promise<Page> =>
    api.json(200, "GET", `/v1/admin/history/ROUTES/${value}${query}`, {});

  const erase = (value: string, dryRun: boolean): Promise<Erased> => {
    const body = { bucket: { type: "ROUTES", value }, reason: "request 4711", dry_run: dryRun };
    return api.json(200, "POST", "/v1/admin/history/erase", { body });
  };

  /** Cell 1 takes a name with a slash, respells it and gives it up, and cell 2 takes it. */
  async function moved(): Promise<{ value: string; leases: string[] }> {
    const value = `group/${freshName()}`;
    const leases = [
      await change("1", { creates: [claim(value)] }),
      await change("1", { replaces: [claim(value.toUpperCase(), 43)] }),
      await change("1", { destroys: [{ bucket: { type: "ROUTES", value } }] }),
      await change("2", { creates: [claim(value)] }),
    ];
    return { value, leases };
  }

  test("[K1] [K2] shows who had a name, the latest first, in any spelling", async () => {
    const { value, leases } = await moved();
    const { periods, complete_since: since, next_page_token: token } = await list(value.toUpperCase());
    expect({ since, token }).toEqual({ since: null, token: "" });
    const subject = { type: "NAMESPACE", id: "7" };
    expect(periods).toMatchObject([
      { cell_id: "2", value, subject, until: null, ended_by: null },
      {
        cell_id: "1",
        value: value.toUpperCase(),
        source: { type: "RAILS_TABLE_ROUTES", id: "43" },
        ended_by: { lease_uuid: leases[2], kind: "destroy" },
      },
      { cell_id: "1", value, ended_by: { lease_uuid: leases[1], kind: "replace" } },
    ]);
    expect(periods[2]?.until).toBe(periods[1]?.from);
    const epochs = periods.map(({ epoch }) => epoch);
    expect(epochs.toSorted((a, b) => b - a)).toEqual(epochs);
  });

  test("[K2] finds the period of a moment, and none before the first one", async () => {
    const { value } = await moved();
    const { periods } = await list(value);
    const now = new Date(Date.parse(periods[0]?.from ?? "") + 3_600_000).toISOString();
    expect((await list(value, `?at=${now}`)).periods).toEqual([periods[0]]);
    const first = periods[2];
    expect((await list(value, `?at=${first?.from}`)).periods).toEqual(
      periods.filter(
        ({ from, until }) => from <= (first?.from ?? "") && (until ?? "9") > (first?.from ?? ""),
      ),
    );
    expect((await list(value, "?at=2020-01-01T00:00:00Z")).periods).toEqual([]);
    expect(await list(freshName())).toEqual({ periods: [], complete_since: null, next_page_token: "" });
  });

  test("[K2] comes in pages that leave nothing out and repeat nothing", async () => {
    const { value } = await moved();
    const seen: Page["periods"] = [];
    let token = "";
    do {
      const page = await list(value, `?page_size=1&page_token=${token}`);
      seen.push(...page.periods);
      token = page.next_page_token;
    } while (token !== "");
    expect(seen).toEqual((await list(value)).periods);
  });

  test("[K5] an operator erases what has ended, and the claim stays", async () => {
    const { value } = await moved();
    const before = await list(value);
    expect(await erase(value, true)).toMatchObject({ erased: 2, has_more: false, dry_run: true });
    expect(await list(value)).toEqual(before);
    expect(await erase(value.toUpperCase(), false)).toMatchObject({
      erased: 2,
      has_more: false,
      dry_run: false,
    });
    expect(await list(value)).toEqual({ ...before, periods: before.periods.slice(0, 1) });
    expect(await erase(value, false)).toMatchObject({ erased: 0 });
    await api.cron();
    const { text } = await api.send("GET", "/v1/admin/audit?action=erase_history");
    expect(JSON.parse(text)).toMatchObject({
      entries: [{ reason: "request 4711", before: { periods: 2 }, after: { periods: 0 } }],
    });
    expect(text).not.toContain(value);
  });

  test("only operators and viewers see it, and only operators erase", async () => {
    const viewer = await api.json<{ key: `lhk_${string}` }>(201, "POST", "/v1/admin/keys", {
      body: { role: "viewer" },
    });
    await api.json(200, "GET", "/v1/admin/history/ROUTES/a", viewer);
    await api.problem(403, "GET", "/v1/admin/history/ROUTES/a", { key: "cell 1" });
    const body = { bucket: { type: "ROUTES", value: "a" }, reason: "no", dry_run: true };
    await api.problem(403, "POST", "/v1/admin/history/erase", { ...viewer, body });
  });
}
