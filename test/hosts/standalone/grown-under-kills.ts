/**
 * Gets more shards while two cells work, and the server is killed at random moments. In the end, every name
 * has the owner that the rows of the cells say, and is on one shard.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { v4 as newUuid } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { inPart } from "../../../src/hosts/node/part-tables.ts";
import { DATABASE } from "../../../src/hosts/standalone/database-file.ts";
import { Random } from "../../rigs/sim/random.ts";
import { Server } from "../workerd/server.ts";
import { tableOf } from "../../support/holds.ts";
import { slice } from "../../support/slice.ts";

const SEED = Number(process.env["GROWTH_SEED"] ?? slice);
const FROM = 2;
const TO = 5;
const NAMES = Array.from({ length: 80 }, (_, index) => `name-${index}`);
/** The operations of each cell between two kills. */
const OPERATIONS = 25;
const CELLS = ["1", "2"];
const PATH = "/v1/admin/growth";
const reason = "more load";

const folder = mkdtempSync(join(tmpdir(), "leasehold-growth-"));
const state = join(folder, "state");
const random = Random.of(SEED, "growth");
let server: Server;
let port: number;

async function start(): Promise<void> {
  server = new Server(port, state, { LEASEHOLD_SHARDS: String(FROM) }, [], "standalone");
  await server.ready();
}

/** The names that a cell has rows for, and its leases whose outcome it has not told yet. */
interface Cell {
  id: string;
  rows: Set<string>;
  /** True: the lease was saved with its rows, so it is to be committed. */
  open: Map<string, boolean>;
}

const pathOf = ({ id }: Cell, lease: string): string => `/v1/cells/${id}/leases/${lease}`;

/** As a cell does: begins a lease, saves its rows only after the grant, and then commits. */
async function work(cell: Cell): Promise<void> {
  const name = random.pick(NAMES);
  const lease = newUuid();
  const bucket = { type: "ROUTES", value: name };
  const create = {
    bucket,
    subject: { type: "NAMESPACE", id: 7 },
    source: { type: "RAILS_TABLE_ROUTES", id: 7 },
  };
  const isOwn = cell.rows.has(name);
  cell.open.set(lease, false);
  const key = server.keys.cells[cell.id] ?? "";
  const body = isOwn ? { destroys: [{ bucket }] } : { creates: [create] };
  const { status } = await server.call(key, "PUT", pathOf(cell, lease), body);
  if (status !== 201) {
    // A refusal that is certain leaves nothing to do.
    if (status === 409) cell.open.delete(lease);
    return;
  }
  cell.open.set(lease, true);
  if (isOwn) cell.rows.delete(name);
  else cell.rows.add(name);
  // Some leases stay open for a while, so that their holds move.
  if (random.chance(0.7)) await decide(cell, lease);
}

async function decide(cell: Cell, lease: string): Promise<void> {
  const action = cell.open.get(lease) === true ? "commit" : "rollback";
  const key = server.keys.cells[cell.id] ?? "";
  const { status } = await server.call(key, "POST", `${pathOf(cell, lease)}/${action}`);
  if (status === 200) cell.open.delete(lease);
  else if (status !== 0 && status < 500) throw new Error(`the ${action} of ${lease} is refused: ${status}`);
}

/** Decides what is left, as a reconciliation does. */
async function reconcile(cell: Cell): Promise<void> {
  for (let rounds = 0; cell.open.size > 0; rounds += 1) {
    expect(rounds, "leases stay open").toBeLessThan(200);
    for (const lease of Array.from(cell.open.keys())) await decide(cell, lease);
  }
}

interface Shards {
  shards: number;
  growth: { can_be_cut: boolean; phase: string } | null;
}

/** Starts the growth, and makes steps until it has ended, whatever happens to the server. */
async function grow(progress: { mayCut: boolean }): Promise<void> {
  let wasCut = false;
  for (;;) {
    const { status, body } = await server.call(server.keys.operator, "POST", `${PATH}/steps`);
    const { shards, growth } = body as unknown as Shards;
    if (status !== 200) await new Promise((resume) => setTimeout(resume, 20));
    else if (shards === TO && growth === null) break;
    else if (growth === null) await server.call(server.keys.operator, "POST", PATH, { shards: TO, reason });
    else if (growth.can_be_cut && !wasCut && progress.mayCut)
      wasCut = (await server.call(server.keys.operator, "POST", `${PATH}/cut`, { reason })).status === 200;
  }
}

