/** Copies of a running server's state: what `--backup` copies, and what a copy file by file does. */
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { freePort } from "../../scripts/free-port.ts";
import { Server } from "../scripts/server.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-backup-"));
const root = join(import.meta.dirname, "../..");
const servers: Server[] = [];
const CELLS = ["1", "2", "3", "4"];

afterEach(() => Promise.all(servers.splice(0).map((server) => server.end("SIGKILL"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(state: string, args: readonly string[] = []): Promise<Server> {
  const variables = { LEASEHOLD_SHARDS: "3", LEASEHOLD_SWEEP_AFTER_MS: "300" };
  const server = new Server(await freePort(), join(folder, state), variables, args, "standalone");
  servers.push(server);
  return server;
}

/** Runs `npm run standalone -- --backup`. */
async function backUp(state: string, to: string): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, ["scripts/standalone.mjs", "--backup", to], {
    cwd: root,
    env: { ...process.env, LEASEHOLD_STATE: join(folder, state) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => (output += data.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, output };
}

interface Lease {
  cell: string;
  uuid: string;
  names: string[];
  begun: number;
  committed: number;
}

/** Begins and commits leases of several names until it is stopped. */
class Load {
  readonly leases: Lease[] = [];
  readonly #server: Server;
  readonly #stop = new AbortController();
  readonly #clients: Promise<void>[];

  constructor(server: Server) {
    this.#server = server;
    this.#clients = [...CELLS, ...CELLS].map((cell) => this.#client(cell));
  }

  get committed(): number {
    return this.leases.filter(({ committed }) => committed === 200).length;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#clients);
  }

  async #client(cell: string): Promise<void> {
    const key = this.#server.keys.cells[cell] ?? "";
    while (!this.#stop.signal.aborted) {
      const n = this.leases.length;
      const uuid = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
      const lease: Lease = {
        cell,
        uuid,
        names: [0, 1, 2, 3].map((k) => `n${n}-${k}`),
        begun: 0,
        committed: 0,
      };
      this.leases.push(lease);
      const path = `/v1/cells/${cell}/leases/${uuid}`;
      lease.begun = (await this.#server.call(key, "PUT", path, batchOf(lease.names))).status;
      if (lease.begun !== 201 || n % 5 === 4) continue;
      lease.committed = (await this.#server.call(key, "POST", `${path}/commit`)).status;
    }
  }
}

const batchOf = (names: readonly string[]): object => ({
  creates: names.map((value) => ({
    bucket: { type: "ROUTES", value },
    subject: { type: "USER", id: 1 },
    source: { type: "RAILS_TABLE_USERS", id: 1 },
  })),
});

type Found = { record?: { cell_id: string; status: string } };

/** What a lookup shows of a lease's names, by the state of the lease. */
const STATUS: Readonly<Record<string, string | undefined>> = {
  COMMITTED: "ACTIVE",
  GRANTED: "LEASE_CREATING",
};

/** Complains about a state in which the leases and their names do not agree. */
async function complaintsAbout(server: Server, leases: readonly Lease[]): Promise<string[]> {
  const complaints: string[] = [];
  for (const { cell, uuid, names } of leases) {
    const key = server.keys.cells[cell] ?? "";
    const got = await server.call(key, "GET", `/v1/cells/${cell}/leases/${uuid}`);
    const state = got.status === 404 ? "NONE" : (got.body["lease"] as { state: string } | undefined)?.state;
    if (state === undefined) {
      complaints.push(`lease ${uuid}: ${got.status} ${JSON.stringify(got.body)}`);
      continue;
    }
    const looked = await server.call(server.keys.router, "POST", "/v1/records/lookup", {
      buckets: names.map((value) => ({ type: "ROUTES", value })),
    });
    const results = (looked.body["results"] ?? []) as Found[];
    const shown = results.map(({ record }) => (record?.cell_id === cell ? record.status : record));
    if (shown.length !== names.length || shown.some((status) => status !== STATUS[state]))
      complaints.push(`lease ${uuid} is ${state}, but its names are ${JSON.stringify(shown)}`);
  }
  return complaints;
}

test("[B5] [C2] a backup of a busy server has all that was answered, and agrees with itself", async () => {
  const server = await (await start("busy")).ready();
  const load = new Load(server);
  await expect.poll(() => load.committed).toBeGreaterThan(40);
  for (const round of [1, 2]) {
    const copy = `backup-${round}`;
    const before = load.leases.map((lease) => ({ ...lease }));
    const { code, output } = await backUp("busy", join(folder, copy));
    expect([code, output]).toEqual([0, expect.stringMatching(/^Copied .*: \d+ files, \d+ bytes\.\n$/)]);
    expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
    expect(readdirSync(join(folder, copy)).toSorted()).toEqual([
      "databases",
      "dev-keys.json",
      "signing-secret",
      "state.json",
    ]);
    expect(statSync(join(folder, copy, "signing-secret")).mode & 0o077).toBe(0);
    const now = load.leases.length;
    const restored = await start(copy);
    await expect.poll(() => restored.stdout).toContain("is ready");
    expect(await complaintsAbout(restored, load.leases.slice(0, now))).toEqual([]);
    for (const { cell, uuid, begun, committed } of before) {
      const key = restored.keys.cells[cell] ?? "";
      const { body } = await restored.call(key, "GET", `/v1/cells/${cell}/leases/${uuid}`);
      const { state } = (body["lease"] ?? {}) as { state?: string };
      if (committed === 200) expect(state).toBe("COMMITTED");
      else if (begun === 201) expect(["GRANTED", "COMMITTED"]).toContain(state);
    }
    expect(restored.stderr).not.toContain("history_lost");
    expect((await restored.end("SIGTERM")).code).toBe(0);
    await expect.poll(() => load.leases.length).toBeGreaterThan(now + 20);
  }
  await load.stop();
  expect(load.leases.every(({ begun }) => begun === 201)).toBe(true);
});

test("a plain copy of a busy server is never served, and its backup is", async () => {
  const server = await (await start("plain")).ready();
  const load = new Load(server);
  const refusal = /^leasehold: .* is a copy of the state .*copy the original again with --backup, or add/;
  for (const copy of ["plain-1", "plain-2", "plain-3"]) {
    const soFar = load.committed;
    await expect.poll(() => load.committed).toBeGreaterThan(soFar + 20);
    const { status } = spawnSync("cp", ["-a", join(folder, "plain"), join(folder, copy)]);
    expect(status).toBe(0);
    const { code, stderr } = await (await start(copy)).ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(refusal)]);
    // A backup of it would have the same flaw.
    const again = await backUp(copy, join(folder, `${copy}-backup`));
    expect([again.code, again.output]).toEqual([1, expect.stringMatching(refusal)]);
    expect(existsSync(join(folder, `${copy}-backup`))).toBe(false);
  }
  const kept = load.leases.filter(({ committed }) => committed === 200);
  expect((await backUp("plain", join(folder, "plain-backup"))).code).toBe(0);
  await load.stop();
  const restored = await (await start("plain-backup")).ready();
  expect(await complaintsAbout(restored, kept)).toEqual([]);
  expect(load.leases.every(({ begun }) => begun === 201)).toBe(true);
});

test("a copy file by file that is trusted may not agree with itself, and says so", async () => {
  const server = await (await start("copied")).ready();
  const load = new Load(server);
  await expect.poll(() => load.committed).toBeGreaterThan(40);
  const copy = join(folder, "file-by-file");
  const databases = "databases";
  mkdirSync(join(copy, databases), { recursive: true });
  for (const name of ["state.json", "signing-secret", "dev-keys.json"])
    cpSync(join(folder, "copied", name), join(copy, name));
  const names = readdirSync(join(folder, "copied", databases)).filter((name) => !name.endsWith("-shm"));
  // The shards first, and the ledgers a moment later.
  for (const name of names.filter((each) => !each.startsWith("cell-")))
    cpSync(join(folder, "copied", databases, name), join(copy, databases, name));
  const soFar = load.committed;
  await expect.poll(() => load.committed).toBeGreaterThan(soFar + 20);
  for (const name of names.filter((each) => each.startsWith("cell-")))
    cpSync(join(folder, "copied", databases, name), join(copy, databases, name));
  await load.stop();
  const torn = await start("file-by-file", ["--trust-copy"]);
  await expect.poll(() => torn.stdout + torn.stderr).toMatch(/is ready|is damaged/);
  // The cron at the start tells each shard how far the ledgers have seen it (H2).
  expect(torn.stderr).toContain('"event":"history_lost"');
});

test("a backup also copies a stopped state, and replaces nothing but an unfinished backup", async () => {
  const server = await (await start("stopped")).ready();
  const inside = await backUp("stopped", join(folder, "stopped/backup"));
  expect(inside).toEqual({
    code: 1,
    output: "leasehold: --backup must name a folder outside the state folder\n",
  });
  mkdirSync(join(folder, "taken"));
  const taken = await backUp("stopped", join(folder, "taken"));
  expect(taken).toEqual({
    code: 1,
    output: expect.stringContaining("taken exists; --backup must name a new folder") as unknown,
  });
  // What an interrupted backup has left is replaced, and other folders are not.
  mkdirSync(join(folder, "again.partial"));
  writeFileSync(join(folder, "again.partial/backup.partial"), "");
  expect((await backUp("stopped", join(folder, "again"))).code).toBe(0);
  mkdirSync(join(folder, "more.partial"));
  writeFileSync(join(folder, "more.partial/mine"), "");
  expect((await backUp("stopped", join(folder, "more"))).output).toContain("is not an unfinished backup");
  expect(existsSync(join(folder, "more.partial/mine"))).toBe(true);
  await server.end("SIGTERM");
  expect((await backUp("stopped", join(folder, "offline"))).code).toBe(0);
  expect((await backUp("nothing", join(folder, "none"))).output).toContain("is not a state folder");
  const restored = await (await start("offline")).ready();
  expect(restored.keys).toEqual(server.keys);
  await restored.end("SIGTERM");
});
