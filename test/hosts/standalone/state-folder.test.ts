/** The mark of a folder in use: what a start accepts, and what may be a torn copy. */
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { clearUse, markUse, UntrustedCopy } from "../../../src/hosts/standalone/state-folder.ts";

let parent: string;
let folder: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "use-mark-"));
  folder = mkdtempSync(join(parent, "databases-"));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

const mark = (of: string): string => join(of, "in-use");
const log = (of: string): string => join(of, "leasehold.sqlite-wal");

test("a folder is accepted again after a kill, and when it was moved", async () => {
  await markUse(folder, false);
  writeFileSync(log(folder), "pages");
  const text = readFileSync(mark(folder), "utf8");
  await markUse(folder, false);
  const moved = join(parent, "moved");
  renameSync(folder, moved);
  await markUse(moved, false);
  expect(readFileSync(mark(moved), "utf8")).toBe(text);
});

test("a copy of a folder in use is refused unless it is trusted, also without its logs", async () => {
  await markUse(folder, false);
  writeFileSync(log(folder), "pages");
  const [copy, withoutLogs] = [join(parent, "copy"), join(parent, "without-logs")];
  for (const to of [copy, withoutLogs]) cpSync(folder, to, { recursive: true, preserveTimestamps: true });
  rmSync(log(withoutLogs));
  for (const to of [copy, withoutLogs]) {
    await expect(markUse(to, false)).rejects.toThrow(UntrustedCopy);
    await expect(markUse(to, false)).rejects.toThrow(UntrustedCopy);
    await markUse(to, true);
    await markUse(to, false);
  }
});

test("a copy that lacks the mark is refused for its logs", async () => {
  writeFileSync(log(folder), "pages");
  await expect(markUse(folder, false)).rejects.toThrow(UntrustedCopy);
  writeFileSync(mark(folder), "");
  await expect(markUse(folder, false)).rejects.toThrow(UntrustedCopy);
});

test("a folder that was closed, and then read by another program, is accepted", async () => {
  const path = join(folder, "leasehold.sqlite");
  const writer = new DatabaseSync(path);
  writer.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
  writer.close();
  const reader = new DatabaseSync(path, { readOnly: true });
  reader.prepare("SELECT * FROM t").all();
  reader.close();
  expect(statSync(log(folder)).size).toBe(0);
  await markUse(folder, false);
  await clearUse(folder);
  expect(existsSync(mark(folder))).toBe(false);
});

test("a mark whose write was interrupted is written again", async () => {
  writeFileSync(mark(folder), "");
  writeFileSync(`${mark(folder)}.new`, "1");
  await markUse(folder, false);
  await markUse(folder, false);
  expect(existsSync(`${mark(folder)}.new`)).toBe(false);
});

test("the mark goes with the last log", async () => {
  await markUse(folder, false);
  writeFileSync(log(folder), "pages");
  await clearUse(folder);
  expect(existsSync(mark(folder))).toBe(true);
  rmSync(log(folder));
  await clearUse(folder);
  expect(existsSync(mark(folder))).toBe(false);
  await clearUse(folder);
});
