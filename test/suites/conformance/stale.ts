/** Tests of the listing of stale leases. */
import { beforeAll, expect, test } from "vitest";
import { begun } from "./leases.ts";
import type { Coordinator, Open } from "./coordinator.ts";

interface StalePage {
  leases: { uuid: string; confirmed: boolean; state: string; cell_id: string }[];
  last_pulled_at: string | null;
  next_page_token: string;
}

export function staleSuite(open: Open): void {
  let api: Coordinator;

  beforeAll(async () => {
    api = await open();
  });

  const list = (query = ""): Promise<StalePage> =>
    api.json(200, "GET", `/v1/leases/stale?older_than_s=0${query}`, {});

  test("before the first run of the cron the listing is empty, and says so", async () => {
    expect(await list()).toEqual({ leases: [], last_pulled_at: null, next_page_token: "" });
  });

  test("lists granted leases of all cells, oldest first, in pages, without decided ones", async () => {
    const leases = [await begun(api), await begun(api), await begun(api)].map(({ uuid }) => uuid);
    await api.cron();
    await api.json(200, "POST", `/v1/cells/1/leases/${leases[1]}/rollback`, { key: "cell 1" });
    const first = await list("&page_size=1");
    expect(first.leases).toMatchObject([
      { uuid: leases[0], confirmed: true, state: "GRANTED", cell_id: "1" },
    ]);
    expect(first.last_pulled_at).not.toBeNull();
    const second = await list(`&page_size=10&page_token=${first.next_page_token}`);
    expect(second.leases.map(({ uuid }) => uuid)).toEqual([leases[2]]);
    expect(second.next_page_token).toBe("");
    expect((await list("&cell=2")).leases).toEqual([]);
    await api.problem(404, "GET", "/v1/leases/stale?cell=999", {});
    expect((await api.json<StalePage>(200, "GET", "/v1/leases/stale", {})).leases).toEqual([]);
  });

  test("a token is bound to the requested age", async () => {
    const { next_page_token: token } = await list("&page_size=1");
    await api.problem(400, "GET", `/v1/leases/stale?older_than_s=1&page_token=${token}`, {});
    await api.problem(400, "GET", `/v1/leases/stale?page_token=${token}`, {});
  });
}
