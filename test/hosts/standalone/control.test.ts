/** The socket for backups: what a caller hears when its server ends. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { askForBackup, listenForBackups } from "../../../src/hosts/standalone/control.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "control-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("backups are carried out one after the other, and a failure is passed on", async () => {
  let running = 0;
  const stop = await listenForBackups(folder, async (to) => {
    running += 1;
    await new Promise((resume) => setImmediate(resume));
    expect(running).toBe(1);
    running -= 1;
    if (to === "/full") throw new Error("the disk is full");
    return { files: 1, bytes: to.length };
  });
  const asked = ["/a", "/full", "/abc"].map((to) => askForBackup(folder, to));
  expect(await Promise.allSettled(asked)).toMatchObject([
    { value: { files: 1, bytes: 2 } },
    { reason: { message: "the disk is full" } },
    { value: { files: 1, bytes: 4 } },
  ]);
  stop();
});

test("without a server there is no answer", async () => {
  expect(await askForBackup(folder, "/a")).toBeUndefined();
});

test.each([
  ["what was sent is read", "/a"],
  // The rest of it is dropped, so the caller gets an error instead of an end.
  ["only a part of it is read", "x".repeat(2 ** 22)],
])("a server that ends in the middle is reported: %s", async (_, to) => {
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.destroy());
  });
  await new Promise<void>((listening) => server.listen(join(folder, "control.sock"), listening));
  await expect(askForBackup(folder, to)).rejects.toThrow("the server ended before the backup was complete");
  server.close();
});
