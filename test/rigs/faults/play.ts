/** Runs a scenario with faults, recovers, and checks the invariants. */
import { d1Tables } from "./d1-names.ts";
import { applyD1Migrations } from "cloudflare:test";
import { env } from "../../support/workerd/api.ts";
import { documented } from "./documented.ts";
import {
  expectConsistent,
  expectDirectory,
  expectFinal,
  expectKeysToMatch,
  expectRecordToMatch,
  expectTypes,
} from "./invariants.ts";
import type { ArmedFault, Journal } from "./armed-fault.ts";
import type { Scenario } from "./scenarios.ts";
import { SHARDS, Stage, UnclearError } from "./stage.ts";
import { newDeployment } from "./test-deployment.ts";

/**
 * On a slow machine a call may time out, and a fault that waits for the next call may hit another one. Each
 * attempt has longer timeouts.
 */
const FACTORS = [1, 4, 16] as const;

/** Short timeouts, so that waiting for a lost answer takes little time, or `factor` times as long. */
const shortLimits = (factor: number): Record<string, string> => ({
  LEASEHOLD_EXCHANGE_TIMEOUT_MS: String(150 * factor),
  LEASEHOLD_INQUIRY_TIMEOUT_MS: String(100 * factor),
  LEASEHOLD_BEGIN_DEADLINE_MS: String(700 * factor),
  LEASEHOLD_COMMIT_DEADLINE_MS: String(400 * factor),
});

/** The database of tests that run one after the other. */
const COMMON = "DB";
const { FAULT_SCENARIOS } = env as unknown as { FAULT_SCENARIOS: string };
const databases = Array.from({ length: Number(FAULT_SCENARIOS) }, (_, n) => `SCENARIO_DB_${n}`);
const freeDatabases = [...databases];
const waiting: ((free: string) => void)[] = [];

/** Creates the tables of every D1 database. Call it once per file. */
export async function prepareDatabases(): Promise<void> {
  for (const name of [COMMON, ...databases]) await applyD1Migrations(databaseOf(name), env.TEST_MIGRATIONS);
}

function databaseOf(name: string): D1Database {
  const database = (env as unknown as Record<string, D1Database | undefined>)[name];
  if (database === undefined) throw new Error(`there is no binding ${name}`);
  return database;
}

/** Runs `work` with an empty D1 database of its own, because a deployment shares its D1 with no other. */
async function inDatabase<T>(work: (name: string) => Promise<T>): Promise<T> {
  const own = freeDatabases.pop() ?? (await new Promise<string>((resolve) => waiting.push(resolve)));
  try {
    const database = databaseOf(own);
    await database.batch(d1Tables.map((table) => database.prepare(`DELETE FROM ${table}`)));
    return await work(own);
  } finally {
    const next = waiting.shift();
    if (next === undefined) freeDatabases.push(own);
    else next(own);
  }
}

/** A new, empty deployment. */
export const startStage = (database = COMMON, factor: number = FACTORS[1]): Stage =>
  new Stage(newDeployment({ LEASEHOLD_SHARDS: String(SHARDS), ...shortLimits(factor) }, database));

/** Whether the writes are those that the documentation lists. Those of two objects have no order. */
const isDocumented = ({ title }: Scenario, { writes }: Journal): boolean =>
  writes
    .map(({ label }) => label)
    .toSorted()
    .join() === documented.get(title)?.join();

/** Records what a scenario does without faults, and without calls that slowness repeats. */
export async function record(scenario: Scenario): Promise<Journal> {
  const journal = await recordOnce(scenario, FACTORS[1]);
  return isDocumented(scenario, journal) ? journal : recordOnce(scenario, FACTORS[2]);
}

async function recordOnce(scenario: Scenario, factor: number): Promise<Journal> {
  return inDatabase(async (database) => {
    const stage = startStage(database, factor);
    await scenario.arrange(stage);
    stage.deployment.begin([]);
    await scenario.act(stage);
    const { journal } = stage.deployment;
    stage.deployment.begin([]);
    await stage.deployment.end();
    return journal;
  });
}

/**
 * Runs a scenario until every fault has happened where it should. `arm` creates the faults for each attempt.
 * Returns why it needed longer timeouts, as on a slow machine. Fails if the longest don't help either.
 */
export async function play(scenario: Scenario, arm: () => ArmedFault[]): Promise<string[]> {
  const repeated: string[] = [];
  let misplaced: string[] = [];
  for (const factor of FACTORS) {
    misplaced = await playOnce(scenario, arm(), factor);
    if (misplaced.length === 0) return repeated;
    repeated.push(`with ${factor} times the timeouts, ${misplaced[0]}`);
  }
  throw new Error(misplaced.join("\n"));
}

/**
 * Runs a scenario once. Returns the faults that happened elsewhere, or the call that never had a clear
 * answer; then nothing else is checked. A failure lists the calls in order.
 */
async function playOnce(scenario: Scenario, faults: ArmedFault[], factor: number): Promise<string[]> {
  return inDatabase(async (database) => {
    const stage = startStage(database, factor);
    try {
      await scenario.arrange(stage);
      stage.deployment.begin(faults);
      await scenario.act(stage);
      await heal(stage, scenario);
      const { journal } = stage.deployment;
      const misplaced = faults.flatMap((armed) => whereWrong(armed, journal));
      if (misplaced.length > 0) return [...misplaced, "", journal.describe()];
      await expectAll(stage, scenario);
      return [];
    } catch (error) {
      if (error instanceof UnclearError) return [error.message, "", stage.deployment.journal.describe()];
      if (error instanceof Error) error.message += `\n\n${stage.deployment.journal.describe()}`;
      throw error;
    } finally {
      await stage.deployment.end();
    }
  });
}

function whereWrong({ at, fired, write, call }: ArmedFault, { writes }: Journal): string[] {
  if (!fired) return [`no fault happened at ${JSON.stringify(at)}`];
  const isThere = write === undefined || writes.some((made) => made.label === write && made.call === call);
  return isThere ? [] : [`${call?.label} does not make ${write}`];
}

/** Recovers. Stale messages arrive in the middle, when the objects have already recovered. */
async function heal(stage: Stage, { comparesD1 = false }: Scenario): Promise<void> {
  await stage.ringAll();
  await stage.deployment.deliverStale();
  await settle(stage);
  if (comparesD1) await stage.cron();
}

async function expectAll(stage: Stage, { comparesD1 = false }: Scenario): Promise<void> {
  await expectConsistent(stage);
  await expectDirectory(stage);
  await expectTypes(stage);
  await finish(stage);
  await expectConsistent(stage);
  await expectFinal(stage);
  await expectRecordToMatch(stage);
  if (comparesD1) await expectKeysToMatch(stage);
}

/** Repeats every granted begin, which must return the same lease, and decides it. */
async function finish(stage: Stage): Promise<void> {
  let turn = 0;
  for (const [name, { cell, batch, states }] of stage.leases) {
    const last = states.at(-1);
    if (last === "ROLLED_BACK")
      await stage.begin(name, cell, batch, [{ status: 409, reason: "LEASE_ROLLED_BACK" }]);
    if (last === "GRANTED") {
      await stage.begin(name, cell, batch, [{ status: 200 }]);
      await stage.decide(name, turn++ % 2 === 0 ? "commit" : "rollback");
    }
  }
  await settle(stage);
  await stage.cron();
}

async function settle(stage: Stage): Promise<void> {
  if (!(await stage.recover())) throw new UnclearError("decisions stay open although nothing fails any more");
}
