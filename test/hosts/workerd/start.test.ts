/** `npm start` as a process: its keys, odd requests, a kill under load, a restart, and what it refuses. */
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DevKeys } from "../../../src/hosts/workerd/dev-keys.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { rawRequestTests } from "./raw-requests.ts";
import { leaseId, oneName, Server } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-start-"));
const state = join(folder, "state");
const servers: Server[] = [];

async function start(variables: Record<string, string> = {}): Promise<Server> {
  const server = new Server(await freePort(), state, { LEASEHOLD_SWEEP_AFTER_MS: "500", ...variables });
  servers.push(server);
  return server;
}

let server: Server;
let keys: DevKeys;

beforeAll(async () => {
  server = await (await start()).ready();
  ({ keys } = server);
});

afterAll(async () => {
  await Promise.all(servers.map((each) => each.end("SIGKILL")));
  rmSync(folder, { recursive: true, force: true });
});

/** Nothing that a server prints or logs has a secret in it. */
function expectNoSecrets(text: string): void {
  const secret = readFileSync(join(state, "signing-secret"), "utf8");
  for (const each of [secret, keys.operator, keys.router, ...Object.values(keys.cells)])
    expect(text).not.toContain(each);
}

test("the first start makes private keys, and prints where they are, but no key", async () => {
  expect(Object.keys(keys.cells)).toEqual(["1", "2", "3", "4"]);
  for (const name of ["dev-keys.json", "signing-secret"])
    expect(statSync(join(state, name)).mode & 0o777, name).toBe(0o600);
  await expect.poll(() => server.stdout).toContain("Ctrl-C stops it");
  expect(server.stdout).toContain(
    `${join(state, "dev-keys.json")}: operator, router, cells 1, 2, 3, 4 (new)`,
  );
  expectNoSecrets(server.stdout);
});

describe("odd requests", () => rawRequestTests("start", () => server));

test("a second process on the same state, and a wrong variable, are refused with one line", async () => {
  const [busy, wrong] = await Promise.all([
    start().then(({ ended }) => ended),
    start({ LEASEHOLD_STALE_S: "abc" }).then(({ ended }) => ended),
  ]);
  expect(busy.stderr).toMatch(/^leasehold: the state folder .* is in use by process \d+.*\n$/);
  expect(wrong.stderr).toMatch(
    /^leasehold: LEASEHOLD_STALE_S must be a whole number of s from 1 to 604800\n$/,
  );
  expect([busy.code, wrong.code]).toEqual([1, 1]);
});

test("a kill under load loses no acknowledged lease, and leaves no hold behind", async () => {
  const leases: { cell: string; uuid: string; name: string; begun: number; committed: number }[] = [];
  const load = new AbortController();
  const client = async (cell: string): Promise<void> => {
    while (!load.signal.aborted) {
      const lease = {
        cell,
        uuid: leaseId(1_000 + leases.length),
        name: `kill-${leases.length}`,
        begun: 0,
        committed: 0,
      };
      leases.push(lease);
      const key = keys.cells[cell] ?? "";
      lease.begun = (
        await server.call(key, "PUT", `/v1/cells/${cell}/leases/${lease.uuid}`, oneName(lease.name))
      ).status;
      if (lease.begun === 201)
        lease.committed = (
          await server.call(key, "POST", `/v1/cells/${cell}/leases/${lease.uuid}/commit`)
        ).status;
    }
  };
  const clients = ["1", "2", "3", "4", "1", "2", "3", "4"].map(client);
  await expect.poll(() => leases.filter(({ committed }) => committed === 200).length).toBeGreaterThan(20);
  const killed = await server.end("SIGKILL");
  load.abort();
  await Promise.all(clients);
  expectNoSecrets(killed.stderr);

  const again = await (await start()).ready();
  expect(again.keys).toEqual(keys);
  const check = async (lease: (typeof leases)[number]): Promise<void> => {
    const path = `/v1/cells/${lease.cell}/leases/${lease.uuid}`;
    const key = keys.cells[lease.cell] ?? "";
    const found = await again.call(key, "GET", path);
    if (lease.committed === 200) expect(found.body["lease"]).toMatchObject({ state: "COMMITTED" });
    else if (lease.begun === 201) expect(found.status).toBe(200);
    const replayed = await again.call(key, "PUT", path, oneName(lease.name));
    expect(lease.begun === 201 ? [200] : [200, 201]).toContain(replayed.status);
    expect((await again.call(key, "POST", `${path}/commit`)).status).toBe(200);
  };
  await Promise.all(leases.map(check));
  for (const cell of ["1", "2", "3", "4"]) {
    const listed = await again.call(keys.cells[cell] ?? "", "GET", `/v1/cells/${cell}/leases`);
    expect(listed.body["leases"]).toEqual([]);
  }
  // Every name belongs to the cell that claimed it, and no lease holds it.
  for (let from = 0; from < leases.length; from += 100) {
    const some = leases.slice(from, from + 100);
    const looked = await again.call(keys.router, "POST", "/v1/records/lookup", {
      buckets: some.map(({ name }) => ({ type: "ROUTES", value: name })),
    });
    const results = looked.body["results"] as {
      record?: { cell_id: string; status: string; lease_uuid: string | null };
    }[];
    expect(results.map(({ record }) => [record?.cell_id, record?.status, record?.lease_uuid])).toEqual(
      some.map(({ cell }) => [cell, "ACTIVE", null]),
    );
  }
  const ended = await again.end("SIGTERM");
  expect(ended.code).toBe(0);
  expectNoSecrets(again.stdout + ended.stderr);
});

test("the local coordinator has the same settings as wrangler.toml", () => {
  const at = (path: string): string => readFileSync(join(import.meta.dirname, "../../..", path), "utf8");
  const [toml, coordinator] = [at("wrangler.toml"), at("src/hosts/workerd/coordinator.ts")];
  const date = /^compatibility_date = "(.*)"$/m.exec(toml)?.[1];
  const flags = /^compatibility_flags = (\[.*\])$/m.exec(toml)?.[1];
  expect(coordinator).toContain(`compatibilityDate: "${date}"`);
  expect(coordinator).toContain(`compatibilityFlags: ${flags}`);
  const classes = [...toml.matchAll(/^name = "(\w+)"\nclass_name = "(\w+)"$/gm)].map(
    ([, binding, name]) => `${binding}: { className: "${name}", useSQLite: true }`,
  );
  expect(classes).toHaveLength(3);
  for (const line of classes) expect(coordinator).toContain(line);
  expect(coordinator).toContain(`d1Databases: { DB: "${/^database_name = "(.*)"$/m.exec(toml)?.[1]}" }`);
});
