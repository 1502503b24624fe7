/**
 * Removes a cell while the server is killed half-way. With more claims, by hand:
 *
 *     TEST_SLICE=all REMOVAL_CLAIMS=100000 npx vitest run --silent=false removal.deep
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v4 as newUuid } from "uuid";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Server } from "../workerd/server.ts";

const CLAIMS = Number(process.env["REMOVAL_CLAIMS"] ?? 2_000);
const BATCH = 500;
const STEP = Math.ceil(CLAIMS / 20);
const TEST_MS = 60_000 + 10 * CLAIMS;

const root = join(import.meta.dirname, "../../..");
const folder = mkdtempSync(join(tmpdir(), "leasehold-removal-"));
const servers: Server[] = [];

async function start(): Promise<Server> {
  const server = new Server(await freePort(), join(folder, "state"), {}, [], "standalone");
  servers.push(server);
  return server.ready();
}

const removal = "/v1/admin/cells/1/removal";
const reason = "its hardware is lost";

/** Begins and commits a lease. */
async function own(server: Server, cell: string, names: readonly string[]): Promise<number> {
  const [key, path] = [server.keys.cells[cell] ?? "", `/v1/cells/${cell}/leases/${newUuid()}`];
  const creates = names.map((value) => ({
    bucket: { type: "ROUTES", value },
    subject: { type: "NAMESPACE", id: 7 },
    source: { type: "RAILS_TABLE_ROUTES", id: value.replace(/\D+/, "") },
  }));
  const { status } = await server.call(key, "PUT", path, { creates });
  if (status !== 201) return status;
  return (await server.call(key, "POST", `${path}/commit`)).status;
}

const namesFrom = (first: number): string[] =>
  Array.from({ length: Math.min(BATCH, CLAIMS - first) }, (_, index) => `name-${first + index}`);

async function show(server: Server): Promise<Record<string, unknown>> {
  const { body } = await server.call(server.keys.operator, "GET", removal);
  return (body as { removal: Record<string, unknown> }).removal;
}

/** Runs the command line until it ends. */
async function command(server: Server, args: readonly string[]) {
  const child = spawn(process.execPath, ["scripts/leasehold.mjs", ...args], {
    cwd: root,
    env: { ...process.env, LEASEHOLD_URL: server.url, LEASEHOLD_KEY: server.keys.operator },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (data: Buffer) => (out += data.toString()));
  child.stderr.on("data", (data: Buffer) => (err += data.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}

afterAll(async () => {
  await Promise.all(servers.map((server) => server.end("SIGKILL")));
  rmSync(folder, { recursive: true, force: true });
});

test(
  "[X3] a removal goes on after the server was killed half-way, and releases nothing else",
  async () => {
    const first = await start();
    const { operator } = first.keys;
    for (let from = 0; from < CLAIMS; from += BATCH) expect(await own(first, "1", namesFrom(from))).toBe(200);
    expect(await own(first, "2", ["other-1"])).toBe(200);
    expect((await first.call(operator, "POST", "/v1/admin/cells/1/drain", {})).status).toBe(200);
    for (let reads = 0; Number((await show(first))["unapplied_decisions"]) > 0; reads += 1)
      expect(reads, "decisions are not applied").toBeLessThan(2_000);

    const preview = await command(first, ["cells", "remove", "1", "--dry-run", "--json"]);
    expect(JSON.parse(preview.out)).toMatchObject({ removal: { claims_total: CLAIMS } });
    // The command would also begin with the steps.
    const digest = await first.call(operator, "POST", "/v1/cells/1/records/digests", {
      source_type: "RAILS_TABLE_ROUTES",
      ranges: [{}],
    });
    const [{ count, hash }] = (digest.body as { digests: [{ count: number; hash: string }] }).digests;
    const whole = [{ source_type: "RAILS_TABLE_ROUTES", count, hash }];
    expect((await first.call(operator, "POST", removal, { export: whole })).status).toBe(200);

    let left = CLAIMS;
    for (let steps = 0; left > CLAIMS / 2; steps += 1) {
      expect(steps, "the steps release nothing").toBeLessThan(2_000);
      const { status, body } = await first.call(operator, "POST", `${removal}/steps`, {
        reason,
        limit: STEP,
      });
      if (status === 200) left = (body as { claims_left: number }).claims_left;
    }
    const last = first.call(operator, "POST", `${removal}/steps`, { reason, limit: STEP });
    await first.end("SIGKILL");
    await last;

    const second = await start();
    const half = await show(second);
    expect(half).toMatchObject({ state: "REMOVING" });
    // The step that was under way may have been committed or not.
    const { released_claims: released } = half["progress"] as { released_claims: number };
    expect(released).toBeGreaterThanOrEqual(CLAIMS - left);
    expect(released).toBeLessThanOrEqual(CLAIMS - left + STEP);
    const file = join(folder, "cell-1.jsonl");
    const args = ["cells", "remove", "1", "--export", file, "--reason", reason, "--yes"];
    const done = await command(second, args);
    expect(done.out, done.err).toContain("Cell 1 is removed.");
    expect(await show(second)).toMatchObject({
      state: "REMOVED",
      claims_total: 0,
      progress: { exported_claims: CLAIMS, released_claims: CLAIMS },
    });
    expect(() => readFileSync(file)).toThrow("ENOENT");
    // Names of the removed cell are free, and the other cell's are not.
    expect(await own(second, "3", ["name-1", `name-${CLAIMS - 1}`])).toBe(200);
    expect(await own(second, "3", ["other-1"])).toBe(409);
  },
  TEST_MS,
);
