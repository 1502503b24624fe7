/** Tests of the list of what operators changed. */
import { beforeAll, expect, test } from "vitest";
import type * as z from "zod";
import type { auditRoutes } from "../../../src/coordinator/capabilities/audit/edge/routes.ts";
import { begun } from "./leases.ts";
import type { Coordinator, Open } from "./coordinator.ts";

type Page = z.infer<(typeof auditRoutes)["listAudit"]["responses"][200]["schema"]>;

export function auditSuite(open: Open): void {
  let api: Coordinator;

  beforeAll(async () => {
    api = await open();
  });

  const list = (query = ""): Promise<Page> => api.json(200, "GET", `/v1/admin/audit${query}`, {});

  test("[O1] shows who changed a cell, why, and what it was before", async () => {
    await api.cron();
    const body = { name: "Moved", address: "https://moved.example", reason: "it has moved" };
    const { cell } = await api.json<{ cell: object }>(200, "PATCH", "/v1/admin/cells/2", { body });
    expect(cell).toMatchObject({ name: "Moved" });
    // The cron has not copied it yet.
    expect((await list("?action=change_cell")).entries).toEqual([]);
    await api.cron();
    const { entries, complete_through: through } = await list("?action=change_cell&cell=2");
    expect(entries).toMatchObject([
      {
        action: "change_cell",
        cell_id: "2",
        target: "2",
        part: "directory",
        reason: "it has moved",
        before: { name: expect.not.stringMatching("Moved") },
        after: { name: "Moved", address: "https://moved.example" },
      },
    ]);
    expect(Date.parse(through ?? "")).toBeGreaterThanOrEqual(Date.parse(entries[0]?.at ?? ""));
  });

  test("[O1] shows a key by its id and its note, and no secret of it", async () => {
    const minted = await api.json<{ id: string; key: `lhk_${string}` }>(201, "POST", "/v1/admin/keys", {
      body: { role: "operator", note: "Ada's key", reason: "Ada is new" },
    });
    const second = await api.json<{ id: string }>(201, "POST", "/v1/admin/keys", {
      key: minted.key,
      body: { role: "router" },
    });
    await api.json(200, "POST", `/v1/admin/keys/${second.id}/revoke`, {
      key: minted.key,
      body: { reason: "it was a test" },
    });
    await api.cron();
    const { entries } = await list(`?key_id=${minted.id}`);
    const seen = entries.map(({ action, target, key_note: note }) => `${action} ${target} ${note}`);
    expect(seen.toSorted()).toEqual([`mint_key ${second.id} Ada's key`, `revoke_key ${second.id} Ada's key`]);
    const { entries: made } = await list(`?target=${minted.id}`);
    expect(made).toMatchObject([
      {
        action: "mint_key",
        reason: "Ada is new",
        before: null,
        after: { role: "operator", note: "Ada's key", is_revoked: false, expires_at: expect.any(String) },
      },
    ]);
    expect(JSON.stringify([entries, made])).not.toContain(minted.key.slice(4));
  });

  test("[O1] [C5] shows who froze a cell and who decided a lease, and the lease names the key", async () => {
    const { id, key } = await api.json<{ id: string; key: `lhk_${string}` }>(201, "POST", "/v1/admin/keys", {
      body: { role: "operator", note: "Grace's key" },
    });
    const { uuid } = await begun(api);
    await api.json(200, "POST", "/v1/admin/cells/2/freeze", { key, body: { reason: "it moves away" } });
    await api.json(200, "POST", "/v1/admin/cells/2/unfreeze", { key });
    const path = `/v1/cells/1/leases/${uuid}`;
    const { lease } = await api.json<{ lease: object }>(200, "POST", `${path}/rollback`, {
      key,
      body: { reason: "its cell is gone" },
    });
    expect(lease).toMatchObject({ decided_by: "operator", decided_by_key: id, reason: "its cell is gone" });
    expect(await api.json(200, "GET", path, { key: "cell 1" })).toMatchObject({
      lease: { decided_by_key: id },
    });
    await api.cron();
    const { entries } = await list(`?key_id=${id}`);
    const seen = entries.map(({ action, part, target, reason }) => `${action} ${part} ${target} ${reason}`);
    expect(seen.toSorted()).toEqual([
      "freeze_cell ledger-2 2 it moves away",
      `rollback_lease ledger-1 ${uuid} its cell is gone`,
      "unfreeze_cell ledger-2 2 null",
    ]);
    expect((await list(`?target=${uuid}`)).entries).toMatchObject([
      { before: { state: "GRANTED", creates: 1 }, after: { state: "ROLLED_BACK" }, key_note: "Grace's key" },
    ]);
  });

  test("comes in pages that leave nothing out and repeat nothing", async () => {
    const all = (await list()).entries.map(({ id }) => id);
    expect(all.length).toBeGreaterThan(3);
    const seen: string[] = [];
    let token = "";
    do {
      const page = await list(`?page_size=2&page_token=${token}`);
      seen.push(...page.entries.map(({ id }) => id));
      token = page.next_page_token;
    } while (token !== "");
    expect(seen).toEqual(all);
    await api.problem(400, "GET", `/v1/admin/audit?cell=1&page_token=${token}x`, {});
  });
}
