/** The conformance checks over HTTP, against the server of `npm run standalone` and its files. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../../src/users/client/index.ts";
import { serveFiles, type Served } from "../../hosts/standalone/served.ts";
import { notPassed, RULES, rulesShown, run } from "./run.ts";

const program = join(import.meta.dirname, "../../../scripts/leasehold.mjs");

async function start(): Promise<Served> {
  const served = await serveFiles(["1", "2"], {});
  onTestFinished(() => served.close());
  const operator = createClient({ url: served.url, key: served.keys.operator });
  for (const id of ["1", "2"])
    await operator.cells.add({ cell_id: id, name: `cell-${id}`, address: `https://cell-${id}.test` });
  return served;
}

test("the server in one process conforms, and nothing is left of the run", async () => {
  const { url, keys } = await start();
  const report = await run({ url, keys, fetch });
  expect(notPassed(report)).toEqual([]);
  expect(report.left).toEqual([]);
  expect(rulesShown(report)).toEqual(RULES);
});

test("the program gives up what a killed one has left", async () => {
  const { url, keys } = await start();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-key-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = ["1", "2"].map((cell) => join(folder, cell));
  for (const [index, file] of files.entries()) writeFileSync(file, keys.cell(String(index + 1)));
  const [key = "", otherKey = ""] = files;
  const env = { ...process.env, LEASEHOLD_URL: "", LEASEHOLD_KEY: "", XDG_CONFIG_HOME: "/nonexistent" };
  const args = ["conformance", "--url", url, "--key", key, "--other-key", otherKey];
  const startProgram = (...more: string[]) => spawn(process.execPath, [program, ...args, ...more], { env });
  const recordsOf = (cell: string) =>
    createClient({ url, key: keys.cell(cell), cell })
      .records.list({ sourceType: "RAILS_TABLE_USERS" })
      .all();

  const killed = startProgram(
    "--prefix",
    "conformance-killed-",
    "--only",
    "linearizability",
    "--histories",
    "1000",
  );
  await expect.poll(async () => (await recordsOf("1")).length).toBeGreaterThan(2);
  killed.kill("SIGKILL");
  await once(killed, "exit");
  expect((await recordsOf("1")).length).toBeGreaterThan(0);

  const cleaning = startProgram("--clean-up", "conformance-killed-");
  const [out, [code]] = await Promise.all([text(cleaning.stdout), once(cleaning, "exit")]);
  expect([out, code]).toEqual([
    expect.stringMatching(/^Gave up \d+ names, and rolled back \d+ leases\.\n$/),
    0,
  ]);
  for (const cell of ["1", "2"]) expect(await recordsOf(cell)).toEqual([]);

  const again = startProgram("--only", "B2", "--json");
  const [json, [ended]] = await Promise.all([text(again.stdout), once(again, "exit")]);
  expect([JSON.parse(json), ended]).toMatchObject([{ ok: true, cell: "1", other_cell: "2", left: [] }, 0]);
});
