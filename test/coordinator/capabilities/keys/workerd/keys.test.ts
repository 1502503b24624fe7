import { v4 as newUuid, v7 as newKeyId } from "uuid";
import { beforeEach, describe, expect, test } from "vitest";
import type * as z from "zod";
import { limitTable } from "../../../../../src/common/limits.ts";
import type * as schemas from "../../../../../src/coordinator/api/contract/schemas.ts";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import type { Sent } from "../../../../suites/conformance/client.ts";
import { begun, claim, freshName } from "../../../../suites/conformance/leases.ts";
import { Api, env, signedKey, startDeployment } from "../../../../support/workerd/api.ts";
import { counting, watchedNamespace } from "../../../../support/workerd/counting.ts";

type Minted = z.infer<typeof schemas.mintedKey>;
type Listed = z.infer<typeof schemas.key>;

let api: Api;

beforeEach(async () => {
  api = await startDeployment("1", "2");
});

const mint = async (body: unknown): Promise<Minted & { key: `lhk_${string}` }> =>
  api.json(201, "POST", "/v1/admin/keys", { body });

const revoke = (id: string, body?: unknown): Promise<{ key: Listed }> =>
  api.json(200, "POST", `/v1/admin/keys/${id}/revoke`, body === undefined ? {} : { body });

const listed = async (): Promise<Listed[]> =>
  (await api.json<{ keys: Listed[] }>(200, "GET", "/v1/admin/keys", {})).keys;

const listsLeases = (key: Sent["key"], using = api) => using.send("GET", "/v1/cells/1/leases", { key });
const looksUp = (key: Sent["key"], using = api) =>
  using.send("GET", `/v1/records/ROUTES/${freshName()}`, { key });
const isRevoked = { status: 401, code: "UNAUTHENTICATED", reason: "KEY_REVOKED" };

describe("a key with an expiry", () => {
  test("is refused from the second at which it expires", async () => {
    const now = Math.floor(Date.now() / 1_000);
    expect((await listsLeases(await signedKey({ exp: now + 30 }))).status).toBe(200);
    const refused = await api.problem(401, "GET", "/v1/cells/1/leases", {
      key: await signedKey({ iat: now - 60, exp: now }),
    });
    expect(refused).toMatchObject({ code: "UNAUTHENTICATED", reason: "KEY_EXPIRED" });
    expect(refused.headers.get("www-authenticate")).toBe('Bearer realm="leasehold"');
  });
});

describe("rotating the secret", () => {
  const next = "the next signing secret, long enough as well";

  test("keys of both secrets are accepted until the old secret is removed", async () => {
    const old = await signedKey({ role: "cell", cell: "1" });
    const young = await signedKey({ role: "cell", cell: "1" }, next);
    const rotating = new Api({
      LEASEHOLD_SIGNING_SECRET: next,
      LEASEHOLD_PREVIOUS_SIGNING_SECRET: env.LEASEHOLD_SIGNING_SECRET,
    });
    const done = new Api({ LEASEHOLD_SIGNING_SECRET: next });
    const statuses = async (using: Api) => [
      (await listsLeases(old, using)).status,
      (await listsLeases(young, using)).status,
    ];
    expect(await statuses(api)).toEqual([200, 401]);
    expect(await statuses(rotating)).toEqual([200, 200]);
    expect(await statuses(done)).toEqual([401, 200]);
  });

  test("a page token is accepted during the rotation, until the old secret is removed", async () => {
    for (let leases = 0; leases < 2; leases += 1) await begun(api);
    const page = "/v1/cells/1/leases?page_size=1";
    const { next_page_token: token } = await api.json<{ next_page_token: string }>(200, "GET", page, {
      key: "cell 1",
    });
    const rotating = new Api({
      LEASEHOLD_SIGNING_SECRET: next,
      LEASEHOLD_PREVIOUS_SIGNING_SECRET: env.LEASEHOLD_SIGNING_SECRET,
    });
    await rotating.json(200, "GET", `${page}&page_token=${token}`, { key: "cell 1" });
    const key = await signedKey({ role: "cell", cell: "1" }, next);
    const refused = await new Api({ LEASEHOLD_SIGNING_SECRET: next }).problem(
      400,
      "GET",
      `${page}&page_token=${token}`,
      { key },
    );
    expect(refused).toMatchObject({ field: "page_token" });
  });

  test("a key that was verified with a removed secret is refused", async () => {
    const changing = new Api();
    const old = await signedKey({ role: "cell", cell: "1" });
    expect((await listsLeases(old, changing)).status).toBe(200);
    changing.env.LEASEHOLD_SIGNING_SECRET = next;
    expect((await listsLeases(old, changing)).status).toBe(401);
  });
});

