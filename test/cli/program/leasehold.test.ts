/** The program as a process, as `npx leasehold` starts it. */
import { spawn, spawnSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const program = join(root, "scripts/leasehold.mjs");

const clean = { ...process.env, LEASEHOLD_URL: "", LEASEHOLD_KEY: "", XDG_CONFIG_HOME: "/nonexistent" };

test("usage errors go to standard error, and the exit code is 2", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, "lookup", "ada"], {
    encoding: "utf8",
    env: clean,
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain("set LEASEHOLD_URL");
});

test("a pipe that is closed early ends quietly", () => {
  const { status, stdout, stderr } = spawnSync(
    "bash",
    ["-c", `set -o pipefail; "${process.execPath}" "${program}" completion zsh | head -c 10`],
    { encoding: "utf8", env: clean },
  );
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "#compdef l", stderr: "" });
});

test("Ctrl-C ends a request that waits with 130", async () => {
  let asked = (): void => undefined;
  const isAsked = new Promise<void>((then) => (asked = then));
  const server: Server = createServer(() => asked()).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const env = { ...clean, LEASEHOLD_URL: `http://127.0.0.1:${port}`, LEASEHOLD_KEY: "lhk_a.b" };
  const child = spawn(process.execPath, [program, "api", "GET", "/v1/limits"], { env, stdio: "pipe" });
  await isAsked;
  child.kill("SIGINT");
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(130);
});
