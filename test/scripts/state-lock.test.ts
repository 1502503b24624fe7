import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { lockState } from "../../scripts/state-lock.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-lock-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Takes the lock in a process of its own, and keeps it for as long as that lives. */
function contend(state: string): { message: Promise<string>; kill: () => void } {
  const module = join(import.meta.dirname, "../../scripts/state-lock.ts");
  const script = `import { lockState } from ${JSON.stringify(module)};
    lockState(${JSON.stringify(state)}).then(() => { console.log("got"); setTimeout(() => {}, 60_000); }, (error) => console.log(error.message));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const message = new Promise<string>((resolve) =>
    child.stdout.once("data", (data: Buffer) => resolve(data.toString().trim())),
  );
  return { message, kill: () => child.kill("SIGKILL") };
}

test("of several processes that start at once one gets the folder, also behind one that was killed", async () => {
  const state = join(folder, "contended");
  for (let round = 0; round < 2; round += 1) {
    const contenders = [1, 2, 3, 4].map(() => contend(state));
    const message = await Promise.all(contenders.map((contender) => contender.message));
    expect(message.filter((line) => line === "got")).toHaveLength(1);
    for (const line of message)
      if (line !== "got") expect(line).toMatch(/is in use by (process \d+|another process)/);
    for (const { kill } of contenders) kill();
  }
});

test("one process cannot take it twice; what is released or left behind can be taken", async () => {
  const state = join(folder, "twice");
  const first = await lockState(state);
  await expect(lockState(state)).rejects.toThrow(/is in use by process \d+/);
  await first.release();
  writeFileSync(join(state, "owner"), "1");
  await (await lockState(state)).release();
});
