import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";

const COORDINATOR = join(import.meta.dirname, "../../../src/hosts/workerd/coordinator.ts");

/** Runs the cron once for each line that it reads. */
const PROGRAM = `
  import { startCoordinator } from ${JSON.stringify(COORDINATOR)};
  const [port, stateFolder] = process.argv.slice(2);
  const coordinator = await startCoordinator({ port: Number(port), stateFolder, log: () => {} });
  console.log("ready");
  for await (const _ of process.stdin) {
    await coordinator.cron();
    console.log("cron");
  }`;

/** Their lines of the log are more than fits into the pipe between the runtime and its parent. */
const REQUESTS = 3_000;

test("the cron does not stop while the runtime waits for somebody to read its log", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-cron-"));
  const port = await freePort();
  const program = join(folder, "program.mjs");
  writeFileSync(program, PROGRAM);
  const child = spawn(process.execPath, [program, String(port), join(folder, "state")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 500 });
  onTestFinished(async () => {
    agent.destroy();
    child.kill("SIGKILL");
    await once(child, "exit");
    rmSync(folder, { recursive: true, force: true });
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe("ready");
  const call = (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      get(`http://127.0.0.1:${port}/healthz`, { agent }, (answer) => {
        answer.resume().once("end", () => resolve(answer.statusCode));
      }).once("error", reject);
    });
  for (let round = 0; round < 3; round += 1) {
    const calls = Array.from({ length: REQUESTS }, call);
    await calls[0];
    child.stdin.write("cron\n");
    expect(new Set(await Promise.all(calls))).toEqual(new Set([200]));
    expect((await lines.next()).value).toBe("cron");
  }
});
