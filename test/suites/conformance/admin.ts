/** Tests of the calls of operators: cells and keys. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import type * as z from "zod";
import type * as schemas from "../../../src/coordinator/api/contract/schemas.ts";
import type { Sent } from "./client.ts";
import { begun, claim, freshName } from "./leases.ts";
import type { Coordinator, Open } from "./coordinator.ts";

type Minted = z.infer<typeof schemas.mintedKey> & { key: `lhk_${string}` };
type Listed = z.infer<typeof schemas.key>;
type Cell = z.infer<typeof schemas.cell>;

const isRevoked = { status: 401, code: "UNAUTHENTICATED", reason: "KEY_REVOKED" };

/** Two changes in one millisecond could show the same time. */
const nextMillisecond = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2));

export function adminSuite(open: Open): void {
  let api: Coordinator;

  beforeAll(async () => {
    api = await open();
  });

  const mint = async (body: unknown): Promise<Minted> => api.json(201, "POST", "/v1/admin/keys", { body });
  const revoke = (id: string, body?: unknown): Promise<{ key: Listed }> =>
    api.json(200, "POST", `/v1/admin/keys/${id}/revoke`, body === undefined ? {} : { body });
  const listed = async (): Promise<Listed[]> =>
    (await api.json<{ keys: Listed[] }>(200, "GET", "/v1/admin/keys?page_size=1000", {})).keys;
  const listsLeases = (key: Sent["key"]) => api.send("GET", "/v1/cells/1/leases", { key });

  describe("cells", () => {
    const cells = async (): Promise<Cell[]> =>
      (await api.json<{ cells: Cell[] }>(200, "GET", "/v1/admin/cells", {})).cells;

    test("are listed with their outstanding leases and unapplied decisions", async () => {
      const before = (await cells())[0]?.outstanding_leases ?? 0;
      const { uuid } = await begun(api);
      expect(await cells()).toMatchObject([
        { cell_id: "1", state: "ACTIVE", outstanding_leases: before + 1 },
        { cell_id: "2", state: "ACTIVE", outstanding_leases: 0, unapplied_decisions: 0 },
      ]);
      await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/rollback`, { key: "cell 1" });
      expect((await cells())[0]?.outstanding_leases).toBe(before);
    });

    test("[A2] can be changed in part, and the change is shown", async () => {
      const { cell } = await api.json<{ cell: Cell }>(200, "PATCH", "/v1/admin/cells/2", {
        body: { name: "Second" },
      });
      expect(cell).toMatchObject({ cell_id: "2", name: "Second" });
      expect((await cells())[1]).toMatchObject({ name: "Second", address: cell.address });
    });

    test("show when their name, address or state changed last", async () => {
      const updatedAt = async (): Promise<number> => Date.parse((await cells())[1]?.updated_at ?? "");
      const steps: [method: string, path: string, body?: unknown][] = [
        ["POST", "/v1/admin/cells/2/freeze"],
        ["PATCH", "/v1/admin/cells/2", { address: "https://frozen.example" }],
        ["POST", "/v1/admin/cells/2/unfreeze"],
      ];
      for (const [method, path, body] of steps) {
        const before = await updatedAt();
        await nextMillisecond();
        const { cell } = await api.json<{ cell: Cell }>(200, method, path, { body });
        expect(Date.parse(cell.updated_at)).toBeGreaterThan(before);
        expect(await updatedAt()).toBe(Date.parse(cell.updated_at));
      }
    });

    test("cannot be registered twice", async () => {
      const body = { cell_id: 1, name: "x", address: "https://x.example" };
      expect(await api.problem(409, "POST", "/v1/admin/cells", { body })).toMatchObject({
        code: "ALREADY_EXISTS",
        reason: "CELL_EXISTS",
      });
    });

    test("that are not registered can be neither frozen nor changed", async () => {
      const unknown = { code: "NOT_FOUND", reason: "CELL_UNKNOWN" };
      expect(await api.problem(404, "POST", "/v1/admin/cells/77/freeze", {})).toMatchObject(unknown);
      expect(await api.problem(404, "PATCH", "/v1/admin/cells/77", { body: { name: "x" } })).toMatchObject(
        unknown,
      );
    });
  });

  describe("keys", () => {
    test("have the role that they were made for, and are not stored", async () => {
      const key = await mint({ role: "cell", cell_id: "1", note: "for a test" });
      expect(key).toMatchObject({ role: "cell", cell_id: "1", note: "for a test" });
      expect(Date.parse(key.expires_at) - Date.parse(key.created_at)).toBe(90 * 86_400_000);
      expect((await listsLeases(key.key)).status).toBe(200);
      expect((await api.send("GET", `/v1/records/ROUTES/${freshName()}`, { key: key.key })).status).toBe(404);
      await api.problem(403, "GET", "/v1/cells/2/leases", { key: key.key });
      const keys = await listed();
      expect(keys.filter(({ id }) => id === key.id)).toMatchObject([
        { role: "cell", cell_id: "1", revoked_at: null },
      ]);
      expect(JSON.stringify(keys)).not.toContain("lhk_");
    });

    test("are not minted for a cell that is not registered", async () => {
      const before = await listed();
      expect(
        await api.problem(404, "POST", "/v1/admin/keys", { body: { role: "cell", cell_id: "77" } }),
      ).toMatchObject({ reason: "CELL_UNKNOWN" });
      expect(await listed()).toEqual(before);
    });

    test("cannot have the note that marks keys minted elsewhere", async () => {
      const body = { role: "cell", cell_id: "1", note: "not made here" };
      expect(await api.problem(400, "POST", "/v1/admin/keys", { body })).toMatchObject({ field: "note" });
    });
  });

  describe("revoking", () => {
    test("[A1] a cell's key is refused on all paths of the cell; other keys stay valid", async () => {
      const [bad, good] = [
        await mint({ role: "cell", cell_id: "1" }),
        await mint({ role: "cell", cell_id: "1" }),
      ];
      expect((await listsLeases(bad.key)).status).toBe(200);
      const { key } = await revoke(bad.id);
      expect(key).toMatchObject({ id: bad.id, revoked_at: expect.any(String) });

      const { uuid } = await begun(api);
      const paths: [string, string, unknown?][] = [
        ["GET", "/v1/cells/1/leases"],
        ["GET", `/v1/cells/1/leases/${uuid}`],
        ["GET", "/v1/cells/1/records?source_type=RAILS_TABLE_ROUTES"],
        ["PUT", `/v1/cells/1/leases/${newUuid()}`, { creates: [claim(freshName())] }],
        ["POST", "/v1/cells/1/leases", { creates: [claim(freshName())] }],
        ["POST", `/v1/cells/1/leases/${uuid}/commit`, {}],
        ["POST", `/v1/cells/1/leases/${uuid}/rollback`, {}],
      ];
      for (const [method, path, body] of paths)
        expect(await api.problem(401, method, path, { key: bad.key, body })).toMatchObject(isRevoked);
      expect((await listsLeases(good.key)).status).toBe(200);
      expect(
        (
          await api.json<{ lease: { state: string } }>(200, "GET", `/v1/cells/1/leases/${uuid}`, {
            key: good.key,
          })
        ).lease.state,
      ).toBe("GRANTED");
    });

    test("can be repeated, and the first revocation time is kept", async () => {
      const { id } = await mint({ role: "router" });
      const first = await revoke(id);
      expect(await revoke(id)).toEqual(first);
    });

    test("a key can revoke itself, and is refused afterwards", async () => {
      const { id, key } = await mint({ role: "operator" });
      await api.json(200, "POST", `/v1/admin/keys/${id}/revoke`, { key });
      await api.problem(401, "GET", "/v1/admin/keys", { key });
    });

    test("with a cell that is not the key's is refused", async () => {
      const { id } = await mint({ role: "cell", cell_id: "1" });
      expect(
        await api.problem(400, "POST", `/v1/admin/keys/${id}/revoke`, { body: { cell_id: "2" } }),
      ).toMatchObject({ field: "cell_id" });
      await api.problem(404, "POST", `/v1/admin/keys/${newUuid()}/revoke`, { body: { cell_id: "77" } });
    });
  });
}
