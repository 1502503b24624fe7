/**
 * Kills the cell at points of each flow, an eighth of them at each change. After the cell's next process has
 * reconciled, rows and claims must agree.
 */
import { sql } from "drizzle-orm";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startCoordinator } from "../../../src/hosts/workerd/coordinator.ts";
import { AlreadyClaimedError, ClaimLeasedError } from "../../../src/users/client/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { inSlice } from "../../support/slice.ts";
import { findDisagreements, reconcileUntilDone } from "./agreement.ts";
import { flows, type Flow, type FlowName, type Names } from "./flows.ts";
import { KILLED_PROCESS } from "./job.ts";
import { openCell, type OpenCell, type OpenOptions, type CellConfig } from "./open-cell.ts";
import type { LocalOutcome, Point } from "./points.ts";
import { createTables, organizations, users } from "./tables.ts";
import { KillableProcesses } from "./killable-processes.ts";

interface TestSetup {
  config: CellConfig;
  /** The next process of the cell. */
  next: OpenCell;
  /** Another cell. */
  other: OpenCell;
  processes: KillableProcesses;
}

const setup = {} as TestSetup;
const stops: (() => Promise<unknown>)[] = [];
let serial = 0;

async function start(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-cell-crash-"));
  stops.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  setup.processes = await KillableProcesses.start(folder);
  stops.push(async () => setup.processes.end());
  const coordinator = await startCoordinator({ port: 0, stateFolder: join(folder, "state") });
  stops.push(() => coordinator.stop());
  const server = await startPostgres();
  stops.push(() => server.stop());
  const configOf = async (cell: string): Promise<CellConfig> => ({
    url: coordinator.url,
    cell,
    key: coordinator.keys.cells[cell] ?? "",
    databaseUrl: server.url(await server.createDatabase()),
  });
  setup.config = await configOf("1");
  setup.next = openCell(setup.config);
  stops.push(() => setup.next.close());
  setup.other = openCell(await configOf("2"));
  stops.push(() => setup.other.close());
  await createTables(setup.next.orm);
  await setup.next.cell.install();
}

/** Opens the cell in another process than the next one. */
async function opens<T>(work: (open: OpenCell) => Promise<T>, options: OpenOptions = {}): Promise<T> {
  const open = openCell(setup.config, options);
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

/** Waits until PostgreSQL has dropped the connections of the killed process. */
async function untilForgotten({ orm }: OpenCell): Promise<void> {
  for (;;) {
    const { rows } = await orm.execute(
      sql`SELECT 1 FROM pg_stat_activity WHERE application_name = ${KILLED_PROCESS}`,
    );
    if (rows.length === 0) return;
    await new Promise((resume) => setTimeout(resume, 5));
  }
}

/** The names that the cell has rows for. */
async function present({ orm }: OpenCell, names: readonly string[]): Promise<string[]> {
  const usernames = await orm.select({ name: users.username }).from(users);
  const paths = await orm.select({ name: organizations.path }).from(organizations);
  const all = new Set([...usernames, ...paths].map(({ name }) => name));
  return names.filter((name) => all.has(name));
}

/** Whether the other cell can take a name. It takes it and rolls back. */
async function isFree(type: "USERNAMES" | "ORGANIZATION_PATH", value: string): Promise<boolean> {
  const { leases } = setup.other.client;
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

async function dieAt(name: FlowName, point: Point, outcome: LocalOutcome): Promise<void> {
  const flow: Flow = flows[name];
  const names: Names = { old: `old-${(serial += 1)}`, fresh: `fresh-${serial}` };
  const { next } = setup;
  await flow.prepare?.(opens, names);
  await setup.processes.runAndKill({
    config: setup.config,
    flow: name,
    names,
    point,
    hit: hitOf(flow, point),
  });
  await untilForgotten(next);

  // A reconciliation with the default thresholds decides no recent lease. A late request of the dead process
  // may still decide it. Deferred deletions are decided at once, however recent they are.
  const { counters } = await next.cell.reconcile();
  if (!isDeferred(name)) expect(counters).toMatchObject({ committed: 0, rolledBack: 0 });

  expect(await reconcileUntilDone(next)).toEqual([]);
  expect(await findDisagreements(next)).toEqual([]);
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

/** A pre-flight change first reads its row in a separate transaction, so its points are hit twice. */
const hitOf = (flow: Flow, point: Point): number =>
  flow.readsFirst === true && READS.has(point) ? 2 : (flow.hit ?? 1);
const READS: ReadonlySet<Point> = new Set(["before COMMIT", "COMMIT sent", "after COMMIT"]);

describe.skipIf(isSkipped("PostgreSQL"))("a cell that is killed", () => {
  beforeAll(start);

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  for (const name of Object.keys(flows) as FlowName[]) {
    describe(`in ${name}`, () => {
      const points = Object.entries(flows[name].points) as [Point, LocalOutcome][];
      test.each(inSlice(points, 8))("%s: %s", (point, outcome) => dieAt(name, point, outcome));
    });
  }
});
