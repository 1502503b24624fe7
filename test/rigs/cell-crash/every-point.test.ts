/** The cell dies at every point of everything it does. Its next process reconciles: its rows and its claims agree. */
import { sql } from "drizzle-orm";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startCoordinator } from "../../../scripts/coordinator.ts";
import { AlreadyClaimedError, ClaimLeasedError } from "../../../src/client/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { disagreements, settle } from "./agreement.ts";
import { flows, type Flow, type FlowName, type Names } from "./flows.ts";
import { VICTIM } from "./job.ts";
import { openCell, type OpenCell, type OpenOptions, type Place } from "./open-cell.ts";
import type { Outcome, Point } from "./points.ts";
import { createTables, organizations, users } from "./tables.ts";
import { Victims } from "./victim.ts";

interface World {
  place: Place;
  /** The cell's next process. */
  next: OpenCell;
  /** Another cell. */
  other: OpenCell;
  victims: Victims;
}

const world = {} as World;
const stops: (() => Promise<unknown>)[] = [];
let serial = 0;

async function start(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-cell-crash-"));
  stops.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  world.victims = await Victims.start(folder);
  stops.push(async () => world.victims.end());
  const coordinator = await startCoordinator({ port: 0, stateFolder: join(folder, "state") });
  stops.push(() => coordinator.stop());
  const server = await startPostgres();
  stops.push(() => server.stop());
  const placeOf = async (cell: string): Promise<Place> => ({
    url: coordinator.url,
    cell,
    key: coordinator.keys.cells[cell] ?? "",
    databaseUrl: server.url(await server.createDatabase()),
  });
  world.place = await placeOf("1");
  world.next = openCell(world.place);
  stops.push(() => world.next.close());
  world.other = openCell(await placeOf("2"));
  stops.push(() => world.other.close());
  await createTables(world.next.orm);
  await world.next.cell.install();
}

/** The cell, opened for a moment by another process than the next one. */
async function opens<T>(work: (open: OpenCell) => Promise<T>, options: OpenOptions = {}): Promise<T> {
  const open = openCell(world.place, options);
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

/** The server may still be busy with what a dead process had sent. */
async function untilForgotten({ orm }: OpenCell): Promise<void> {
  for (;;) {
    const { rows } = await orm.execute(
      sql`SELECT 1 FROM pg_stat_activity WHERE application_name = ${VICTIM}`,
    );
    if (rows.length === 0) return;
    await new Promise((resume) => setTimeout(resume, 5));
  }
}

/** Which of `names` the cell has rows for. */
async function present({ orm }: OpenCell, names: readonly string[]): Promise<string[]> {
  const usernames = await orm.select({ name: users.username }).from(users);
  const paths = await orm.select({ name: organizations.path }).from(organizations);
  const all = new Set([...usernames, ...paths].map(({ name }) => name));
  return names.filter((name) => all.has(name));
}

/** Whether the other cell gets a name: it takes it, and lets it go. */
async function isFree(type: "USERNAMES" | "ORGANIZATION_PATH", value: string): Promise<boolean> {
  const { leases } = world.other.client;
  const source = { type: "RAILS_TABLE_USERS", id: value } as const;
  try {
    const { uuid } = await leases.begin({
      creates: [{ bucket: { type, value }, subject: { type: "USER", id: value }, source }],
    });
    await leases.rollback(uuid);
    return true;
  } catch (error) {
    if (error instanceof AlreadyClaimedError || error instanceof ClaimLeasedError) return false;
    throw error;
  }
}

async function dieAt(name: FlowName, point: Point, outcome: Outcome): Promise<void> {
  const flow: Flow = flows[name];
  const names: Names = { old: `old-${(serial += 1)}`, fresh: `fresh-${serial}` };
  const { next } = world;
  await flow.prepare?.(opens, names);
  await world.victims.sacrifice({ place: world.place, flow: name, names, point, hit: hitOf(flow, point) });
  await untilForgotten(next);

  // A usual run decides no lease this young. The dead process still may: its last request can be on its way.
  const { counters } = await next.cell.reconcile();
  if (!isDeferred(name)) expect(counters).toMatchObject({ committed: 0, rolledBack: 0 });

  expect(await settle(next)).toEqual([]);
  expect(await disagreements(next)).toEqual([]);
  const all = [...new Set([...flow.undone(names), ...flow.saved(names), names.old, names.fresh])];
  const left = await present(next, all);
  const allowed = {
    saved: [flow.saved(names)],
    undone: [flow.undone(names)],
    either: [flow.saved(names), flow.undone(names)],
  }[outcome];
  expect(allowed.map((each) => each.toSorted())).toContainEqual(left.toSorted());
  for (const each of all) {
    for (const type of ["USERNAMES", "ORGANIZATION_PATH"] as const)
      if (!left.includes(each)) expect(await isFree(type, each), each).toBe(true);
  }
}

const isDeferred = (name: FlowName): boolean => name.includes("given up");

/** A pre-flight change of a row reads it first, in a transaction of its own. */
const hitOf = (flow: Flow, point: Point): number =>
  flow.readsFirst === true && READS.has(point) ? 2 : (flow.hit ?? 1);
const READS: ReadonlySet<Point> = new Set(["before COMMIT", "COMMIT sent", "after COMMIT"]);

describe.skipIf(isSkipped("PostgreSQL"))("a cell that dies", () => {
  beforeAll(start);

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  for (const name of Object.keys(flows) as FlowName[]) {
    describe(`in ${name}`, () => {
      const points = Object.entries(flows[name].points) as [Point, Outcome][];
      test.each(points)("%s: %s", (point, outcome) => dieAt(name, point, outcome));
    });
  }
});
