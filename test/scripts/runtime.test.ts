import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, test, expect } from "vitest";
import { Server } from "../crash/server.ts";
import { freePort } from "./server.ts";

test("a runtime that dies is started again, and the log says so", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-"));
  const server = new Server({ kind: "production", port: await freePort(), folder });
  onTestFinished(async () => {
    await server.kill("group");
    rmSync(folder, { recursive: true, force: true });
  });
  expect(await server.ready()).toBe(true);
  await server.kill("workerd");
  expect(await server.isBack()).toBe(true);
  await expect.poll(() => server.output, { timeout: 20_000 }).toContain('{"event":"runtime_restarted"}');
  expect(server.output).toContain('{"event":"runtime_warning","error":"The Workers runtime crashed');
  expect(await server.stop()).toBe(0);
});
