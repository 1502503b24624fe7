import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { lockState } from "../../../src/hosts/workerd/state-lock.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-lock-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Takes the lock in another process, which keeps it until it ends. */
function contend(state: string): { message: Promise<string>; kill: () => void } {
  const module = join(import.meta.dirname, "../../../src/hosts/workerd/state-lock.ts");
  const script = `import { lockState } from ${JSON.stringify(module)};
    lockState(${JSON.stringify(state)}).then(
      () => { console.log("got"); setTimeout(() => {}, 60_000); },
      (error) => console.log(error.message),
    );`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const message = new Promise<string>((resolve) =>
    child.stdout.once("data", (data: Buffer) => resolve(data.toString().trim())),
  );
  return { message, kill: () => child.kill("SIGKILL") };
}

test("only one of several processes gets the folder, also after its owner was killed", async () => {
  const state = join(folder, "contended");
  for (let round = 0; round < 2; round += 1) {
    const contenders = [1, 2, 3].map(() => contend(state));
    const message = await Promise.all(contenders.map((contender) => contender.message));
    expect(message.filter((line) => line === "got")).toHaveLength(1);
    for (const line of message)
      if (line !== "got") expect(line).toMatch(/is in use by (process \d+|another process)/);
    for (const { kill } of contenders) kill();
  }
});

test("a process cannot lock a folder twice, and can lock a released or abandoned one", async () => {
  const state = join(folder, "twice");
  const first = await lockState(state);
  await expect(lockState(state)).rejects.toThrow(/is in use by process \d+/);
  await first.release();
  writeFileSync(join(state, "owner"), "1");
  await (await lockState(state)).release();
});