interface ChangesPage {
  changes: { event: string; epoch: number; claim?: { uuid: string; bucket: { value: string } } }[];
  checkpoint: string;
  has_more: boolean;
}

async function changesAfter(checkpoint?: string): Promise<ChangesPage> {
  const query = checkpoint === undefined ? "" : `&after=${encodeURIComponent(checkpoint)}`;
  const { status, body } = await server.call(server.keys.operator, "GET", `/v1/changes?page_size=20${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as unknown as ChangesPage;
}

/** Applies all changes to an empty copy, as a consumer does (F6). Returns the names that it has then. */
async function copiedNames(from: string): Promise<string[]> {
  const copy = new Map<string, { epoch: number; name: string }>();
  let checkpoint = from;
  for (let page: ChangesPage | undefined; page?.has_more !== false; checkpoint = page.checkpoint) {
    page = await changesAfter(checkpoint);
    for (const { event, epoch, claim } of page.changes) {
      if (claim === undefined || (copy.get(claim.uuid)?.epoch ?? 0) > epoch) continue;
      if (event === "released") copy.delete(claim.uuid);
      else copy.set(claim.uuid, { epoch, name: claim.bucket.value });
    }
  }
  return [...copy.values()].map(({ name }) => name);
}

/** The shards that have a row about each name. */
function shardsOfNames(table: "claim" | "hold"): Map<string, number[]> {
  const found = new Map<string, number[]>();
  const database = new DatabaseSync(join(state, "databases", DATABASE), { readOnly: true });
  for (let shard = 0; shard < TO; shard += 1) {
    const rows = database
      .prepare(inPart(`SELECT canonical FROM ${tableOf(table)}`, `shard-${shard}`))
      .all() as {
      canonical: string;
    }[];
    for (const { canonical } of rows) found.set(canonical, [...(found.get(canonical) ?? []), shard]);
  }
  database.close();
  return found;
}

/** Declares the test. The server is killed this often while the growth runs. */
export function growthTest(kills: number): void {
  beforeAll(async () => {
    port = await freePort();
    await start();
  });

  afterAll(async () => {
    await server.end("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  test(`[G5] [G7] [G9] [F6] every name has one owner after a growth with kills, seed ${SEED}`, async () => {
    const cells = CELLS.map((id): Cell => ({ id, rows: new Set(), open: new Map() }));
    const load = async (operations: number): Promise<void> => {
      await Promise.all(
        cells.map(async (cell) => {
          for (let done = 0; done < operations; done += 1) await work(cell);
        }),
      );
    };
    const { checkpoint } = await changesAfter();
    await load(60);
    const progress = { mayCut: false };
    const grown = grow(progress);
    for (let kill = 0; kill < kills; kill += 1) {
      // Half of the kills come before the cut, and the others around it.
      progress.mayCut = kill >= kills / 2;
      const working = load(OPERATIONS);
      await new Promise((resume) => setTimeout(resume, random.between(20, 600)));
      await server.end("SIGKILL");
      await working;
      await start();
    }
    await Promise.all([load(OPERATIONS), grown]);
    for (const cell of cells) await reconcile(cell);

    const rows = new Map(cells.flatMap(({ id, rows: names }) => [...names].map((name) => [name, id])));
    expect(rows.size, "a name has rows in two cells").toBe(
      cells.reduce((sum, cell) => sum + cell.rows.size, 0),
    );
    expect(rows.size).toBeGreaterThan(10);
    for (const name of NAMES) {
      const { body } = await server.call(server.keys.router, "GET", `/v1/records/ROUTES/${name}`);
      const { record } = body as { record?: { cell_id: string } };
      expect(record?.cell_id, name).toBe(rows.get(name));
    }
    expect((await copiedNames(checkpoint)).toSorted()).toEqual([...rows.keys()].toSorted());
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
    const claims = shardsOfNames("claim");
    expect([...claims.keys()].toSorted()).toEqual([...rows.keys()].toSorted());
    expect([...claims.values()].filter((shards) => shards.length !== 1)).toEqual([]);
    expect(new Set([...claims.values()].flat()).size).toBe(TO);
  });
}
