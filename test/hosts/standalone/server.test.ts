/** `npm run standalone` as a process: its state folder, its signals, odd requests, and two refusals. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync, truncateSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { rawRequestTests } from "../workerd/raw-requests.ts";
import type { Server } from "../workerd/server.ts";
import { begin, commit, lookUp, useStandalone } from "./standalone-servers.ts";

const { folder, start, ready, copyBundle, endsAtDiskFailure } = useStandalone();

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
      expect.arrayContaining(["dev-keys.json", "signing-secret", "databases/leasehold.sqlite"]),
    );
    for (const name of names) expect(statSync(join(state, name)).mode & 0o077, name).toBe(0);
    await expect.poll(() => first.stdout).toContain("Ctrl-C stops it");
    expect(first.stdout).toContain(
      `${join(state, "dev-keys.json")}: operator, router, cells 1, 2, 3, 4 (new)`,
    );
    // Containers and systemd keep the output.
    for (const key of [keys.operator, keys.router, ...Object.values(keys.cells)])
      expect(first.stdout + first.stderr).not.toContain(key);
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
    expect(await third.end("SIGINT")).toMatchObject({ code: 0 });
  });
});

test("a stop answers the requests that are running, also if its signal comes twice", async () => {
  const server = await ready({ state: "stopping" });
  const calls = Array.from({ length: 50 }, (_, n) => begin(server, n, `name-${n}`));
  await calls[0];
  // A connection without a request is not waited for.
  const silent = connect(Number(new URL(server.url).port), "127.0.0.1");
  const isClosed = new Promise((resolve) => silent.once("close", resolve).once("error", () => {}));
  await new Promise((resolve) => silent.once("connect", resolve));
  const ended = server.end("SIGTERM");
  // npm passes on the Ctrl-C that the terminal has sent to the server as well.
  void server.end("SIGINT");
  void server.end("SIGTERM");
  // Requests that the server has not accepted yet get no connection: 0.
  for (const { status } of await Promise.all(calls)) expect([0, 201]).toContain(status);
  await isClosed;
  expect((await ended).code).toBe(0);
});

test("a sync that fails ends the process, and no call is answered after it", () =>
  endsAtDiskFailure("s", /could not be made durable \(EIO.*Check the disk, then start again/));

test("a start with a damaged database is refused with one line", async () => {
  await (await ready({ state: "damaged" })).end("SIGTERM");
  const file = join(folder, "damaged/databases/leasehold.sqlite");
  truncateSync(file, statSync(file).size - 4_096);
  const { code, stderr } = await (await start({ state: "damaged" })).ended;
  const line = /^leasehold: .*databases\/leasehold\.sqlite is damaged.*\n$/;
  expect([code, stderr]).toEqual([1, expect.stringMatching(line)]);
});

test("the bundle needs nothing else of the project", () => {
  const alone = copyBundle("alone");
  const run = spawnSync(process.execPath, ["main.mjs", "--help"], { cwd: alone, encoding: "utf8" });
  expect([run.status, run.stderr]).toEqual([0, ""]);
  expect(readdirSync(alone)).toEqual(expect.arrayContaining(["checkpoint-worker.mjs", "main.mjs"]));
});

test("a wrong variable and a wrong option are refused with one line", async () => {
  for (const [options, line] of [
    [{ variables: { LEASEHOLD_STALE_S: "abc" } }, /^leasehold: LEASEHOLD_STALE_S must be .*\n$/],
    [{ args: ["--\u001b[31m"] }, /^leasehold: Unknown option '--\\u001b\[31m'.*\n$/],
    [{ args: ["--cert", "a"] }, /^leasehold: --cert needs --key.*\n$/],
  ] as const) {
    const { code, stderr } = await (await start({ state: "wrong", ...options })).ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(line)]);
  }
});
