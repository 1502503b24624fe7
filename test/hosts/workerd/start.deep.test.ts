/** More of `npm start` as a process: restarts, D1 that is lost, and starts that fail. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { readState } from "../../../src/hosts/workerd/state-file.ts";
import { leaseId, oneName, Server } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-start-"));
const state = join(folder, "state");
const servers: Server[] = [];

async function start(variables: Record<string, string> = {}, stateFolder = state): Promise<Server> {
  const server = new Server(await freePort(), stateFolder, variables);
  servers.push(server);
  return server;
}

afterAll(async () => {
  await Promise.all(servers.map((server) => server.end("SIGKILL")));
  rmSync(folder, { recursive: true, force: true });
});

test("a start asks no server of Cloudflare where this machine is", async () => {
  // With NODE_ENV=test, as vitest sets it, Miniflare never asks. With a cached answer, it does not ask again.
  const cache = join(folder, "cache");
  const variables = { NODE_ENV: "", MINIFLARE_CACHE_DIR: cache };
  const { stderr } = await (await (await start(variables, join(folder, "alone"))).ready()).end("SIGTERM");
  expect(stderr).not.toContain("runtime_warning");
  expect(existsSync(cache)).toBe(false);
});

test("private keys and the state survive a restart on another port, and the loss of D1's files", async () => {
  const first = await (await start()).ready();
  const { keys } = first;
  expect(
    (await first.call(keys.cells["1"] ?? "", "PUT", `/v1/cells/1/leases/${leaseId(1)}`, oneName("Ada")))
      .status,
  ).toBe(201);
  expect(await first.end("SIGTERM")).toMatchObject({ code: 0 });

  rmSync(join(state, "storage", "d1"), { recursive: true });
  const second = await (await start()).ready();
  expect(second.keys).toEqual(keys);
  expect(await (await fetch(`${second.url}/readyz`)).json()).toMatchObject({ d1: "up" });
  const cells = await second.call(keys.operator, "GET", "/v1/admin/cells");
  expect((cells.body["cells"] as unknown[]).length).toBe(4);
  expect(((await second.call(keys.operator, "GET", "/v1/admin/keys")).body["keys"] as unknown[]).length).toBe(
    6,
  );
  expect(
    (await second.call(keys.cells["1"] ?? "", "POST", `/v1/cells/1/leases/${leaseId(1)}/commit`)).status,
  ).toBe(200);
  expect(await second.call(keys.router, "GET", "/v1/records/ROUTES/ada")).toMatchObject({
    status: 200,
    body: { record: { status: "ACTIVE" } },
  });
  expect(await second.end("SIGINT")).toMatchObject({ code: 0 });

  // D1's files are recreated if they are missing. If they are not databases, D1 is reported as down. Nothing
  // else is affected in either case.
  const d1 = join(state, "storage", "d1", "miniflare-D1DatabaseObject");
  for (const file of readdirSync(d1)) rmSync(join(d1, file));
  const third = await (await start()).ready();
  expect(await (await fetch(`${third.url}/readyz`)).json()).toMatchObject({ d1: "up" });
  await third.end("SIGTERM");
  // The runtime stores its alarms in the metadata file, and does not start without it.
  for (const file of readdirSync(d1))
    if (!file.startsWith("metadata")) writeFileSync(join(d1, file), "no database");
  const fourth = await (await start()).ready();
  expect(await (await fetch(`${fourth.url}/readyz`)).json()).toMatchObject({ d1: "down" });
  expect((await fourth.call(keys.router, "GET", "/v1/records/ROUTES/ada")).status).toBe(200);
  expect((await fourth.call(keys.operator, "GET", "/v1/leases/stale")).status).toBe(503);
  await fourth.end("SIGTERM");

  // A variable does not change the number of shards.
  expect(await readState(state)).toMatchObject({ shards: "1" });
  const resharded = await (await start({ LEASEHOLD_SHARDS: "8" })).ended;
  expect(resharded).toMatchObject({ code: 1, stderr: expect.stringContaining("has 1 shards") as unknown });
});

test("an invalid port, state folder or variable causes a one-line error", async () => {
  const listener = createServer();
  await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
  const address = listener.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const file = join(folder, "file");
  writeFileSync(file, "");
  const cases: [Server, RegExp][] = [
    [new Server(port, join(folder, "other")), /^leasehold: port \d+ is in use; set PORT to another port\n$/],
    [
      new Server(await freePort(), join(file, "below")),
      /^leasehold: the state folder .* cannot be written \(ENOTDIR\); set LEASEHOLD_STATE to .*\n$/,
    ],
    [new Server(await freePort(), file), /^leasehold: the state folder .* cannot be written \(ENOTDIR\);/],
    [new Server(0, join(folder, "other")), /^leasehold: PORT must be a whole number from 1 to 65535\n$/],
    [
      new Server(await freePort(), join(folder, "other"), { LEASEHOLD_STALE_S: "abc" }),
      /^leasehold: LEASEHOLD_STALE_S must be a whole number of s from 1 to 604800\n$/,
    ],
  ];
  for (const [server, line] of cases) {
    const ended = await server.ended;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(line);
  }
  listener.close();
});

test("after a failed first start, the next start uses the state and the shards of a new state", async () => {
  const listener = createServer();
  await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
  const address = listener.address();
  const fresh = join(folder, "failed-first");
  const failed = await new Server(typeof address === "object" && address !== null ? address.port : 0, fresh)
    .ended;
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("is in use") as unknown });
  listener.close();
  const second = await (await start({}, fresh)).ready();
  await second.end("SIGTERM");
  expect(await readState(fresh)).toMatchObject({ shards: "1" });
});

test("a start ignores leftover temporary files, and refuses an empty secret", async () => {
  const interrupted = join(folder, "interrupted");
  mkdirSync(interrupted);
  for (const name of ["state.json", "signing-secret", "dev-keys.json", "owner"])
    writeFileSync(join(interrupted, `${name}.new`), "");
  await (await (await start({}, interrupted)).ready()).end("SIGTERM");
  expect(readdirSync(interrupted).filter((name) => name.endsWith(".new"))).toEqual([]);

  writeFileSync(join(interrupted, "signing-secret"), "");
  const { code, stderr } = await (await start({}, interrupted)).ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^leasehold: .*signing-secret is empty; restore the file, or set LEASEHOLD_STATE .*\n$/,
  );
});
