/** One part of a state: restored from a backup, and saved from a damaged file. */
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DATABASE } from "../../../src/hosts/standalone/database-file.ts";
import { attach } from "../../../src/hosts/standalone/parts.ts";
import { restorePart, salvageParts } from "../../../src/hosts/standalone/recover.ts";
import { backUpState, startStandalone, type Standalone } from "../../../src/hosts/standalone/server.ts";

const folder = mkdtempSync(join(tmpdir(), "standalone-recover-"));
const at = (...names: string[]): string => join(folder, ...names);
const databaseAt = (state: string): string => at(state, "databases", DATABASE);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = (state: string): Promise<Standalone> =>
  startStandalone({
    host: "127.0.0.1",
    port: 0,
    stateFolder: at(state),
    variables: { LEASEHOLD_SHARDS: "2" },
    log: () => {},
    onStorageFailure: (failure) => {
      throw failure;
    },
  });

async function call(
  { dispatch, keys }: Standalone,
  role: "cell" | "operator" | "router",
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const key = role === "cell" ? keys.cells["1"] : keys[role];
  const answer = await dispatch(
    new Request(`http://localhost${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const bucketOf = (name: string) => ({ type: "ROUTES", value: name });

const claimOf = (name: string) => ({
  bucket: bucketOf(name),
  subject: { type: "USER", id: 1 },
  source: { type: "RAILS_TABLE_USERS", id: name },
});

/** Begins a lease. Returns its UUID. */
async function begin(server: Standalone, batch: object): Promise<string | undefined> {
  const { body } = await call(server, "cell", "POST", "/v1/cells/1/leases", batch);
  return (body["lease"] as { uuid: string } | undefined)?.uuid;
}

const decide = async (
  server: Standalone,
  lease: string | undefined,
  decision: "commit" | "rollback",
): Promise<number> => (await call(server, "cell", "POST", `/v1/cells/1/leases/${lease}/${decision}`)).status;

async function own(server: Standalone, name: string): Promise<number> {
  return decide(server, await begin(server, { creates: [claimOf(name)] }), "commit");
}

const lookUp = async (server: Standalone, name: string): Promise<unknown> =>
  (await call(server, "router", "GET", `/v1/records/ROUTES/${name}`)).status;

/** Runs `work` on a server of this folder. */
async function serving<T>(state: string, work: (server: Standalone) => Promise<T>): Promise<T> {
  const server = await start(state);
  try {
    return await work(server);
  } finally {
    await server.stop();
  }
}

const names = Array.from({ length: 12 }, (_, n) => `name-${n}`);

beforeAll(async () => {
  await serving("state", (server) => own(server, "early"));
  await backUpState(at("state"), at("backup"));
  await serving("state", async (server) => {
    for (const name of names) expect(await own(server, name)).toBe(200);
  });
});

const copied = (to: string): string => {
  cpSync(at("state"), at(to), { recursive: true });
  return to;
};

describe("--restore-part", () => {
  test("[H2] gives one part its earlier rows and leaves the others", async () => {
    const state = copied("restored");
    const before = readdirSync(at("backup", "databases"));
    expect(await restorePart(at(state), { part: "shard-0", from: at("backup") })).toBeGreaterThan(0);
    expect(readdirSync(at("backup", "databases"))).toEqual(before);
    const database = new DatabaseSync(databaseAt(state));
    attach(database, databaseAt("backup"), "backup", false);
    attach(database, databaseAt("state"), "now", false);
    const differing = (from: string, part: string): unknown =>
      database
        .prepare(
          `SELECT count(*) AS n
            FROM (SELECT * FROM main."${part}/meta" EXCEPT SELECT * FROM ${from}."${part}/meta")`,
        )
        .get()?.["n"];
    expect([differing("backup", "shard-0"), differing("now", "shard-1"), differing("now", "cell-1")]).toEqual(
      [0, 0, 0],
    );
    database.close();
    await serving(state, async (server) => {
      const { body } = await call(server, "operator", "GET", "/readyz");
      expect(body).toMatchObject({ reason: "HISTORY_LOST", failed: ["shard 0"] });
    });
  });

  test("refuses another deployment, a copy of one in use, and a part that is none", async () => {
    await serving("other", async () => {});
    const refused = (part: string, from: string): Promise<unknown> =>
      restorePart(at("state"), { part, from: at(from) });
    await expect(refused("shard-0", "other")).rejects.toThrow("is a backup of another deployment");
    await expect(refused("shard-7", "backup")).rejects.toThrow("backup has no shard-7");
    await expect(refused("shard", "backup")).rejects.toThrow("--restore-part must name a part");
    await expect(refused("shard-0", "nothing")).rejects.toThrow("nothing is no backup");
    cpSync(at("backup"), at("torn"), { recursive: true });
    writeFileSync(at("torn", "databases", "in-use"), "1 1");
    await expect(refused("shard-0", "torn")).rejects.toThrow("is a copy of a state in use");
    await serving("state", async () => {
      await expect(refused("shard-0", "backup")).rejects.toThrow("stop it before you restore a part");
    });
  });
});

test("--salvage copies the parts that can be read, and names the others", async () => {
  const state = copied("damaged");
  const database = new DatabaseSync(databaseAt(state));
  const page = database.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'cell-2/lease'`).get();
  database.close();
  const bytes = readFileSync(databaseAt(state));
  bytes.fill(7, (Number(page?.["rootpage"]) - 1) * 4_096, Number(page?.["rootpage"]) * 4_096);
  writeFileSync(databaseAt(state), bytes);
  await expect(start(state)).rejects.toThrow("copy the parts that can be read with --salvage");
  const { copied: saved, damaged } = await salvageParts(at(state), at("salvaged"));
  expect(damaged.map(({ part }) => part)).toEqual(["cell-2"]);
  expect(saved).toEqual(expect.arrayContaining(["shard-0", "shard-1", "cell-1", "directory", "projection"]));
  await restorePart(at("salvaged"), { part: "cell-2", from: at("backup") });
  await serving("salvaged", async (server) => {
    for (const name of ["early", ...names]) expect(await lookUp(server, name)).toBe(200);
    expect((await call(server, "operator", "GET", "/readyz")).status).toBe(200);
  });
  const whole = readFileSync(databaseAt("state"));
  whole.fill(7, 100, 4_096);
  writeFileSync(databaseAt(state), whole);
  await expect(salvageParts(at(state), at("nothing-left"))).rejects.toThrow("cannot be read");
});

