import { asc, count } from "drizzle-orm";
import { secretsOf } from "../../../auth/secrets.ts";
import { configOf, type Env } from "../../../env.ts";
import type { CronRun } from "../../../cron/cron-run.ts";
import type { Database } from "../../../d1/database.ts";
import { webhooks } from "../../../d1/schema.ts";
import { CLAIM_STATEMENTS, deliver, RECORD_STATEMENTS } from "./deliver.ts";
import { evaluate } from "./evaluate.ts";
import { giveUpOld } from "./give-up.ts";
import type { RunFacts } from "./rules/rule.ts";

/** What the rules and the steps of alerts need. */
const EVALUATION_STATEMENTS = 50;
/** What one endpoint needs, with second attempts. */
const ENDPOINT_STATEMENTS = CLAIM_STATEMENTS + RECORD_STATEMENTS;

/** The statements that a run needs for its webhooks. 0: there are none. */
export async function statementsOfWebhooks(database: Database): Promise<number> {
  const counted = await database.run("read webhook count", (orm) =>
    orm.select({ count: count() }).from(webhooks),
  );
  const endpoints = counted.ok ? (counted.value[0]?.count ?? 0) : 0;
  return endpoints === 0 ? 0 : EVALUATION_STATEMENTS + endpoints * ENDPOINT_STATEMENTS;
}

/**
 * Tells the endpoints what a run has found. It comes after everything else in the run, and its failures
 * change nothing but the log.
 */
export async function notify(env: Env, run: CronRun, facts: RunFacts): Promise<void> {
  const { database, runtime, limits } = run;
  // All of them: the limit may have been lowered since they were added.
  const endpoints = await database.run("read webhooks", (orm) =>
    orm.select().from(webhooks).orderBy(asc(webhooks.createdAtMs), asc(webhooks.webhookId)),
  );
  if (!endpoints.ok || endpoints.value.length === 0) return;
  await evaluate(run, endpoints.value, facts);
  await giveUpOld(run);
  const secrets = secretsOf(env);
  if (!secrets.ok) return runtime.log("webhooks_unsigned", { error: secrets.refusal.detail });
  await deliver(run, endpoints.value, {
    secrets: secrets.value,
    clock: runtime.clock,
    hosts: configOf(env).webhookHosts,
    timeoutMs: limits.webhookTimeoutMs,
    fetch: (...request) => fetch(...request),
  });
}
