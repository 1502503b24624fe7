/** Runs a scenario with faults, recovers, and checks the invariants. */
import { applyD1Migrations } from "cloudflare:test";
import { env } from "../../support/workerd/api.ts";
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
import { SHARDS, Stage } from "./stage.ts";
import { newDeployment } from "./test-deployment.ts";

/** Short timeouts, so that waiting for a lost answer takes little time. */
const shortLimits = {
  LEASEHOLD_EXCHANGE_TIMEOUT_MS: "150",
  LEASEHOLD_INQUIRY_TIMEOUT_MS: "100",
  LEASEHOLD_BEGIN_DEADLINE_MS: "700",
  LEASEHOLD_COMMIT_DEADLINE_MS: "400",
};

/** Long timeouts for recording, so that slowness causes no retries. */
const patientLimits = {
  LEASEHOLD_EXCHANGE_TIMEOUT_MS: "600",
  LEASEHOLD_INQUIRY_TIMEOUT_MS: "600",
  LEASEHOLD_BEGIN_DEADLINE_MS: "3000",
  LEASEHOLD_COMMIT_DEADLINE_MS: "3000",
};

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
    await database.batch(
      ["leases", "cells", "keys", "cron_runs", "seen_points", "type_sets", "growths", "audit"].map((table) =>
        database.prepare(`DELETE FROM ${table}`),
      ),
    );
    return await work(own);
  } finally {
    const next = waiting.shift();
    if (next === undefined) freeDatabases.push(own);
    else next(own);
  }
}

/** A new, empty deployment with long timeouts. */
export const startStage = (database = COMMON): Stage =>
  new Stage(newDeployment({ LEASEHOLD_SHARDS: String(SHARDS), ...patientLimits }, database));

/** Records what a scenario does without faults. */
export async function record(scenario: Scenario): Promise<Journal> {
  return inDatabase(async (database) => {
    const stage = startStage(database);
    await scenario.arrange(stage);
    stage.deployment.begin([]);
    await scenario.act(stage);
    const { journal } = stage.deployment;
    stage.deployment.begin([]);
    await stage.deployment.end();
    return journal;
  });
}

/** On a slow machine a call may time out, and a fault that waits for the next call may hit another one. */
const TRIES = 3;

/**
 * Runs a scenario until every fault has happened where it should. `arm` creates the faults for each attempt.
 */
export async function play(scenario: Scenario, arm: () => ArmedFault[]): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const misplaced = await playOnce(scenario, arm());
    if (misplaced.length === 0) return;
    if (tries === TRIES) throw new Error(misplaced.join("\n"));
  }
}

/**
 * Runs a scenario once. Returns the faults that happened elsewhere; then nothing else is checked. A failure
 * lists the calls in order.
 */
async function playOnce(scenario: Scenario, faults: ArmedFault[]): Promise<string[]> {
  return inDatabase(async (database) => {
    const stage = new Stage(newDeployment({ LEASEHOLD_SHARDS: String(SHARDS), ...shortLimits }, database));
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
  await stage.recover();
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
  await stage.recover();
  await stage.cron();
}
