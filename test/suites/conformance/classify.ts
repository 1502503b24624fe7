/** Tests of `POST /v1/classify`, in the JSON of GitLab's router. */
import { beforeAll, expect, test } from "vitest";
import type { Client } from "./client.ts";
import type { Open } from "./coordinator.ts";
import { addressOf, applied, begun, committed, freshName } from "./leases.ts";

export function classifySuite(open: Open): void {
  let api: Client;

  beforeAll(async () => {
    api = await open();
  });

  const proxyTo = (cell: string, claim?: object): object => ({
    action: "PROXY",
    proxy: { address: new URL(addressOf(cell)).host },
    ...(claim === undefined ? {} : { matched_claim: claim }),
  });

  const classify = (body: object): Promise<object> =>
    api.json(200, "POST", "/v1/classify", { key: "router", body });

  /** A name of cell 1 on which no lease has a hold. */
  async function owned(): Promise<string> {
    const { value } = await committed(api);
    await applied(api, value);
    return value;
  }

  test("case 18: the first claim that exists decides, and is answered as it was sent", async () => {
    const value = await owned();
    const claims = [
      { route: freshName() },
      { type: "ROUTES", value: value.toUpperCase() },
      { bucket: "ROUTES", value },
    ];
    expect(await classify({ claims })).toEqual(proxyTo("1", claims[1]));
    expect(await classify({ claims: claims.toReversed() })).toEqual(proxyTo("1", claims[2]));
    const single = { route: value };
    expect(await classify({ type: "UNSPECIFIED", claims: [single] })).toEqual(proxyTo("1", single));
  });

  test("case 18: the single claim of older routers counts if there is no list", async () => {
    const [one, two] = [await owned(), await owned()];
    expect(await classify({ claim: { route: one } })).toEqual(proxyTo("1", { route: one }));
    expect(await classify({ claim: { route: one }, claims: [] })).toEqual(proxyTo("1", { route: one }));
    expect(await classify({ claim: { route: one }, claims: [{ route: two }] })).toEqual(
      proxyTo("1", { route: two }),
    );
  });

  test("a bucket type with a value is a claim too", async () => {
    const value = await owned();
    expect(await classify({ type: "ROUTES", value })).toEqual(proxyTo("1"));
  });

  test("case 18: a request without a type and claims is refused like by the Topology Service", async () => {
    for (const body of [{}, { type: "UNSPECIFIED" }, { claims: [] }])
      expect(await api.problem(400, "POST", "/v1/classify", { key: "router", body })).toMatchObject({
        code: "INVALID_ARGUMENT",
        field: "type",
        message: 'invalid type: "UNSPECIFIED"',
      });
  });

  test("fields of a newer router are ignored, but not those of a claim", async () => {
    const value = await owned();
    const newer = { surprise: { of: ["any", "kind"] }, organizationId: "7" };
    expect(await classify({ claims: [{ route: value }], ...newer })).toEqual(proxyTo("1", { route: value }));
    expect(await classify({ type: "CELL_ID", value: "2", ...newer })).toEqual(proxyTo("2"));
    const refuse = (body: object) => api.problem(400, "POST", "/v1/classify", { key: "router", body });
    expect(await refuse(newer)).toMatchObject({ field: "type", message: 'invalid type: "UNSPECIFIED"' });
    const claims = [{ claim_of_tomorrow: "x" }, { route: value }];
    expect(await refuse({ claims })).toMatchObject({ field: "claims[0].claim_of_tomorrow" });
  });

  test("finds cells by session prefix, by id, and the first one, with the older names too", async () => {
    for (const type of ["SESSION_PREFIX", "SessionPrefix"])
      expect(await classify({ type, value: "cell-2" })).toEqual(proxyTo("2"));
    for (const type of ["CELL_ID", "CellId"])
      expect(await classify({ type, value: "2" })).toEqual(proxyTo("2"));
    for (const type of ["FIRST_CELL", "FirstCell"]) expect(await classify({ type })).toEqual(proxyTo("1"));
  });

  test.each([
    [{ type: "SESSION_PREFIX", value: "junk_value" }, 'cell not found: "junk_value"'],
    [{ type: "CELL_ID", value: "cell-1" }, 'cell not found: "cell-1"'],
    [{ type: "CELL_ID" }, 'cell not found: ""'],
    [{ claims: [{ route: "no-such-name" }] }, "claim not found"],
  ])("%j is not found, which may be kept for a second", async (body, message) => {
    const { headers, ...answer } = await api.problem(404, "POST", "/v1/classify", { key: "router", body });
    expect(answer).toMatchObject({ code: "NOT_FOUND", message });
    expect(headers.get("cache-control")).toBe("private, max-age=1");
  });

  test("a value that no name can have doesn't exist, so the next claim decides", async () => {
    const value = await owned();
    const claims = [{ route: "a//b" }, { route: "" }, { project_id: 7 }, { route: value }];
    expect(await classify({ claims })).toEqual(proxyTo("1", { route: value }));
    const body = { claims: claims.slice(0, 2) };
    await api.problem(404, "POST", "/v1/classify", { key: "router", body });
  });

  test.each(["constructor", "toString", "__proto__"])("%s is no declared type either", async (type) => {
    for (const body of [{ type, value: "1" }, { claims: [{ type, value: "1" }] }])
      expect(await api.problem(400, "POST", "/v1/classify", { key: "router", body })).toMatchObject({
        code: "INVALID_ARGUMENT",
      });
  });

  test("an undeclared type is a mistake, even after a claim that exists", async () => {
    const body = { claims: [{ route: await owned() }, { type: "NAMES", value: "a" }] };
    const { field } = await api.problem(400, "POST", "/v1/classify", { key: "router", body });
    expect(field).toBe("claims[1].type");
  });

  test("case 11: every answer says how long it may be kept, and none in a shared cache", async () => {
    const value = await owned();
    const cacheOf = async (body: object): Promise<string | null> =>
      (await api.send("POST", "/v1/classify", { key: "router", body })).headers.get("cache-control");
    expect(await cacheOf({ claims: [{ route: value }, { route: freshName() }] })).toBe("private, max-age=5");
    expect(await cacheOf({ claims: [{ route: freshName() }, { route: value }] })).toBe("private, max-age=1");
    expect(await cacheOf({ type: "CELL_ID", value: "1" })).toBe("private, max-age=15");
    expect(await cacheOf({})).toBe("no-store");
    expect(await cacheOf({ claims: [{ type: "NAMES", value: "a" }] })).toBe("no-store");
  });

  test("[Q2] an answer about a name that a lease holds is not kept", async () => {
    const { value } = await begun(api);
    const other = await owned();
    const cacheOf = async (...routes: string[]): Promise<string | null> => {
      const body = { claims: routes.map((route) => ({ route })) };
      return (await api.send("POST", "/v1/classify", { key: "router", body })).headers.get("cache-control");
    };
    expect(await cacheOf(value)).toBe("no-store");
    expect(await cacheOf(other, value)).toBe("private, max-age=5");
  });

  test("a cell classifies too, and learns nothing but the address", async () => {
    const value = await owned();
    const body = { claims: [{ route: value }] };
    const answer = await api.json(200, "POST", "/v1/classify", { key: "cell 2", body });
    expect(answer).toEqual(proxyTo("1", { route: value }));
    await api.problem(401, "POST", "/v1/classify", { key: null, body });
  });
}
