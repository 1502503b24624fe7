/**
 * Kills the Python cell at every point of each flow. After its next process has reconciled, rows and claims
 * must agree. The SDK, on the same tables, is the judge.
 */
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { v7 as uuidv7 } from "uuid";
import { createClient, isLeaseholdError, type Client } from "../../../src/users/client/index.ts";
import type { TestedCoordinator } from "../../users/cell/scenarios/drizzle.ts";
import { testCoordinator } from "../../users/cell/scenarios/starts.ts";
import { findDisagreements } from "../../rigs/cell-crash/agreement.ts";
import { KILLED_PROCESS } from "../../rigs/cell-crash/job.ts";
import { openCell, type OpenCell } from "../../rigs/cell-crash/open-cell.ts";
import type { LocalOutcome, Point } from "../../rigs/cell-crash/points.ts";
import { createTables, organizations, users } from "../../rigs/cell-crash/tables.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { findPython } from "../../support/python.ts";
import { crashFlows, crashTables, reconcileAll, type CrashFlow, type CrashFlowName } from "./crash-flows.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { PythonProcess, type ProcessConfig } from "./python-process.ts";

const MOST_RUNS = 50;

interface Setup {
  coordinator: TestedCoordinator;
  config: ProcessConfig;
  /** The cell's next process, and processes with a fault that prepare a case. */
  next: PythonProcess;
  faulty: Record<"lost commit" | "no removal", PythonProcess>;
  /** The SDK's view of the same cell. */
  seen: OpenCell;
  /** Another cell. */
  other: Client;
}

const setup = {} as Setup;
const stops: (() => Promise<unknown>)[] = [];
let serial = 0;
/** Started in advance, because starting takes longer than dying. */
let spare: PythonProcess | undefined;

function started(config: ProcessConfig): PythonProcess {
  const python = (spare ?? new PythonProcess()).configure(config);
  spare = new PythonProcess();
  return python;
}

async function start(): Promise<void> {
  const coordinator = await testCoordinator();
  stops.push(() => coordinator.stop());
  const proxy = new FaultProxy(coordinator);
  const url = await proxy.start();
  stops.push(() => proxy.stop());
  const server = await startPostgres();
  stops.push(() => server.stop());
  const keyOf = (cell: string): string => coordinator.keys.cell(cell);
  const key = keyOf("1");
  const databaseUrl = server.url(await server.createDatabase());
  const config = { url, cell: "1", key, database_url: databaseUrl, tables: crashTables, retries: 0 };
  const next = new PythonProcess().configure(config);
  const faulty = {
    "lost commit": new PythonProcess().configure({ ...config, fault: "lost commit" }),
    "no removal": new PythonProcess().configure({ ...config, fault: "no removal" }),
  };
  stops.push(() => Promise.all([next, ...Object.values(faulty)].map((each) => each.kill())));
  const seen = openCell({ url, cell: "1", key, databaseUrl });
  stops.push(() => seen.close());
  const patient = { attemptMs: 60_000, deadlineMs: 60_000 };
  const other = createClient({ url, key: keyOf("2"), cell: "2", ...patient });
  Object.assign(setup, { coordinator, config, next, faulty, seen, other });
  await createTables(seen.orm);
  await next.request("install");
  await seen.cell.install();
}

/** Waits until PostgreSQL has dropped the connections of the killed process. */
async function untilForgotten(): Promise<void> {
  for (;;) {
    const { rows } = await setup.seen.orm.execute(
      sql`SELECT 1 FROM pg_stat_activity WHERE application_name = ${KILLED_PROCESS}`,
    );
    if (rows.length === 0) return;
    await new Promise((resume) => setTimeout(resume, 5));
  }
}

/**
 * Runs a flow in a process of its own and kills it at its point. The coordinator gets whatever the process
 * has sent, and has dealt with it before this returns: a request that is on its way would otherwise be
 * granted after the reconciliation.
 */
