/** One part of a state: restored from a backup, saved from a damaged file, and copied from the old layout. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OLD_LAYOUT, stateVersion } from "../../scripts/state-file.ts";
import type { HoldRow } from "../../src/core/shard/rows.ts";
import { sourceOrder } from "../../src/core/source-order.ts";
import { DATABASE } from "../../src/standalone/database-file.ts";
import { attach, partsIn } from "../../src/standalone/parts.ts";
import { restorePart, salvageParts } from "../../src/standalone/recover.ts";
import { takeOver } from "../../src/standalone/take-over.ts";
import { backUpState, startStandalone, type Standalone } from "../../src/standalone/server.ts";
import { HOLDS } from "../support/holds.ts";

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

/** The tables of holds in the layout before. */
const OLD_HOLDS = [
  `CREATE TABLE hold (
     bucket_type INTEGER NOT NULL,
     canonical TEXT NOT NULL,
     kind TEXT NOT NULL CHECK (kind IN ('create', 'destroy', 'replace')),
     cell TEXT NOT NULL,
     lease TEXT NOT NULL,
     incarnation INTEGER NOT NULL,
     counter INTEGER NOT NULL,
     epoch INTEGER NOT NULL,
     held_at_ms INTEGER NOT NULL,
     uuid TEXT,
     value TEXT,
     subject_type INTEGER,
     subject_id TEXT,
     source_type INTEGER,
     source_id TEXT,
     source_order TEXT,
     scope TEXT,
     granted_by INTEGER,
     PRIMARY KEY (bucket_type, canonical)
   ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX hold_by_scope ON hold (scope, cell) WHERE scope IS NOT NULL",
];

describe("a folder with a file for each object", () => {
  /** Makes the old layout from a state. */
  function splitInto(to: string, from = "state"): string {
    cpSync(at(from), at(to), { recursive: true });
    rmSync(at(to, "databases"), { recursive: true });
    mkdirSync(at(to, "databases"));
    const database = new DatabaseSync(databaseAt(from), { readOnly: true });
    for (const part of partsIn(database)) {
      const prefix = part === "projection" ? "" : `${part}/`;
      const file = new DatabaseSync(at(to, "databases", `${part}.sqlite`));
      file.exec("PRAGMA journal_mode = WAL");
      attach(file, databaseAt(from), "whole", false);
      const rows = file
        .prepare(
          "SELECT type, name, tbl_name, sql FROM whole.sqlite_schema WHERE sql <> '' ORDER BY type DESC",
        )
        .all();
      for (const row of rows) {
        const {
          type,
          name,
          tbl_name: table,
          sql,
        } = row as Record<"type" | "name" | "tbl_name" | "sql", string>;
        const isOfPart = prefix === "" ? !table.includes("/") : table.startsWith(prefix);
        if (!isOfPart || name.startsWith("sqlite_")) continue;
        file.exec(sql.replaceAll(`"${prefix}`, '"'));
        const target = name.slice(prefix.length);
        if (type === "table") file.exec(`INSERT INTO main."${target}" SELECT * FROM whole."${name}"`);
      }
      if (part.startsWith("shard-")) giveHoldsTheirTable(file);
      file.close();
    }
    database.close();
    const state = JSON.parse(readFileSync(at(to, "state.json"), "utf8")) as object;
    writeFileSync(at(to, "state.json"), JSON.stringify({ ...state, version: OLD_LAYOUT }));
    return to;
  }

  /** Makes what a shard had when its log had no holds. */
  function giveHoldsTheirTable(file: DatabaseSync): void {
    const holds = file.prepare(`SELECT * FROM ${HOLDS}`).all() as unknown as HoldRow[];
    for (const sql of OLD_HOLDS) file.exec(sql);
    for (const hold of holds) {
      const order = hold.source_id === null ? null : sourceOrder(hold.source_id);
      const row = { ...hold, source_order: order };
      const columns = Object.keys(row);
      file.prepare(`INSERT INTO hold (${columns.join()}) VALUES (:${columns.join(",:")})`).run(row);
    }
    for (const column of ["holds", "ended", "open_from"]) file.exec(`ALTER TABLE log DROP COLUMN ${column}`);
  }

  test("is copied into one file once, and the old files are kept aside", async () => {
    const state = splitInto("old");
    const files = readdirSync(at(state, "databases")).toSorted();
    expect(files).toContain("cell-1.sqlite");
    for (let round = 0; round < 2; round += 1)
      await serving(state, async (server) => {
        for (const name of ["early", ...names]) expect(await lookUp(server, name)).toBe(200);
        expect((await call(server, "operator", "GET", "/readyz")).status).toBe(200);
        expect(await own(server, `more-${round}`)).toBe(200);
      });
    expect(readdirSync(at(state, "databases")).toSorted()).toEqual(["file-per-object", DATABASE]);
    expect(readdirSync(at(state, "databases", "file-per-object")).toSorted()).toEqual(files);
    expect(JSON.parse(readFileSync(at(state, "state.json"), "utf8"))).toMatchObject({
      version: stateVersion("npm run standalone"),
    });
  });

  test("is copied again if the version before went on after an attempt that was interrupted", async () => {
    const state = splitInto("old-again");
    // The attempt ended before the folder said that it has one file. This copy lacks what came since.
    await takeOver(at(state, "databases"));
    const shard = new DatabaseSync(at(state, "databases", "shard-0.sqlite"));
    shard.exec("CREATE TABLE since (n INTEGER)");
    shard.close();
    await serving(state, async (server) => {
      for (const name of ["early", ...names]) expect(await lookUp(server, name)).toBe(200);
    });
    const taken = new DatabaseSync(databaseAt(state));
    expect(taken.prepare('SELECT count(*) AS n FROM "shard-0/since"').get()).toEqual({ n: 0 });
    taken.close();
    expect(readdirSync(at(state, "databases")).toSorted()).toEqual(["file-per-object", DATABASE]);
  });

  test("[Q3] keeps its open holds, and says that any name may have changed", async () => {
    const held = copied("held");
    const statusOf = async (server: Standalone, name: string): Promise<unknown> => {
      const { status, body } = await call(server, "cell", "GET", `/v1/records/ROUTES/${name}`);
      return status === 200 ? body["record"] : status;
    };
    const scoped = { ...claimOf("scoped"), scope: "team" };
    const shown = {
      new: { status: "LEASE_CREATING", source: claimOf("new").source },
      scoped: { status: "LEASE_CREATING", scope: "team" },
      "name-0": { status: "LEASE_DESTROYING" },
      undone: { status: "LEASE_CREATING" },
    };
    const reports = (server: Standalone, after: readonly string[]) =>
      Promise.all(
        [0, 1].map((shard) => call(server, "router", "GET", `/v1/reports/${shard}${after[shard] ?? ""}`)),
      );
    const { made, dropped, undone, read } = await serving(held, async (server) => ({
      made: await begin(server, { creates: [claimOf("new"), scoped] }),
      dropped: await begin(server, { destroys: [{ bucket: bucketOf("name-0") }] }),
      undone: await begin(server, { creates: [claimOf("undone")] }),
      read: (await reports(server, [])).map(({ body }) => `?after=${String(body["through"])}`),
    }));
    await serving(splitInto("old-held", held), async (server) => {
      expect((await reports(server, read)).map(({ body }) => body["reason"])).toEqual([
        "REPORT_PRUNED",
        "REPORT_PRUNED",
      ]);
      for (const [name, record] of Object.entries(shown))
        expect(await statusOf(server, name)).toMatchObject(record);
      expect(await begin(server, { creates: [claimOf("new")] })).toBeUndefined();
      expect(await decide(server, made, "commit")).toBe(200);
      expect(await decide(server, dropped, "commit")).toBe(200);
      expect(await decide(server, undone, "rollback")).toBe(200);
      await expect.poll(() => statusOf(server, "scoped")).toMatchObject({ status: "ACTIVE", scope: "team" });
      expect(await statusOf(server, "new")).toMatchObject({ status: "ACTIVE" });
      for (const name of ["name-0", "undone"]) expect(await lookUp(server, name)).toBe(404);
      expect((await call(server, "operator", "GET", "/readyz")).status).toBe(200);
    });
    const taken = new DatabaseSync(databaseAt("old-held"));
    const tables = taken.prepare("SELECT name FROM sqlite_schema WHERE name LIKE '%/hold%'").all();
    taken.close();
    expect(tables).toEqual([]);
  });

  test("is left as it is if one of its files is damaged", async () => {
    const state = splitInto("old-damaged");
    const files = readdirSync(at(state, "databases")).toSorted();
    writeFileSync(at(state, "databases", "cell-2.sqlite"), "this is no database".repeat(400));
    await expect(start(state)).rejects.toThrow(/cell-2\.sqlite is damaged/);
    expect(readdirSync(at(state, "databases"))).toEqual(expect.arrayContaining(files));
    expect(readdirSync(at(state, "databases"))).not.toContain(DATABASE);
    expect(JSON.parse(readFileSync(at(state, "state.json"), "utf8"))).toMatchObject({ version: OLD_LAYOUT });
  });
});
