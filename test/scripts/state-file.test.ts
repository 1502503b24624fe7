import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hashOf, openState, readState, stateVersion } from "../../scripts/state-file.ts";

const STATE_VERSION = stateVersion("npm start");

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-state-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("a state keeps its secret, and the number of shards that it was made with", async () => {
  const [plain, sharded] = [newFolder(), newFolder()];
  expect(await readState(plain)).toBeUndefined();
  expect((await openState(plain, "npm start")).shards).toBe("1");
  const made = await openState(sharded, "npm start", "16");
  expect(made.shards).toBe("16");
  expect(await openState(sharded, "npm start", "8")).toEqual(made);
  const state = { version: STATE_VERSION, program: "npm start", shards: "16" };
  expect(await readState(sharded)).toEqual(state);
});

test("the version of a state depends on its statements, but not on their white space", () => {
  const hash = hashOf([["CREATE TABLE a (b TEXT, c TEXT)"]]);
  expect(hashOf([["CREATE TABLE a (\n  b TEXT,\n\tc TEXT\n)"]])).toBe(hash);
  expect(hashOf([["CREATE TABLE a (b TEXT, d TEXT)"]])).not.toBe(hash);
  expect(hashOf([["CREATE TABLE a (b TEXT, c TEXT)", ""]])).not.toBe(hash);
});

test("a state belongs to one program", async () => {
  const folder = newFolder();
  await openState(folder, "npm run standalone");
  await expect(openState(folder, "npm start")).rejects.toThrow(
    `${folder} is a folder of \`npm run standalone\`; set LEASEHOLD_STATE to another folder`,
  );
});

const needs =
  `; this Leasehold needs version ${STATE_VERSION}: start the Leasehold that made the state, ` +
  "or set LEASEHOLD_STATE to another folder";

test.each([
  ["older", 1],
  ["with other tables", STATE_VERSION.replace(/\w+$/, "00000000")],
  ["newer", "99.00000000"],
])("a state of a version that is %s is refused by name, and left as it is", async (_, version) => {
  const folder = newFolder();
  const file = join(folder, "state.json");
  const text = JSON.stringify({ version, shards: "1" });
  writeFileSync(file, text);
  for (const refused of [openState(folder, "npm start"), readState(folder)])
    await expect(refused).rejects.toThrow(`${folder} has a state of version ${version}${needs}`);
  expect([readdirSync(folder), readFileSync(file, "utf8")]).toEqual([["state.json"], text]);
});

test.each(["storage", "databases", "signing-secret"])("a folder with %s alone is refused", async (name) => {
  const folder = newFolder();
  mkdirSync(join(folder, name));
  await expect(openState(folder, "npm start")).rejects.toThrow(
    `${folder} has no state.json, so its state is older, or the file was lost${needs}`,
  );
});

test.each(["", "[]", "null", "{}", `{"version":"${STATE_VERSION}","program":"npm start","shards":"some"}`])(
  "a damaged file is refused: %s",
  async (text) => {
    const folder = newFolder();
    writeFileSync(join(folder, "state.json"), text);
    await expect(openState(folder, "npm start")).rejects.toThrow(
      "state.json is damaged; restore the file, or set LEASEHOLD_STATE to another folder",
    );
  },
);
