/** Tests of the search for the names of a subject. */
import { v4 as newUuid } from "uuid";
import { beforeAll, expect, test, vi } from "vitest";
import type * as z from "zod";
import type { recordRoutes } from "../../../src/coordinator/capabilities/records/edge/routes.ts";
import type { Coordinator, Open } from "./coordinator.ts";
import { freshName } from "./leases.ts";

type Page = z.infer<(typeof recordRoutes)["searchRecords"]["responses"][200]["schema"]>;
type Found = Page["records"];

export function searchSuite(open: Open): void {
  let api: Coordinator;
  const subject = { type: "NAMESPACE", id: `search ${newUuid()}` };
  const names = Array.from({ length: 5 }, freshName);
  const [first = "", second = ""] = names;

  const begin = async (cell: string, body: object): Promise<string> => {
    const path = `/v1/cells/${cell}/leases/${newUuid()}`;
    await api.json(201, "PUT", path, { key: `cell ${cell}`, body });
    return path;
  };
  const commit = (cell: string, path: string) =>
    api.json(200, "POST", `${path}/commit`, { key: `cell ${cell}` });
  const bucket = (value: string): object => ({ type: "ROUTES", value });
  const claimOf = (value: string, of: object = subject): object => ({
    bucket: bucket(value),
    subject: of,
    source: { type: "RAILS_TABLE_ROUTES", id: value },
  });

  async function search(id: string, size = 100): Promise<Found> {
    const found: Found = [];
    let token = "";
    do {
      const query = { subject_type: "NAMESPACE", subject_id: id, page_size: String(size), page_token: token };
      const path = `/v1/admin/records?${String(new URLSearchParams(query))}`;
      const page = await api.json<Page>(200, "GET", path, {});
      expect(page.records.length).toBeLessThanOrEqual(size);
      found.push(...page.records);
      token = page.next_page_token;
    } while (token !== "");
    return found;
  }
  const namesIn = (found: Found): string[] => found.map(({ bucket: { value } }) => value).toSorted();

  beforeAll(async () => {
    api = await open();
    const others = [
      claimOf(freshName(), { type: "NAMESPACE", id: "9" }),
      claimOf(freshName(), { type: "USER", id: subject.id }),
    ];
    await commit(
      "1",
      await begin("1", { creates: [...names.slice(0, 3).map((name) => claimOf(name)), ...others] }),
    );
    await commit("2", await begin("2", { creates: names.slice(3).map((name) => claimOf(name)) }));
    await vi.waitUntil(async () => (await search(subject.id)).length >= names.length);
  });

  test("finds the names of all cells, whatever the size of the pages", async () => {
    const found = await search(subject.id);
    expect(namesIn(found)).toEqual(names.toSorted());
    expect(new Set(found.map(({ cell_id: cell }) => cell))).toEqual(new Set(["1", "2"]));
    expect(found.every(({ subject: { type, id } }) => type === "NAMESPACE" && id === subject.id)).toBe(true);
    expect(namesIn(await search(subject.id, 1))).toEqual(names.toSorted());
    expect(await search("nobody")).toEqual([]);
  });

  test("[R2] shows of a held name what a lookup shows", async () => {
    const path = await begin("1", {
      destroys: [{ bucket: bucket(first) }],
      replaces: [claimOf(second, { type: "NAMESPACE", id: "9" })],
    });
    const during = await search(subject.id);
    expect(namesIn(during)).toEqual(names.toSorted());
    expect(during.find(({ bucket: { value } }) => value === first)?.status).toBe("LEASE_DESTROYING");
    await commit("1", path);
    expect(namesIn(await search(subject.id))).toEqual(names.slice(2).toSorted());
  });

  test("is not for cells and routers", async () => {
    for (const key of ["cell 1", "router"] as const)
      await api.json(403, "GET", "/v1/admin/records?subject_type=NAMESPACE&subject_id=7", { key });
  });
}
