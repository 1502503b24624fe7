import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FORMAT, openState, readState } from "../../../src/hosts/workerd/state-file.ts";

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
  const state = { format: FORMAT, program: "npm start", shards: "16" };
  expect(await readState(sharded)).toEqual(state);
});

test("a state belongs to one program", async () => {
  const folder = newFolder();
  await openState(folder, "npm run standalone");
  await expect(openState(folder, "npm start")).rejects.toThrow(
    `${folder} is a folder of \`npm run standalone\`; set LEASEHOLD_STATE to another folder`,
  );
});

test.each([
  [
    { version: "3.7870a7a1" },
    'a version before 0.2.0 ("3.7870a7a1"), which this one cannot take over: with that version, write all ' +
      "claims to a file with `leasehold backup create`, and restore it into a new folder; for that, set ",
  ],
  [
    { format: FORMAT + 1 },
    `format ${FORMAT + 1}, and this Leasehold knows format ${FORMAT}: start the Leasehold that made the ` +
      "state, or set ",
  ],
])("a state of another version is refused by name, and left as it is: %j", async (version, why) => {
  const folder = newFolder();
  const file = join(folder, "state.json");
  const text = JSON.stringify({ ...version, program: "npm start", shards: "1" });
  writeFileSync(file, text);
  for (const read of [() => openState(folder, "npm start"), () => readState(folder)])
    await expect(read()).rejects.toThrow(`${folder} has a state of ${why}LEASEHOLD_STATE to another folder`);
  expect([readdirSync(folder), readFileSync(file, "utf8")]).toEqual([["state.json"], text]);
});

test.each(["storage", "databases", "signing-secret"])("a folder with %s alone is refused", async (name) => {
  const folder = newFolder();
  mkdirSync(join(folder, name));
  await expect(openState(folder, "npm start")).rejects.toThrow(
    `${folder} has a state without state.json; restore the file, or set LEASEHOLD_STATE to another `,
  );
});

test.each([
  "",
  "[]",
  "null",
  "{}",
  `{"format":"${FORMAT}","program":"npm start","shards":"1"}`,
  `{"format":${FORMAT},"program":"npm start","shards":"some"}`,
])("a damaged file is refused: %s", async (text) => {
  const folder = newFolder();
  writeFileSync(join(folder, "state.json"), text);
  await expect(openState(folder, "npm start")).rejects.toThrow(
    "state.json is damaged; restore the file, or set LEASEHOLD_STATE to another folder",
  );
});
