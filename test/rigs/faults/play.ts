/** Plays a scenario with faults, lets it heal, and looks at what is left. */
import { applyD1Migrations } from "cloudflare:test";
import { env } from "../../support/workerd/api.ts";
import {
  expectConsistent,
  expectDirectory,
  expectFinal,
  expectKeysToMatch,
  expectRecordToMatch,
} from "./invariants.ts";
import type { ArmedFault, Journal } from "./armed-fault.ts";
import type { Scenario } from "./scenarios.ts";
import { SHARDS, Stage } from "./stage.ts";
import { newDeployment } from "./test-deployment.ts";

/** So that waiting for an answer that does not come takes no time. */
const shortLimits = {
  LEASEHOLD_EXCHANGE_TIMEOUT_MS: "150",
  LEASEHOLD_INQUIRY_TIMEOUT_MS: "100",
  LEASEHOLD_BEGIN_DEADLINE_MS: "700",
  LEASEHOLD_COMMIT_DEADLINE_MS: "400",
};

/** For recording: what is slow there is slow by itself. */
const patientLimits = {
  LEASEHOLD_EXCHANGE_TIMEOUT_MS: "600",
  LEASEHOLD_INQUIRY_TIMEOUT_MS: "600",
  LEASEHOLD_BEGIN_DEADLINE_MS: "3000",
  LEASEHOLD_COMMIT_DEADLINE_MS: "3000",
};

const SHARED = "DB";
const OWN_DATABASES = ["OWN_DB_0", "OWN_DB_1", "OWN_DB_2", "OWN_DB_3"];
const freeDatabases = [...OWN_DATABASES];
const waiting: ((own: string) => void)[] = [];

/** The tables of every D1. Once per file. */
export async function prepareDatabases(): Promise<void> {
  for (const name of [SHARED, ...OWN_DATABASES])
    await applyD1Migrations(databaseOf(name), env.TEST_MIGRATIONS);
}

function databaseOf(name: string): D1Database {
  const database = (env as unknown as Record<string, D1Database | undefined>)[name];
  if (database === undefined) throw new Error(`there is no binding ${name}`);
  return database;
}

/** A D1 for one deployment alone, empty; or the one that all others share. */
async function inDatabase<T>(ownsD1: boolean, work: (name: string) => Promise<T>): Promise<T> {
  if (!ownsD1) return work(SHARED);
  const own = freeDatabases.pop() ?? (await new Promise<string>((resolve) => waiting.push(resolve)));
  try {
    const database = databaseOf(own);
    await database.batch(
      ["leases", "cells", "keys", "cron_runs"].map((table) => database.prepare(`DELETE FROM ${table}`)),
    );
    return await work(own);
  } finally {
    const next = waiting.shift();
    if (next === undefined) freeDatabases.push(own);
    else next(own);
  }
}

/** A deployment of patient limits, with nothing in it. */
export const startStage = (database = SHARED): Stage =>
  new Stage(newDeployment({ LEASEHOLD_SHARDS: String(SHARDS), ...patientLimits }, database));

/** What a scenario does when nothing goes wrong. */
export async function record(scenario: Scenario): Promise<Journal> {
  return inDatabase(scenario.ownsD1 === true, async (database) => {
    const stage = startStage(database);
    await scenario.arrange(stage);
    stage.deployment.begin([]);
    await scenario.act(stage);
    const { journal } = stage.deployment;
    stage.deployment.begin([]);
    return journal;
  });
}

/** On a busy machine what is slow is given up, and a fault that waits for what comes next may meet something else. */
const TRIES = 3;

/** Until every fault has happened where it should. `arm` makes them anew. */
export async function play(scenario: Scenario, arm: () => ArmedFault[]): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const astray = await playOnce(scenario, arm());
    if (astray.length === 0) return;
    if (tries === TRIES) throw new Error(astray.join("\n"));
  }
}

/** What happened elsewhere than it should; then the rest is not looked at. A failure tells what was called, in order. */
async function playOnce(scenario: Scenario, faults: ArmedFault[]): Promise<string[]> {
  return inDatabase(scenario.ownsD1 === true, async (database) => {
    const stage = new Stage(newDeployment({ LEASEHOLD_SHARDS: String(SHARDS), ...shortLimits }, database));
    try {
      await scenario.arrange(stage);
      stage.deployment.begin(faults);
      await scenario.act(stage);
      await heal(stage, scenario);
      const { journal } = stage.deployment;
      const astray = faults.flatMap((armed) => whereWrong(armed, journal));
      if (astray.length > 0) return [...astray, "", journal.describe()];
      await expectAll(stage, scenario);
      return [];
    } catch (error) {
      if (error instanceof Error) error.message += `\n\n${stage.deployment.journal.describe()}`;
      throw error;
    }
  });
}

function whereWrong({ at, fired, write, call }: ArmedFault, { writes }: Journal): string[] {
  if (!fired) return [`nothing happened at ${JSON.stringify(at)}`];
  const isThere = write === undefined || writes.some((made) => made.label === write && made.call === call);
  return isThere ? [] : [`${call?.label} does not make ${write}`];
}

/** What is late arrives in between, so that it meets objects that have recovered. */
async function heal(stage: Stage, { ownsD1 = false }: Scenario): Promise<void> {
  await stage.ringAll();
  await stage.deployment.deliverStale();
  await stage.recover();
  if (ownsD1) await stage.cron();
}

async function expectAll(stage: Stage, { ownsD1 = false }: Scenario): Promise<void> {
  await expectConsistent(stage);
  await expectDirectory(stage);
  await finish(stage);
  await expectConsistent(stage);
  await expectFinal(stage);
  await expectRecordToMatch(stage);
  if (ownsD1) await expectKeysToMatch(stage);
}

/** Every begin that was granted is the same lease again, and can be decided. */
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
