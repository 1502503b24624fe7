/** Copies of a state that are made file by file, and backups of a stopped one. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { complaintsAbout, Load, useServers } from "./backup-rig.ts";

const { folder, start, backUp } = useServers();

test("a plain copy of a busy server is never served, and its backup is", async () => {
  const server = await (await start("plain")).ready();
  const load = new Load(server);
  const refusal = /^leasehold: .* is a copy of the state .*copy the original again with --backup, or add/;
  for (const copy of ["plain-1", "plain-2", "plain-3"]) {
    const soFar = load.committed;
    await expect.poll(() => load.committed).toBeGreaterThan(soFar + 20);
    const { status } = spawnSync("cp", ["-a", join(folder, "plain"), join(folder, copy)]);
    expect(status).toBe(0);
    const { code, stderr } = await (await start(copy)).ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(refusal)]);
    // A backup of it would have the same flaw.
    const again = await backUp(copy, join(folder, `${copy}-backup`));
    expect([again.code, again.output]).toEqual([1, expect.stringMatching(refusal)]);
    expect(existsSync(join(folder, `${copy}-backup`))).toBe(false);
  }
  const kept = load.leases.filter(({ committed }) => committed === 200);
  expect((await backUp("plain", join(folder, "plain-backup"))).code).toBe(0);
  await load.stop();
  const restored = await (await start("plain-backup")).ready();
  expect(await complaintsAbout(restored, kept)).toEqual([]);
  expect(load.leases.every(({ begun }) => begun === 201)).toBe(true);
});

test("a backup also copies a stopped state, and replaces nothing but an unfinished backup", async () => {
  const server = await (await start("stopped")).ready();
  const inside = await backUp("stopped", join(folder, "stopped/backup"));
  expect(inside).toEqual({
    code: 1,
    output: "leasehold: --backup must name a folder outside the state folder\n",
  });
  mkdirSync(join(folder, "taken"));
  const taken = await backUp("stopped", join(folder, "taken"));
  expect(taken).toEqual({
    code: 1,
    output: expect.stringContaining("taken exists; --backup must name a new folder") as unknown,
  });
  // What an interrupted backup has left is replaced, and other folders are not.
  mkdirSync(join(folder, "again.partial"));
  writeFileSync(join(folder, "again.partial/backup.partial"), "");
  expect((await backUp("stopped", join(folder, "again"))).code).toBe(0);
  mkdirSync(join(folder, "more.partial"));
  writeFileSync(join(folder, "more.partial/mine"), "");
  expect((await backUp("stopped", join(folder, "more"))).output).toContain("is not an unfinished copy");
  expect(existsSync(join(folder, "more.partial/mine"))).toBe(true);
  await server.end("SIGTERM");
  expect((await backUp("stopped", join(folder, "offline"))).code).toBe(0);
  expect((await backUp("nothing", join(folder, "none"))).output).toContain("is not a state folder");
  const restored = await (await start("offline")).ready();
  expect(restored.keys).toEqual(server.keys);
  await restored.end("SIGTERM");
});
