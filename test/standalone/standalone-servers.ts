/** Processes of `npm run standalone` for tests. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { freePort } from "../../scripts/free-port.ts";
import { leaseId, oneName, scripts, Server } from "../scripts/server.ts";

const root = join(import.meta.dirname, "../..");

export interface Start {
  state?: string;
  variables?: Record<string, string>;
  args?: readonly string[];
  port?: number;
}

/** Starts servers on states in a folder, which is removed with them after all tests of a file. */
export function useStandalone() {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-standalone-"));
  const servers: Server[] = [];

  async function start({ state = "state", variables = {}, args = [], port }: Start = {}): Promise<Server> {
    const at = join(folder, state);
    const server = new Server(port ?? (await freePort()), at, variables, args, "standalone");
    servers.push(server);
    return server;
  }

  const ready = async (options?: Start): Promise<Server> => (await start(options)).ready();

  /** Returns a folder with a copy of the bundle, which is made first if it is not current. */
  function copyBundle(name: string): string {
    const { status, stderr } = spawnSync(process.execPath, [scripts.standalone, "--help"], { cwd: root });
    if (status !== 0) throw new Error(`the bundle was not made: ${stderr.toString()}`);
    cpSync(join(root, "dist/standalone"), join(folder, name), { recursive: true });
    return join(folder, name);
  }

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.end("SIGKILL")));
    rmSync(folder, { recursive: true, force: true });
  });

  return { folder, servers, start, ready, copyBundle };
}

export const begin = (server: Server, n: number, name: string) =>
  server.call(server.keys.cells["1"] ?? "", "PUT", `/v1/cells/1/leases/${leaseId(n)}`, oneName(name));
export const commit = (server: Server, n: number) =>
  server.call(server.keys.cells["1"] ?? "", "POST", `/v1/cells/1/leases/${leaseId(n)}/commit`);
export const lookUp = (server: Server, name: string) =>
  server.call(server.keys.router, "GET", `/v1/records/ROUTES/${name}`);