describe("revoking", () => {
  test("[A1] a cell key is refused at once on its cell's paths, in every isolate", async () => {
    const { id, key } = await mint({ role: "cell", cell_id: "1" });
    const elsewhere = new Api();
    for (const using of [api, elsewhere]) expect((await listsLeases(key, using)).status).toBe(200);
    await revoke(id);
    for (const using of [api, elsewhere])
      expect((await listsLeases(key, using)).json).toMatchObject(isRevoked);
  });

  test("other paths refuse it at once in this isolate, in others when their copy expires", async () => {
    const keys = [
      await mint({ role: "cell", cell_id: "1" }),
      await mint({ role: "router" }),
      await mint({ role: "operator" }),
    ];
    const [fresh, stale] = [new Api({ LEASEHOLD_DIRECTORY_CACHE_MS: "0" }), new Api()];
    for (const { key } of keys)
      for (const using of [api, fresh, stale]) expect((await looksUp(key, using)).status).toBe(404);
    for (const { id } of keys) await revoke(id);
    for (const { key } of keys) {
      for (const using of [api, fresh]) expect((await looksUp(key, using)).json).toMatchObject(isRevoked);
      expect((await looksUp(key, stale)).status).toBe(404);
    }
    const [, , operator] = keys;
    expect((await listsLeases(operator?.key, fresh)).json).toMatchObject(isRevoked);
    expect((await api.send("GET", "/v1/admin/cells", { key: operator?.key })).json).toMatchObject(isRevoked);
  });

  test("works by id for a key that was made offline", async () => {
    const [operatorId, cellId] = [newKeyId(), newUuid()];
    const operator = await signedKey({ id: operatorId });
    const cell = await signedKey({ id: cellId, role: "cell", cell: "1" });
    expect((await listsLeases(operator)).status).toBe(200);
    expect((await listsLeases(cell)).status).toBe(200);
    const { key: revoked } = await revoke(operatorId);
    const latest = Date.now() + limitTable.keyLifetimeS.default * 1_000;
    expect(Date.parse(revoked.expires_at)).toBeLessThanOrEqual(latest);
    expect(await revoke(cellId, { cell_id: 1 })).toMatchObject({
      key: { id: cellId, role: "cell", cell_id: "1" },
    });
    expect((await listsLeases(operator)).json).toMatchObject(isRevoked);
    expect((await listsLeases(cell)).json).toMatchObject(isRevoked);
  });

  test("of a key that was made offline can be repeated with the right cell", async () => {
    const id = newUuid();
    const key = await signedKey({ id, role: "cell", cell: "1" });
    await revoke(id);
    expect((await listsLeases(key)).status).toBe(200);
    expect(await revoke(id, { cell_id: "1" })).toMatchObject({ key: { id, role: "cell", cell_id: "1" } });
    expect((await listsLeases(key)).json).toMatchObject(isRevoked);
  });

  test("fails while the ledger is down, says so, and can be repeated", async () => {
    const { id, key } = await mint({ role: "cell", cell_id: "1" });
    const CELL_LEDGER = watchedNamespace("CELL_LEDGER", env.CELL_LEDGER, (call) => {
      if (call === "CELL_LEDGER.revoke") return Promise.reject(new Error("down"));
      return undefined;
    });
    const refused = await new Api({ CELL_LEDGER }).problem(503, "POST", `/v1/admin/keys/${id}/revoke`, {});
    expect(refused.detail).toContain("may still be valid");
    expect(await listed()).toMatchObject([{ id, revoked_at: null }]);
    await revoke(id);
    expect((await listsLeases(key)).status).toBe(401);
  });
});

