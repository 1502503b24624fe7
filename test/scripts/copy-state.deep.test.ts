/** Tests that a stopped coordinator leaves nothing in write-ahead logs, and that its state can be copied. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { checkpoint, stateDatabases } from "../../scripts/state-databases.ts";
import { freePort } from "../../scripts/free-port.ts";
import { Server } from "./server.ts";

const root = join(import.meta.dirname, "../..");

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
  return spawnSync(process.execPath, ["scripts/copy-state.ts", ...args], {
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
  expect(readdirSync(target).toSorted()).toEqual(["dev-keys.json", "shards", "signing-secret", "storage"]);

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

function makeState(folder: string): { state: string; database: string } {
  const [state, objects] = [join(folder, "state"), join(folder, "state", "storage", "do")];
  mkdirSync(objects, { recursive: true });
  writeFileSync(join(state, "signing-secret"), "secret");
  const database = join(objects, "object.sqlite");
  const made = new DatabaseSync(database);
  made.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT) STRICT");
  const insert = made.prepare("INSERT INTO t (text) VALUES (?)");
  for (let n = 0; n < 100; n += 1) insert.run("x".repeat(1_000));
  made.close();
  return { state, database };
}

test("a damaged database is named, no copy appears, and the next copy replaces what is left", () => {
  const folder = newFolder();
  const { state, database } = makeState(folder);
  const bytes = readFileSync(database);
  const damaged = Buffer.from(bytes);
  damaged.fill(7, 8_192, 12_288);
  writeFileSync(database, damaged);
  const target = join(folder, "copy");
  const { status, stderr } = copy(state, "--to", target);
  expect(status).toBe(1);
  expect(stderr).toContain("copy-state: some databases were not copied correctly: ");
  expect(stderr).toContain("object.sqlite: ");
  expect(readdirSync(folder).toSorted()).toEqual(["copy.partial", "state"]);

  writeFileSync(database, bytes);
  writeFileSync(join(`${target}.partial`, "leftover"), "");
  expect(copy(state, "--to", target)).toMatchObject({ status: 0, stderr: "" });
  expect(readdirSync(folder).toSorted()).toEqual(["copy", "state"]);
  expect(readdirSync(target).toSorted()).toEqual(["signing-secret", "storage"]);
});

test("only the owner can read a copy, whatever the modes of the state are", () => {
  const folder = newFolder();
  const { state, database } = makeState(folder);
  chmodSync(join(state, "signing-secret"), 0o444);
  chmodSync(database, 0o644);
  for (const name of [state, join(state, "storage")]) chmodSync(name, 0o755);
  const target = join(folder, "new", "copies", "monday");
  expect(copy(state, "--to", target)).toMatchObject({ status: 0, stderr: "" });
  const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
  for (const path of [join(folder, "new"), target, join(target, "storage"), join(target, "storage", "do")])
    expect(modeOf(path), path).toBe("700");
  for (const path of [join(target, "signing-secret"), join(target, "storage", "do", "object.sqlite")])
    expect(modeOf(path), path).toBe("600");
});

test("links inside the state are copied as what they lead to", () => {
  const folder = newFolder();
  const { state } = makeState(folder);
  renameSync(join(state, "storage"), join(folder, "other-disk"));
  symlinkSync(join(folder, "other-disk"), join(state, "storage"));
  const target = join(folder, "copy");
  expect(copy(state, "--to", target)).toMatchObject({ status: 0, stderr: "" });
  expect(lstatSync(join(target, "storage")).isDirectory()).toBe(true);
  expect(existsSync(join(target, "storage", "do", "object.sqlite"))).toBe(true);
});

test("a folder of somebody else at the place of an unfinished copy is kept", () => {
  const folder = newFolder();
  const { state } = makeState(folder);
  const target = join(folder, "copy");
  mkdirSync(`${target}.partial`);
  writeFileSync(join(`${target}.partial`, "thesis"), "");
  const { status, stderr } = copy(state, "--to", target);
  expect(status).toBe(1);
  expect(stderr).toMatch(/^copy-state: .*copy\.partial exists and is not an unfinished copy; remove it, or /);
  expect(readdirSync(`${target}.partial`)).toEqual(["thesis"]);
});

test("a database that somebody else has open is not checkpointed", async () => {
  const { state, database } = makeState(newFolder());
  const other = new DatabaseSync(database);
  onTestFinished(() => other.close());
  other.prepare("SELECT count(*) FROM t").get();
  expect(await stateDatabases(state)).toEqual([database]);
  expect(() => checkpoint(database)).toThrow(/locked|uses it/);
});

test("invalid options and folders cause one sentence", () => {
  const folder = newFolder();
  const { state } = makeState(folder);
  const existing = join(folder, "existing");
  mkdirSync(existing);
  const { state: empty } = makeState(join(folder, "empty"));
  rmSync(join(empty, "storage"), { recursive: true });
  const { state: looped } = makeState(join(folder, "looped"));
  symlinkSync(join(looped, "storage"), join(looped, "storage", "do", "loop"));
  const { state: piped } = makeState(join(folder, "piped"));
  spawnSync("mkfifo", [join(piped, "pipe")]);
  const [link, nowhere] = [join(folder, "link"), join(folder, "nowhere")];
  symlinkSync(state, link);
  symlinkSync(join(folder, "missing"), nowhere);
  const outside = "--to must name a folder outside the state folder";
  const cases: [string, string[], number, string][] = [
    [state, [], 2, "--to must name the folder that receives the copy\n\nnpm run copy-state -- --to FOLDER\n"],
    [state, ["--bogus"], 2, "Unknown option '--bogus'"],
    [existing, ["--to", join(folder, "new")], 1, "is not a state folder; set LEASEHOLD_STATE to the folder"],
    [state, ["--to", existing], 1, "exists; --to must name a new folder"],
    [state, ["--to", join(state, "copy")], 1, outside],
    [state, ["--to", folder], 1, outside],
    [state, ["--to", join(link, "storage", "copy")], 1, outside],
    [link, ["--to", join(state, "copy")], 1, outside],
    [state, ["--to", nowhere], 1, "exists; --to must name a new folder"],
    [
      state,
      ["--to", "/proc/leasehold/copy"],
      1,
      "the folder /proc/leasehold/copy.partial cannot be made (ENOENT)",
    ],
    [empty, ["--to", join(folder, "new")], 1, "has no databases, so there is nothing to copy"],
    [looped, ["--to", join(folder, "new")], 1, "is a link to a folder that contains it; remove it"],
    [piped, ["--to", join(folder, "new2")], 1, "pipe is neither a file nor a folder; remove it"],
  ];
  for (const [from, args, status, sentence] of cases) {
    const result = copy(from, ...args);
    expect({ status: result.status, stdout: result.stdout }).toEqual({ status, stdout: "" });
    expect(result.stderr).toContain(sentence);
    expect(result.stderr).not.toMatch(/\n\s+at /);
  }
  expect(copy(state, "--help")).toMatchObject({ status: 0, stderr: "" });
  expect(readdirSync(state).toSorted()).toEqual(["lock.sqlite", "signing-secret", "storage"]);
});
