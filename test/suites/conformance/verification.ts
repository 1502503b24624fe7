/** Tests of verification slots. */
import { v4 as newUuid } from "uuid";
import { describe, expect, test } from "vitest";
import type { Coordinator, Open } from "./coordinator.ts";

interface Taken {
  slot: { uuid: string; cell_id: string; expires_at: string; expires_in_ms: number };
}

export function verificationSuite(open: Open): void {
  const path = (cell: string, uuid: string): string => `/v1/cells/${cell}/verification-slots/${uuid}`;
  const opened = (): Promise<Coordinator> => open({ cells: ["1", "2", "3"] });
  const take = (api: Coordinator, cell: string, uuid: string): Promise<Taken> =>
    api.json(200, "PUT", path(cell, uuid), { key: `cell ${cell}` });
  const full = (api: Coordinator, cell: string, uuid: string) =>
    api.problem(429, "PUT", path(cell, uuid), { key: `cell ${cell}` });
  const release = (api: Coordinator, cell: string, uuid: string): Promise<{ released: boolean }> =>
    api.json(200, "POST", `${path(cell, uuid)}/release`, { key: `cell ${cell}` });

  describe("verification slots", () => {
    test("[A3] two cells have one, and a third waits until one is released", async () => {
      const api = await opened();
      const [first, second, third] = [newUuid(), newUuid(), newUuid()];
      const { slot } = await take(api, "1", first.toUpperCase());
      expect(slot).toMatchObject({ uuid: first, cell_id: "1", expires_in_ms: 60_000 });
      expect(new Date(slot.expires_at).toISOString()).toBe(slot.expires_at);
      await take(api, "2", second);
      const refused = await full(api, "3", third);
      expect(refused).toMatchObject({
        code: "RESOURCE_EXHAUSTED",
        reason: "NO_VERIFICATION_SLOT",
        retryable: true,
      });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
      expect(await release(api, "1", first)).toEqual({ released: true });
      expect(await release(api, "1", first)).toEqual({ released: false });
      await take(api, "3", third);
      expect(await full(api, "1", first)).toMatchObject({ reason: "NO_VERIFICATION_SLOT" });
    });

    test("[A3] the same run renews its slot, and another run of the cell is refused", async () => {
      const api = await opened();
      const uuid = newUuid();
      const { slot } = await take(api, "1", uuid);
      const again = (await take(api, "1", uuid)).slot;
      expect(Date.parse(again.expires_at)).toBeGreaterThanOrEqual(Date.parse(slot.expires_at));
      expect(await full(api, "1", newUuid())).toMatchObject({ reason: "NO_VERIFICATION_SLOT" });
      expect(await release(api, "1", newUuid())).toEqual({ released: false });
    });

    test("[A3] a frozen cell may have one, and an operator may take one for it", async () => {
      const api = await opened();
      await api.json(200, "POST", "/v1/admin/cells/1/freeze");
      const uuid = newUuid();
      await take(api, "1", uuid);
      await api.json(200, "PUT", path("1", uuid));
      expect(await api.json(200, "POST", `${path("1", uuid)}/release`)).toEqual({ released: true });
    });

    test("[A1] are refused with a revoked key", async () => {
      const api = await opened();
      const minted = await api.json<{ id: string; key: `lhk_${string}` }>(201, "POST", "/v1/admin/keys", {
        body: { role: "cell", cell_id: "1" },
      });
      await api.json(200, "PUT", path("1", newUuid()), { key: minted.key });
      await api.json(200, "POST", `/v1/admin/keys/${minted.id}/revoke`);
      expect(await api.problem(401, "PUT", path("1", newUuid()), { key: minted.key })).toMatchObject({
        reason: "KEY_REVOKED",
      });
    });

    test("an operator gets NOT_FOUND for a cell that is not registered", async () => {
      const api = await opened();
      expect(await api.problem(404, "PUT", path("9", newUuid()))).toMatchObject({ reason: "CELL_UNKNOWN" });
      expect(await api.problem(404, "POST", `${path("9", newUuid())}/release`)).toMatchObject({
        reason: "CELL_UNKNOWN",
      });
    });
  });
}
