/** Tests of listings in pages. */
import { beforeAll, describe, expect, test } from "vitest";
import { decodeBase64Url, encodeBase64Url } from "../../../src/coordinator/auth/base64url.ts";
import type { Client, Sent } from "./client.ts";
import { begun } from "./leases.ts";
import type { Open } from "./coordinator.ts";

interface LeasePage {
  leases: { uuid: string; created_at: string; counts: unknown }[];
  next_page_token: string;
}

export function pageSuite(open: Open): void {
  let api: Client;
  const begunOnes: string[] = [];

  beforeAll(async () => {
    api = await open({ cells: ["1", "2", "10", "9"] });
    for (let count = 0; count < 5; count += 1) begunOnes.push((await begun(api)).uuid);
  });

  const list = (query: string, key: Sent["key"] = "cell 1"): Promise<LeasePage> =>
    api.json(200, "GET", `/v1/cells/1/leases?${query}`, { key });

  test("[R1] a decided lease leaves the listing, and a new one is added at its end", async () => {
    const { next_page_token: token } = await list("page_size=5");
    expect(token).toBe("");
    const first = await list("page_size=2");
    const late = await begun(api);
    const second = await list(`page_size=100&page_token=${first.next_page_token}`);
    expect(second.leases.map(({ uuid }) => uuid)).toEqual([...begunOnes.slice(2), late.uuid]);
    await api.json(200, "POST", `/v1/cells/1/leases/${late.uuid}/rollback`, { key: "cell 1" });
    expect((await list("")).leases.map(({ uuid }) => uuid)).toEqual(begunOnes);
  });

  test("created_after is inclusive, to the millisecond, with any offset", async () => {
    const { leases } = await list("");
    const third = leases[2]?.created_at ?? "";
    const since = async (time: string): Promise<string[]> =>
      (await list(`created_after=${encodeURIComponent(time)}`)).leases.map(({ created_at: at }) => at);
    const expected = (ms: number): string[] =>
      leases.map(({ created_at: at }) => at).filter((at) => Date.parse(at) >= ms);
    const ms = Date.parse(third);
    expect(await since(third)).toEqual(expected(ms));
    expect(await since(new Date(ms + 1).toISOString())).toEqual(expected(ms + 1));
    expect(await since(third.replace("Z", "000Z"))).toEqual(expected(ms));
    expect(await since(third.replace("Z", "001Z"))).toEqual(expected(ms + 1));
    const offset = new Date(ms + 2 * 3_600_000).toISOString().replace("Z", "+02:00");
    expect(await since(offset)).toEqual(expected(ms));
    expect(await since("1969-12-31T23:59:59Z")).toHaveLength(5);
    expect(await since("9999-12-31T23:59:59Z")).toEqual([]);
  });

  describe("a token", () => {
    let token = "";

    beforeAll(async () => {
      token = (await list("page_size=2")).next_page_token;
    });

    const refused = async (
      query: string,
      key: Sent["key"] = "cell 1",
      path = "/v1/cells/1/leases",
    ): Promise<void> => {
      expect(await api.problem(400, "GET", `${path}?${query}`, { key })).toMatchObject({
        code: "INVALID_ARGUMENT",
        field: "page_token",
      });
    };

    test("does not depend on the page size", async () =>
      expect((await list(`page_size=1&page_token=${token}`)).leases).toHaveLength(1));

    test("is bound to its query", () => refused(`page_token=${token}&created_after=2020-01-01T00:00:00Z`));

    test("is bound to its path", () => refused(`page_token=${token}`, "cell 2", "/v1/cells/2/leases"));

    test("is bound to its route", async () => {
      await refused(`page_token=${token}&source_type=RAILS_TABLE_ROUTES`, "cell 1", "/v1/cells/1/records");
      // These two have no parameters, so only the route differs.
      const page = await api.json<LeasePage>(200, "GET", "/v1/admin/cells?page_size=1", {});
      await refused(`page_token=${page.next_page_token}`, "operator", "/v1/admin/keys");
    });

    test("is bound to its principal", () => refused(`page_token=${token}`, "operator"));

    test("is refused if any character is changed, missing or added", async () => {
      for (let index = 0; index < token.length; index += 1) {
        const other = token[index] === "A" ? "B" : "A";
        await refused(`page_token=${token.slice(0, index)}${other}${token.slice(index + 1)}`);
      }
      for (const spoilt of [
        token.slice(0, -1),
        token.slice(1),
        `${token}A`,
        `${token}=`,
        `${token}%00`,
        token + token,
        "A".repeat(5_000),
      ])
        await refused(`page_token=${spoilt}`);
    });

    test("with another position is refused", async () => {
      const bytes = decodeBase64Url(token) ?? new Uint8Array();
      const position = new TextEncoder().encode("0");
      await refused(`page_token=${encodeBase64Url(Uint8Array.from([...bytes.slice(0, 32), ...position]))}`);
    });
  });

  test("records, cells and keys are paged the same way", async () => {
    interface Cells {
      cells: { cell_id: string }[];
      next_page_token: string;
    }
    const first: Cells = await api.json(200, "GET", "/v1/admin/cells?page_size=3", {});
    expect(first.cells.map(({ cell_id: id }) => id)).toEqual(["1", "2", "9"]);
    const second: Cells = await api.json(
      200,
      "GET",
      `/v1/admin/cells?page_size=3&page_token=${first.next_page_token}`,
      {},
    );
    expect(second.cells.map(({ cell_id: id }) => id)).toEqual(["10"]);
    expect(second.next_page_token).toBe("");

    const made: string[] = [];
    for (let count = 0; count < 3; count += 1)
      made.push(
        (await api.json<{ id: string }>(201, "POST", "/v1/admin/keys", { body: { role: "router" } })).id,
      );
    const listed: string[] = [];
    let token = "";
    do {
      const page = await api.json<{ keys: { id: string }[]; next_page_token: string }>(
        200,
        "GET",
        `/v1/admin/keys?page_size=2&page_token=${token}`,
        {},
      );
      listed.push(...page.keys.map(({ id }) => id));
      token = page.next_page_token;
    } while (token !== "");
    expect(listed).toEqual(made);
  });
}
