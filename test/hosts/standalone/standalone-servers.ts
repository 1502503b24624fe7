/** Processes of `npm run standalone` for tests. */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { leaseId, oneName, scripts, Server } from "../workerd/server.ts";

const root = join(import.meta.dirname, "../../..");

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

  /** Makes a library to preload, which makes the disk of one process fail. Returns its path. */
  function failingDisk(): string {
    const library = join(folder, "failing-disk.so");
    if (existsSync(library)) return library;
    const source = join(import.meta.dirname, "failing-disk.c");
    const { status, stderr } = spawnSync("gcc", ["-shared", "-fPIC", "-o", library, source], {
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    return library;
  }

  /**
   * Lets the disk of a server fail. `s`: syncs fail, `f`: it is full. The process must end with this line,
   * and answer no call after the failure. A new one must have what was answered.
   */
  async function endsAtDiskFailure(how: "s" | "f", line: RegExp): Promise<void> {
    const file = join(folder, `failing-${how}`);
    writeFileSync(file, "-");
    const state = `disk-${how}`;
    const server = await ready({ state, variables: { LD_PRELOAD: failingDisk(), FAILING_DISK_FILE: file } });
    expect((await begin(server, 1, "before")).status).toBe(201);
    const fd = openSync(file, "r+");
    writeSync(fd, how, 0);
    closeSync(fd);
    expect(await begin(server, 2, "during")).toMatchObject({ status: 0 });
    const { code, stderr } = await server.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(line);
    const again = await ready({ state });
    expect((await commit(again, 1)).status).toBe(200);
    // The other begin was never answered, so it may be there or not.
    expect([200, 201]).toContain((await begin(again, 2, "during")).status);
    expect((await commit(again, 2)).status).toBe(200);
    await again.end("SIGTERM");
  }

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.end("SIGKILL")));
    rmSync(folder, { recursive: true, force: true });
  });

  return { folder, servers, start, ready, copyBundle, failingDisk, endsAtDiskFailure };
}

export const begin = (server: Server, n: number, name: string) =>
  server.call(server.keys.cells["1"] ?? "", "PUT", `/v1/cells/1/leases/${leaseId(n)}`, oneName(name));
export const commit = (server: Server, n: number) =>
  server.call(server.keys.cells["1"] ?? "", "POST", `/v1/cells/1/leases/${leaseId(n)}/commit`);
export const lookUp = (server: Server, name: string) =>
  server.call(server.keys.router, "GET", `/v1/records/ROUTES/${name}`);
