/** A backup of a running server. backup.deep.test.ts has what a copy file by file does. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { complaintsAbout, Load, useServers } from "./backup-rig.ts";

const { folder, start, backUp } = useServers();

test("[B5] [C2] a backup of a busy server has all that was answered, and agrees with itself", async () => {
  const server = await (await start("busy")).ready();
  const load = new Load(server);
  await expect.poll(() => load.committed).toBeGreaterThan(20);
  const copy = "backup";
  const before = load.leases.map((lease) => ({ ...lease }));
  const { code, output } = await backUp("busy", join(folder, copy));
  expect([code, output]).toEqual([0, expect.stringMatching(/^Copied .*: \d+ files, \d+ bytes\.\n$/)]);
  expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
  expect(readdirSync(join(folder, copy)).toSorted()).toEqual([
    "databases",
    "dev-keys.json",
    "signing-secret",
    "state.json",
  ]);
  expect(statSync(join(folder, copy, "signing-secret")).mode & 0o077).toBe(0);
  const now = load.leases.length;
  const restored = await start(copy);
  await expect.poll(() => restored.stdout).toContain("is ready");
  expect(await complaintsAbout(restored, load.leases.slice(0, now))).toEqual([]);
  for (const { cell, uuid, begun, committed } of before) {
    const key = restored.keys.cells[cell] ?? "";
    const { body } = await restored.call(key, "GET", `/v1/cells/${cell}/leases/${uuid}`);
    const { state } = (body["lease"] ?? {}) as { state?: string };
    if (committed === 200) expect(state).toBe("COMMITTED");
    else if (begun === 201) expect(["GRANTED", "COMMITTED"]).toContain(state);
  }
  expect(restored.stderr).not.toContain("history_lost");
  expect((await restored.end("SIGTERM")).code).toBe(0);
  await expect.poll(() => load.leases.length).toBeGreaterThan(now + 20);
  await load.stop();
  expect(load.leases.every(({ begun }) => begun === 201)).toBe(true);
});