describe("the copy of the directory", () => {
  const down = (): unknown =>
    watchedNamespace("DIRECTORY", env.DIRECTORY, () => Promise.reject(new Error("down")));

  test("is not needed by a cell on its own paths", async () => {
    await begun(api);
    const fresh = counting(env);
    expect((await listsLeases("cell 1", new Api({ ...fresh.env }))).status).toBe(200);
    let isDown = false;
    const DIRECTORY = watchedNamespace("DIRECTORY", env.DIRECTORY, () =>
      isDown ? Promise.reject(new Error("down")) : undefined,
    );
    const watched = counting(new Api({ DIRECTORY }).env);
    const cut = new Api({ ...watched.env });
    // The first begin reads the types.
    await begun(cut);
    isDown = true;
    await begun(cut);
    expect((await listsLeases("cell 1", cut)).status).toBe(200);
    const isDirectory = (call: string): boolean => call.startsWith("DIRECTORY");
    expect(fresh.calls.filter(isDirectory)).toEqual([]);
    expect(watched.calls.filter(isDirectory)).toEqual(["DIRECTORY.types"]);
  });

  test("[T4] without the types, a begin can be repeated, and no other object is called", async () => {
    await begun(api);
    const watched = counting(new Api({ DIRECTORY: down() }).env);
    const cut = new Api({ ...watched.env });
    const body = { creates: [claim(freshName())] };
    for (const type of ["PUT", "POST"] as const)
      expect(
        await cut.problem(503, type, `/v1/cells/1/leases${type === "PUT" ? `/${newUuid()}` : ""}`, {
          key: "cell 1",
          body,
        }),
      ).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    // Nor does D1 have the types, before the first run of the cron.
    expect(new Set(watched.calls)).toEqual(new Set(["DIRECTORY.types", "DB.prepare"]));
  });

  test("[T2] [T4] without the directory, a new isolate takes the types in use from D1", async () => {
    await begun(api);
    await runCron(env, Date.now());
    await begun(new Api({ DIRECTORY: down() }));
  });

  test("is required: without one, calls are refused with 503", async () => {
    const cut = new Api({ DIRECTORY: down() });
    for (const key of ["router", "operator", "cell 2"] as const)
      expect((await looksUp(key, cut)).json).toMatchObject({ status: 503, code: "UNAVAILABLE" });
    expect((await listsLeases("operator", cut)).status).toBe(503);
  });

  test("continues to serve when the directory is down, and does not wait for it each time", async () => {
    // A type that is in use, because others are read from the directory each time (T4).
    await begun(api);
    let isDown = false;
    let asked = 0;
    const DIRECTORY = watchedNamespace("DIRECTORY", env.DIRECTORY, () => {
      asked += 1;
      return isDown ? Promise.reject(new Error("down")) : undefined;
    });
    const cut = new Api({ DIRECTORY, LEASEHOLD_DIRECTORY_CACHE_MS: "1" });
    // The type is in use, so it needs no further message (T4).
    await begun(api);
    expect((await looksUp("router", cut)).status).toBe(404);
    isDown = true;
    await new Promise((resume) => setTimeout(resume, 5));
    for (let count = 0; count < 3; count += 1) expect((await looksUp("router", cut)).status).toBe(404);
    expect(asked).toBeGreaterThan(1);
  });

  test("is read once for concurrent requests, and then kept", async () => {
    const watched = counting(env);
    const shared = new Api({ ...watched.env });
    await Promise.all(Array.from({ length: 10 }, () => looksUp("router", shared)));
    await looksUp("router", shared);
    expect(watched.calls.filter((call) => call === "DIRECTORY.snapshot")).toHaveLength(1);
  });

  test("does not hide a cell that another isolate has registered since", async () => {
    const about = (cell: string): [string, string, { body?: unknown }][] => [
      ["GET", `/v1/cells/${cell}/leases`, {}],
      ["GET", `/v1/leases/stale?cell=${cell}`, {}],
      ["POST", `/v1/admin/keys/${newUuid()}/revoke`, { body: { cell_id: cell } }],
    ];
    let isDown = false;
    const DIRECTORY = watchedNamespace("DIRECTORY", env.DIRECTORY, (call) =>
      isDown && call === "DIRECTORY.snapshot" ? Promise.reject(new Error("down")) : undefined,
    );
    // Each call gets its own isolate, because a revocation expires the copy.
    const primed = async (): Promise<Api[]> => {
      const isolates = about("9").map(() => new Api({ DIRECTORY }));
      for (const isolate of isolates) expect((await looksUp("router", isolate)).status).toBe(404);
      return isolates;
    };
    const [cut, good] = [await primed(), await primed()];
    await new Api().json(201, "POST", "/v1/admin/cells", {
      body: { cell_id: "9", name: "New", address: "https://cell-9.example" },
    });
    isDown = true;
    for (const [index, call] of about("9").entries())
      expect(await cut[index]?.problem(503, ...call)).toMatchObject({ code: "UNAVAILABLE" });
    isDown = false;
    for (const [index, call] of about("9").entries()) await good[index]?.json(200, ...call);
    for (const [index, call] of about("77").entries())
      expect(await good[index]?.problem(404, ...call)).toMatchObject({
        code: "NOT_FOUND",
        reason: "CELL_UNKNOWN",
      });
  });

  test("has changes made by this isolate at once", async () => {
    await api.json(200, "PATCH", "/v1/admin/cells/1", { body: { address: "https://moved.example" } });
    const { value } = await begun(api);
    expect(await api.json(200, "GET", `/v1/records/ROUTES/${value}`, { key: "router" })).toMatchObject({
      cell: { id: "1", address: "https://moved.example" },
    });
  });
});
