/** A busy server, its backups, and what is wrong with one. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Server } from "../workerd/server.ts";

const root = join(import.meta.dirname, "../../..");
const CELLS = ["1", "2", "3", "4"];

/** Starts servers in a folder that is removed after all tests of a file. */
export function useServers() {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-backup-"));
  const servers: Server[] = [];

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

  return { folder, start, backUp };
}

export interface Lease {
  cell: string;
  uuid: string;
  names: string[];
  begun: number;
  committed: number;
}

/** Begins and commits leases of several names until it is stopped. */
export class Load {
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
export async function complaintsAbout(server: Server, leases: readonly Lease[]): Promise<string[]> {
  const complaints = leases.map(async ({ cell, uuid, names }) => {
    const key = server.keys.cells[cell] ?? "";
    const got = await server.call(key, "GET", `/v1/cells/${cell}/leases/${uuid}`);
    const state = got.status === 404 ? "NONE" : (got.body["lease"] as { state: string } | undefined)?.state;
    if (state === undefined) return `lease ${uuid}: ${got.status} ${JSON.stringify(got.body)}`;
    const looked = await server.call(server.keys.router, "POST", "/v1/records/lookup", {
      buckets: names.map((value) => ({ type: "ROUTES", value })),
    });
    const results = (looked.body["results"] ?? []) as Found[];
    const shown = results.map(({ record }) => (record?.cell_id === cell ? record.status : record));
    return shown.length === names.length && shown.every((status) => status === STATUS[state])
      ? undefined
      : `lease ${uuid} is ${state}, but its names are ${JSON.stringify(shown)}`;
  });
  return (await Promise.all(complaints)).filter((each) => each !== undefined);
}