describe("tables that need newer code", () => {
  const NEWER = '{"steps":9,"format":8}';

  function setTables(state: string, part: string, value: string): void {
    const database = new DatabaseSync(databaseAt(state));
    database.prepare(`UPDATE "${part}/meta" SET value = ? WHERE name = 'tables'`).run(value);
    database.close();
  }

  test("are named before the server is ready, and left as they are", async () => {
    const state = copied("newer");
    setTables(state, "cell-2", NEWER);
    await expect(start(state)).rejects.toThrow(
      /^cell-2 in .*leasehold\.sqlite cannot be used: its tables need a newer version of Leasehold/,
    );
    expect(readdirSync(at(state, "databases"))).toEqual([DATABASE]);
    const left = new DatabaseSync(databaseAt(state));
    const [row] = left.prepare(`SELECT value FROM "cell-2/meta" WHERE name = 'tables'`).all();
    left.close();
    expect(row).toEqual({ value: NEWER });
    setTables(state, "cell-2", '{"steps":1,"format":1}');
    await serving(state, async (server) => expect(await lookUp(server, "early")).toBe(200));
  });

  test("are not restored from a backup, and the part stays as it is", async () => {
    const [state, backup] = [copied("older"), "backup-newer"];
    cpSync(at("backup"), at(backup), { recursive: true });
    setTables(backup, "shard-0", NEWER);
    await expect(restorePart(at(state), { part: "shard-0", from: at(backup) })).rejects.toThrow(
      /^shard-0 in .*backup-newer cannot be used: its tables need a newer version of Leasehold/,
    );
    await serving(state, async (server) => {
      for (const name of ["early", ...names]) expect(await lookUp(server, name)).toBe(200);
    });
  });
});
