/** Copies of a state folder. copy-state.deep.test.ts copies those of running and of killed coordinators. */
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
import { copyState } from "../../../src/hosts/workerd/state-copy.ts";
import { FORMAT } from "../../../src/hosts/workerd/state-file.ts";

const root = join(import.meta.dirname, "../../..");

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-copy-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function makeState(folder: string): { state: string; database: string } {
  const [state, objects] = [join(folder, "state"), join(folder, "state", "storage", "do")];
  mkdirSync(objects, { recursive: true });
  writeFileSync(join(state, "signing-secret"), "secret");
  const made = { format: FORMAT, program: "npm start", shards: "1" };
  writeFileSync(join(state, "state.json"), JSON.stringify(made));
  const database = join(objects, "object.sqlite");
  const connection = new DatabaseSync(database);
  connection.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT) STRICT");
  const insert = connection.prepare("INSERT INTO t (text) VALUES (?)");
  for (let n = 0; n < 100; n += 1) insert.run("x".repeat(1_000));
  connection.close();
  return { state, database };
}

test("a damaged database is named, no copy appears, and the next copy replaces what is left", async () => {
  const folder = newFolder();
  const { state, database } = makeState(folder);
  const bytes = readFileSync(database);
  const damaged = Buffer.from(bytes);
  damaged.fill(7, 8_192, 12_288);
  writeFileSync(database, damaged);
  const target = join(folder, "copy");
  const refusal = /^some databases were not copied correctly: .*object\.sqlite: /;
  await expect(copyState(state, target)).rejects.toThrow(refusal);
  expect(readdirSync(folder).toSorted()).toEqual(["copy.partial", "state"]);

  writeFileSync(database, bytes);
  writeFileSync(join(`${target}.partial`, "leftover"), "");
  await copyState(state, target);
  expect(readdirSync(folder).toSorted()).toEqual(["copy", "state"]);
  expect(readdirSync(target).toSorted()).toEqual(["signing-secret", "state.json", "storage"]);
});

test("only the owner can read a copy, whatever the modes of the state are", async () => {
  const folder = newFolder();
  const { state, database } = makeState(folder);
  chmodSync(join(state, "signing-secret"), 0o444);
  chmodSync(database, 0o644);
  for (const name of [state, join(state, "storage")]) chmodSync(name, 0o755);
  const target = join(folder, "new", "copies", "monday");
  await copyState(state, target);
  const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
  for (const path of [join(folder, "new"), target, join(target, "storage"), join(target, "storage", "do")])
    expect(modeOf(path), path).toBe("700");
  for (const path of [join(target, "signing-secret"), join(target, "storage", "do", "object.sqlite")])
    expect(modeOf(path), path).toBe("600");
});

test("links inside the state are copied as what they lead to", async () => {
  const folder = newFolder();
  const { state } = makeState(folder);
  renameSync(join(state, "storage"), join(folder, "other-disk"));
  symlinkSync(join(folder, "other-disk"), join(state, "storage"));
  const target = join(folder, "copy");
  await copyState(state, target);
  expect(lstatSync(join(target, "storage")).isDirectory()).toBe(true);
  expect(existsSync(join(target, "storage", "do", "object.sqlite"))).toBe(true);
});

test("a folder of somebody else at the place of an unfinished copy is kept", async () => {
  const folder = newFolder();
  const { state } = makeState(folder);
  const target = join(folder, "copy");
  mkdirSync(`${target}.partial`);
  writeFileSync(join(`${target}.partial`, "thesis"), "");
  const refusal = /copy\.partial exists and is not an unfinished copy; remove it, or /;
  await expect(copyState(state, target)).rejects.toThrow(refusal);
  expect(readdirSync(`${target}.partial`)).toEqual(["thesis"]);
});

test("a folder that cannot be copied, or that cannot have the copy, causes one sentence", async () => {
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
  const cases: [string, string, string][] = [
    [existing, join(folder, "new"), "is not a state folder; set LEASEHOLD_STATE to the folder"],
    [state, existing, "exists; --to must name a new folder"],
    [state, join(state, "copy"), outside],
    [state, folder, outside],
    [state, join(link, "storage", "copy"), outside],
    [link, join(state, "copy"), outside],
    [state, nowhere, "exists; --to must name a new folder"],
    [state, "/proc/leasehold/copy", "the folder /proc/leasehold/copy.partial cannot be made (ENOENT)"],
    [empty, join(folder, "new"), "has no databases, so there is nothing to copy"],
    [looped, join(folder, "new"), "is a link to a folder that contains it; remove it"],
    [piped, join(folder, "new2"), "pipe is neither a file nor a folder; remove it"],
  ];
  for (const [from, to, sentence] of cases)
    await expect(copyState(from, to), sentence).rejects.toThrow(sentence);
  expect(readdirSync(state).toSorted()).toEqual(["lock.sqlite", "signing-secret", "state.json", "storage"]);
});

test("the program copies, and says in one sentence what is wrong", () => {
  const folder = newFolder();
  const { state } = makeState(folder);
  const copy = (...args: string[]) =>
    spawnSync(process.execPath, ["src/hosts/workerd/copy-state.ts", ...args], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, LEASEHOLD_STATE: state },
    });
  const usage = "--to must name the folder that receives the copy\n\nnpm run copy-state -- --to FOLDER\n";
  const bad = copy();
  expect([bad.status, bad.stdout, bad.stderr]).toEqual([2, "", expect.stringContaining(usage)]);
  const outside = copy("--to", folder);
  expect([outside.status, outside.stdout, outside.stderr]).toEqual([
    1,
    "",
    "copy-state: --to must name a folder outside the state folder\n",
  ]);
  const done = copy("--to", join(folder, "copy"));
  expect([done.status, done.stderr]).toEqual([0, ""]);
  expect(done.stdout).toMatch(/^Copied .*state to .*copy: 3 files, \d+ bytes\.\n$/);
});
