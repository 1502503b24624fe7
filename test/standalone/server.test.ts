/** `npm run standalone` as a process: its state folder, its signals, odd requests, and two refusals. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../scripts/free-port.ts";
import { rawRequestTests } from "../scripts/raw-requests.ts";
import { Server } from "../scripts/server.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-standalone-"));
const servers: Server[] = [];
const root = join(import.meta.dirname, "../..");

interface Start {
  state?: string;
  variables?: Record<string, string>;
  args?: readonly string[];
  port?: number;
}

async function start({ state = "state", variables = {}, args = [], port }: Start = {}): Promise<Server> {
  const at = join(folder, state);
  const server = new Server(port ?? (await freePort()), at, variables, args, "standalone");
  servers.push(server);
  return server;
}

const ready = async (options?: Start): Promise<Server> => (await start(options)).ready();

afterAll(async () => {
  await Promise.all(servers.map((server) => server.end("SIGKILL")));
  rmSync(folder, { recursive: true, force: true });
});

const create = (value: string): object => ({
  creates: [
    {
      bucket: { type: "ROUTES", value },
      subject: { type: "USER", id: 1 },
      source: { type: "RAILS_TABLE_USERS", id: 1 },
    },
  ],
});
const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

const begin = (server: Server, n: number, name: string) =>
  server.call(server.keys.cells["1"] ?? "", "PUT", `/v1/cells/1/leases/${uuid(n)}`, create(name));
const commit = (server: Server, n: number) =>
  server.call(server.keys.cells["1"] ?? "", "POST", `/v1/cells/1/leases/${uuid(n)}/commit`);
const lookUp = (server: Server, name: string) =>
  server.call(server.keys.router, "GET", `/v1/records/ROUTES/${name}`);

describe("the first server", () => {
  let first: Server;

  beforeAll(async () => {
    first = await ready();
  });

  rawRequestTests("standalone", () => first);

  test("private keys and the state survive a stop and a kill, and a stop leaves no logs", async () => {
    const { keys } = first;
    const state = join(folder, "state");
    expect(Object.keys(keys.cells)).toEqual(["1", "2", "3", "4"]);
    const names = readdirSync(state, { recursive: true, encoding: "utf8" });
    expect(names).toEqual(
      expect.arrayContaining(["dev-keys.json", "signing-secret", "databases/shard-0.sqlite"]),
    );
    for (const name of names) expect(statSync(join(state, name)).mode & 0o077, name).toBe(0);
    await expect.poll(() => first.stdout).toContain(keys.operator);
    expect((await begin(first, 1, "Ada")).status).toBe(201);
    // The cron runs before the first request. The requests of the set-up are not logged.
    expect(first.stderr).toMatch(/^{"event":"cron_run"/);
    const busy = await (await start()).ended;
    expect(busy).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^leasehold: the state folder .* is in use by process \d+.*\n$/,
      ) as unknown,
    });
    expect(await first.end("SIGTERM")).toMatchObject({ code: 0 });
    expect(readdirSync(join(state, "databases")).filter((name) => !name.endsWith(".sqlite"))).toEqual([]);
    expect(existsSync(join(state, "owner"))).toBe(false);

    const second = await ready();
    expect(second.keys).toEqual(keys);
    expect((await commit(second, 1)).status).toBe(200);
    await second.end("SIGKILL");
    const third = await ready();
    expect(await lookUp(third, "ada")).toMatchObject({ status: 200, body: { record: { status: "ACTIVE" } } });
    expect((await fetch(`${third.url}/healthz`)).status).toBe(200);
    expect(await (await fetch(`${third.url}/readyz`)).json()).toMatchObject({ status: "ok", d1: "up" });
    const cells = await third.call(keys.operator, "GET", "/v1/admin/cells");
    expect(cells.body["cells"]).toHaveLength(4);
    expect(third.stderr).toContain('"event":"request"');
    expect(third.stdout).not.toContain(keys.operator);
    expect(await third.end("SIGINT")).toMatchObject({ code: 0 });
  });
});

test("a stop answers the requests that are running", async () => {
  const server = await ready({ state: "stopping" });
  const calls = Array.from({ length: 50 }, (_, n) => begin(server, n, `name-${n}`));
  await calls[0];
  // A connection without a request is not waited for.
  const silent = connect(Number(new URL(server.url).port), "127.0.0.1");
  const isClosed = new Promise((resolve) => silent.once("close", resolve).once("error", () => {}));
  await new Promise((resolve) => silent.once("connect", resolve));
  const ended = server.end("SIGTERM");
  // Requests that the server has not accepted yet get no connection: 0.
  for (const { status } of await Promise.all(calls)) expect([0, 201]).toContain(status);
  await isClosed;
  expect((await ended).code).toBe(0);
});

test("the bundle needs nothing else of the project", () => {
  const alone = join(folder, "alone");
  cpSync(join(root, "dist/standalone"), alone, { recursive: true });
  const run = spawnSync(process.execPath, ["main.mjs", "--help"], { cwd: alone, encoding: "utf8" });
  expect([run.status, run.stderr]).toEqual([0, ""]);
  expect(readdirSync(alone)).toEqual(expect.arrayContaining(["checkpoint-worker.mjs", "main.mjs"]));
});

test("a wrong variable and a wrong option are refused with one line", async () => {
  for (const [options, line] of [
    [{ variables: { LEASEHOLD_STALE_S: "abc" } }, /^leasehold: LEASEHOLD_STALE_S must be .*\n$/],
    [{ args: ["--cert", "a"] }, /^leasehold: --cert needs --key.*\n$/],
  ] as const) {
    const { code, stderr } = await (await start({ state: "wrong", ...options })).ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(line)]);
  }
});
