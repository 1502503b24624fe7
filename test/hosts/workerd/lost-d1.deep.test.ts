/** Tests that `npm start` makes D1 again when its files are deleted while it runs. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startCoordinator } from "../../../src/hosts/workerd/coordinator.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";

/** The runtimes that this process has started. */
function runtimes(): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        return status.startsWith("Name:\tworkerd\n") && status.includes(`\nPPid:\t${process.pid}\n`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

test("the cron makes D1's tables again after its files were deleted", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-d1-"));
  const lines: string[] = [];
  const log = (line: string): void => void lines.push(line);
  const coordinator = await startCoordinator({ port: await freePort(), stateFolder: folder, log });
  onTestFinished(async () => {
    await coordinator.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const ask = async (path: string, key?: string): Promise<Record<string, unknown> | undefined> => {
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const answer = await fetch(`${coordinator.url}${path}`, { headers }).catch(() => undefined);
    return (await answer?.json()) as Record<string, unknown> | undefined;
  };
  await coordinator.cron();
  expect(await ask("/readyz")).toMatchObject({ d1: "up" });

  const d1 = join(folder, "storage", "d1", "miniflare-D1DatabaseObject");
  for (const file of readdirSync(d1)) if (!file.startsWith("metadata")) rmSync(join(d1, file));
  // Only a runtime that opens the files again notices. A new one does so at once.
  const [runtime] = runtimes();
  expect(runtime).toBeDefined();
  if (runtime !== undefined) process.kill(runtime, "SIGKILL");
  // The run of the minute may begin at the same time, and may have made D1 again by now.
  const isNoticed = async (): Promise<boolean> =>
    lines.some((line) => line.includes('"d1_lost"')) || (await ask("/readyz"))?.["d1"] === "down";
  await expect.poll(isNoticed).toBe(true);
  await Promise.all([coordinator.cron(), coordinator.cron()]);
  expect(lines.filter((line) => line.includes('"d1_lost"'))).toHaveLength(1);
  // An answer of /readyz is kept for a second.
  await expect.poll(() => ask("/readyz")).toMatchObject({ d1: "up" });
  expect(await ask("/v1/leases/stale", coordinator.keys.operator)).toMatchObject({
    leases: [],
    last_pulled_at: expect.any(String) as unknown,
  });
});
