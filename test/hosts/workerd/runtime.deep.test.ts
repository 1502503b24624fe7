import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Server } from "../../rigs/crash/server.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";

const { default: workerd } = createRequire(import.meta.url)("workerd") as { default: string };

async function start(folder: string, variables: Record<string, string> = {}): Promise<Server> {
  const server = new Server({ kind: "production", port: await freePort(), folder, variables });
  onTestFinished(async () => {
    await server.kill("group");
    rmSync(folder, { recursive: true, force: true });
  });
  return server;
}

const newFolder = (): string => mkdtempSync(join(tmpdir(), "leasehold-"));

/** A runtime that runs `instead` once the file `broken` exists. */
function breakable(
  folder: string,
  instead: string,
): { variables: Record<string, string>; break: () => void } {
  const [path, broken] = [join(folder, "workerd.sh"), join(folder, "broken")];
  writeFileSync(path, `#!/bin/sh\nif [ -e "${broken}" ]; then ${instead}; fi\nexec "${workerd}" "$@"\n`, {
    mode: 0o755,
  });
  return { variables: { MINIFLARE_WORKERD_PATH: path }, break: () => writeFileSync(broken, "") };
}

test("a runtime that dies is restarted, and the log says so", async () => {
  const server = await start(newFolder());
  expect(await server.ready()).toBe(true);
  await server.kill("workerd");
  expect(await server.isBack()).toBe(true);
  await expect.poll(() => server.output).toContain('{"event":"runtime_restarted"}');
  expect(server.output).toContain('{"event":"runtime_warning","error":"The Workers runtime crashed');
  expect(await server.stop()).toBe(0);
});

test("if a runtime cannot be restarted, the process ends and says why", async () => {
  const folder = newFolder();
  const runtime = breakable(folder, 'echo "no such thing" >&2; exit 1');
  const server = await start(folder, runtime.variables);
  expect(await server.ready()).toBe(true);
  runtime.break();
  await server.kill("workerd");
  expect(await server.ended).toBe(1);
  expect(server.output).toContain('{"event":"runtime_failed","error":"The Workers runtime failed to restart');
  expect(server.output).toContain("no such thing");
  expect(server.output.trimEnd().split("\n").at(-1)).toBe(
    "leasehold: the runtime ended and could not be started again",
  );
});

test("if a restarted runtime never gets ready, the process ends and says why", async () => {
  const folder = newFolder();
  const runtime = breakable(folder, "exec sleep 600");
  const server = await start(folder, runtime.variables);
  expect(await server.ready()).toBe(true);
  runtime.break();
  await server.kill("workerd");
  expect(await server.ended).toBe(1);
  expect(server.output.trimEnd().split("\n").at(-1)).toBe(
    "leasehold: the runtime ended and could not be started again",
  );
});

test("if the first start of the runtime fails, the process ends and shows the runtime's output", async () => {
  const folder = newFolder();
  // The runtime reads its configuration first. If it ended before, its output could be cut off.
  const runtime = breakable(folder, 'cat > /dev/null; echo "no such thing" >&2; exit 1');
  runtime.break();
  const server = await start(folder, runtime.variables);
  expect(await server.ended).toBe(1);
  expect(server.output).toContain("no such thing");
  expect(server.output).toMatch(/^leasehold: /m);
});
