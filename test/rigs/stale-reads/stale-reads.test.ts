/** A slice of the load with reads right after acknowledged changes. `npm run test:deep` runs more of it. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inSlice } from "../../support/slice.ts";
import { hostKinds } from "../crash/server.ts";

const lookup = "a lookup shows a claim without asking about its hold";
const listing = "a listing shows a claim without asking about its hold";
const begin = "a begin refuses a claim as another cell's without asking about its hold";

/** Decisions that shards learn of this late: every read after a change meets holds that are over. */
const late = ["--late", "300", "--lanes", "6"];

interface Run {
  code: number | null;
  output: string;
}

function run(...args: string[]): Promise<Run> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), "--seed", "1", ...args]);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => (output += data.toString()));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output })));
}

test.each(inSlice(hostKinds, 2))(
  "[C3] [R2] [R3] [B8] under load, %s answers as it has acknowledged",
  async (host) => {
    const { code, output } = await run("--host", host, "--lanes", "8", "--leases", "6");
    expect(output).toMatch(/"leases":48,.*\n0 stale answers/);
    expect(code).toBe(0);
  },
);

test("[C3] [R2] [R3] [B8] answers are right long before shards are told", async () => {
  const { code, output } = await run(...late, "--leases", "6");
  expect(output).toMatch(/"leases":36,.*\n0 stale answers/);
  expect(code).toBe(0);
});

const planted: [string, RegExp][] = [
  [lookup, /a lookup of .* showed/],
  [listing, /a listing of .* showed/],
  [begin, /another cell's destroy of .* was answered not_owner, not absent/],
];

test.each(planted)("finds this bug: %s", async (bug, complaint) => {
  const { code, output } = await run(...late, "--leases", "20", "--bug", bug);
  expect(output).toMatch(complaint);
  expect(code).toBe(1);
});