async function killAt(flow: CrashFlow, names: Parameters<CrashFlow["act"]>[0], point: Point): Promise<void> {
  const { config, coordinator } = setup;
  const proxy = new FaultProxy(coordinator);
  const python = started({
    ...config,
    url: await proxy.start(),
    database_url: `${config.database_url}?application_name=${encodeURIComponent(KILLED_PROCESS)}`,
    point,
    fault: flow.fault,
  });
  const { op, options } = flow.act(names);
  try {
    const { reached, sent } = await python.runToPoint(op, options);
    expect(reached).toBe(point);
    await python.kill();
    await proxy.untilHandled(sent);
  } finally {
    await python.kill();
    await proxy.stop();
  }
}

async function reconcileUntilDone(): Promise<void> {
  for (let run = 1; run <= MOST_RUNS; run += 1) {
    const counts = await setup.next.request<Record<string, number>>(reconcileAll.op, reconcileAll.options);
    expect(counts["contradicted"] ?? 0).toBe(0);
    if ((counts["processed"] ?? 0) === 0) return;
  }
  throw new Error(`reconciliation is not done after ${MOST_RUNS} runs`);
}

async function present(names: readonly string[]): Promise<string[]> {
  const { orm } = setup.seen;
  const usernames = await orm.select({ name: users.username }).from(users);
  const paths = await orm.select({ name: organizations.path }).from(organizations);
  const all = new Set([...usernames, ...paths].map(({ name }) => name));
  return names.filter((name) => all.has(name));
}

/** Whether the other cell can take a name. It takes it and rolls back. */
async function isFree(type: "USERNAMES" | "ORGANIZATION_PATH", value: string): Promise<boolean> {
  const { leases } = setup.other;
  const source = { type: "RAILS_TABLE_USERS", id: value } as const;
  try {
    const { uuid } = await leases.begin({
      creates: [{ bucket: { type, value }, subject: { type: "USER", id: value }, source }],
    });
    await leases.rollback(uuid);
    return true;
  } catch (error) {
    if (isLeaseholdError(error) && error.conflicts.length > 0) return false;
    throw error;
  }
}

async function dieAt(name: CrashFlowName, point: Point, outcome: LocalOutcome): Promise<void> {
  const flow: CrashFlow = crashFlows[name];
  const names = { old: `old-${(serial += 1)}`, fresh: `fresh-${serial}`, id: uuidv7() };
  const { next, faulty, seen } = setup;
  await flow.prepare?.(
    {
      run: ({ op, options }, fault) => (fault === undefined ? next : faulty[fault]).request(op, options),
      beginOnly: (value) => {
        const source = { type: "RAILS_TABLE_USERS", id: value } as const;
        const create = { bucket: { type: "USERNAMES", value }, subject: { type: "USER", id: value }, source };
        return seen.client.leases.begin({ creates: [create as never] });
      },
    },
    names,
  );
  await killAt(flow, names, point);
  await untilForgotten();

  // With the default thresholds no recent lease is decided, because a late request may still decide it.
  const young = await next.request<Record<string, number>>("reconcile");
  expect(young).not.toHaveProperty("committed");
  expect(young).not.toHaveProperty("rolled_back");

  await reconcileUntilDone();
  expect(await findDisagreements(seen)).toEqual([]);
  const all = [...new Set([...flow.undone(names), ...flow.saved(names), names.old, names.fresh])];
  const left = await present(all);
  const allowed = {
    saved: [flow.saved(names)],
    undone: [flow.undone(names)],
    either: [flow.saved(names), flow.undone(names)],
  }[outcome];
  expect(allowed.map((each) => each.toSorted())).toContainEqual(left.toSorted());
  for (const each of all) {
    const type = each.endsWith("-group") ? "ORGANIZATION_PATH" : "USERNAMES";
    expect(await isFree(type, each), each).toBe(!left.includes(each));
  }
}

describe.skipIf(isSkipped("PostgreSQL") || findPython() === undefined)("a Python cell that is killed", () => {
  beforeAll(start);

  afterAll(async () => {
    await spare?.kill();
    for (const stop of stops.toReversed()) await stop();
  });

  for (const name of Object.keys(crashFlows) as CrashFlowName[]) {
    describe(`in ${name}`, () => {
      const points = Object.entries(crashFlows[name].points) as [Point, LocalOutcome][];
      test.each(points)("%s: %s", (point, outcome) => dieAt(name, point, outcome));
    });
  }
});
