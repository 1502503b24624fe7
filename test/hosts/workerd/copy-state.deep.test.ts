/** Tests that a stopped coordinator leaves nothing in write-ahead logs, and that its state can be copied. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { checkpoint, stateDatabases } from "../../../src/hosts/workerd/state-databases.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Server } from "./server.ts";

const root = join(import.meta.dirname, "../../..");

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-copy-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function start(state: string): Promise<Server> {
  const server = new Server(await freePort(), state);
  onTestFinished(async () => void (await server.end("SIGKILL")));
  return server.ready();
}

function copy(state: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, ["src/hosts/workerd/copy-state.ts", ...args], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, LEASEHOLD_STATE: state },
  });
}

const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

async function claim(server: Server, n: number): Promise<void> {
  const path = `/v1/cells/1/leases/${uuid(n)}`;
  const key = server.keys.cells["1"] ?? "";
  const creates = [
    {
      bucket: { type: "ROUTES", value: `name-${n}` },
      subject: { type: "USER", id: n },
      source: { type: "RAILS_TABLE_USERS", id: n },
    },
  ];
  expect((await server.call(key, "PUT", path, { creates })).status).toBe(201);
  expect((await server.call(key, "POST", `${path}/commit`)).status).toBe(200);
}

const ownerOf = async (server: Server, n: number): Promise<unknown> =>
  (await server.call(server.keys.router, "GET", `/v1/records/ROUTES/name-${n}`)).body["record"];

const logsIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /-(wal|shm)$/.test(name));

test("a stop moves write-ahead logs into the databases, and a copy works on its own", async () => {
  const folder = newFolder();
  const [state, target] = [join(folder, "state"), join(folder, "copies", "monday")];
  const first = await start(state);
  await claim(first, 1);
  expect(logsIn(state)).not.toEqual([]);

  const busy = copy(state, "--to", target);
  expect(busy).toMatchObject({ status: 1, stdout: "" });
  expect(busy.stderr).toMatch(
    /^copy-state: the state folder .* is in use by process \d+; stop it before you copy the state\n$/,
  );
  expect(existsSync(join(folder, "copies"))).toBe(false);

  expect(await first.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(logsIn(state)).toEqual([]);
  expect(copy(state, "--to", target)).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^Copied .*state to .*monday: \d+ files, \d+ bytes\.\n$/) as unknown,
  });
  expect(readdirSync(join(folder, "copies"))).toEqual(["monday"]);
  expect(readdirSync(target).toSorted()).toEqual([
    "dev-keys.json",
    "signing-secret",
    "state.json",
    "storage",
  ]);

  // The copy does not see what the original does later.
  const original = await start(state);
  await claim(original, 2);
  await original.end("SIGTERM");
  const restored = await start(target);
  expect(restored.keys).toEqual(original.keys);
  expect(await ownerOf(restored, 1)).toMatchObject({ cell_id: "1", status: "ACTIVE" });
  expect(await ownerOf(restored, 2)).toBeUndefined();
  expect(await restored.end("SIGTERM")).toMatchObject({ code: 0 });

  // A new signing secret makes all keys invalid, including those that were revoked after the copy.
  const oldKey = restored.keys.router;
  for (const name of ["signing-secret", "dev-keys.json"]) rmSync(join(target, name));
  const rotated = await start(target);
  expect(await ownerOf(rotated, 1)).toMatchObject({ cell_id: "1", status: "ACTIVE" });
  expect((await rotated.call(oldKey, "GET", "/v1/records/ROUTES/name-1")).status).toBe(401);
});

test("the state of a killed coordinator is copied with what its write-ahead logs contain", async () => {
  const folder = newFolder();
  const [state, target] = [join(folder, "state"), join(folder, "copy")];
  const killed = await start(state);
  await claim(killed, 1);
  await killed.end("SIGKILL");
  expect(copy(state, "--to", target)).toMatchObject({ status: 0, stderr: "" });
  expect(logsIn(target)).toEqual([]);
  const restored = await start(target);
  expect(await ownerOf(restored, 1)).toMatchObject({ cell_id: "1", status: "ACTIVE" });
});

test("a database that somebody else has open is not checkpointed", async () => {
  const state = join(newFolder(), "state");
  mkdirSync(join(state, "storage"), { recursive: true });
  const database = join(state, "storage", "object.sqlite");
  const other = new DatabaseSync(database);
  onTestFinished(() => other.close());
  other.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER PRIMARY KEY) STRICT");
  expect(await stateDatabases(state)).toEqual([database]);
  expect(() => checkpoint(database)).toThrow(/locked|uses it/);
});
