/**
 * The Worker with counters: the production objects with ports that count, and a D1 that counts. Only the
 * benchmarks start it.
 */
import { configOf, type Env } from "../../src/coordinator/env.ts";
import production, {
  CellLedger as RealLedger,
  ClaimShard as RealShard,
  Directory as RealDirectory,
} from "../../src/coordinator/index.ts";
import { ledgerName, shardName } from "../../src/coordinator/objects/identity.ts";
import { runCron } from "../../src/coordinator/cron/cron.ts";
import { defaultRuntime } from "../../src/coordinator/runtime.ts";
import { CELLS } from "../peers/batch.ts";
import { ALARMS_PATH, CRON_PATH, ADVANCE_PATH, STOP_PATH } from "./raw-counts.ts";
import { countedD1 } from "./workerd/counted-d1.ts";
import { clock, countedPorts, countMessages, ringTimers, takeAlarm } from "./workerd/counted-ports.ts";
import { answerCounts, counts } from "./workerd/counts.ts";

export class CellLedger extends RealLedger {
  static {
    countMessages("ledger", this.prototype);
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, countedPorts("ledger"));
  }

  /**
   * Runs the alarm if one is set. A method of its own, because callers of an object cannot call `alarm`
   * directly.
   */
  async runAlarm(): Promise<void> {
    if (takeAlarm("ledger", this.ctx)) await this.alarm();
  }

  ringTimers(): Promise<void> {
    return ringTimers(this.ctx);
  }
}

export class ClaimShard extends RealShard {
  static {
    countMessages("shard", this.prototype);
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, countedPorts("shard"));
  }

  async runAlarm(): Promise<void> {
    if (takeAlarm("shard", this.ctx)) await this.alarm();
  }
}

export class Directory extends RealDirectory {
  static {
    countMessages("directory", this.prototype);
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, countedPorts("directory"));
  }
}

const countedEnvs = new WeakMap<Env, Env>();

/**
 * Returns the same object for the same environment, because the application caches its state by environment.
 */
function countedEnv(env: Env): Env {
  const made = countedEnvs.get(env) ?? { ...env, DB: countedD1(env.DB) };
  countedEnvs.set(env, made);
  return made;
}

async function runAllAlarms(env: Env): Promise<void> {
  const ledgers = CELLS.map((cell) => env.CELL_LEDGER.getByName(ledgerName(cell)));
  const shards = [...Array(configOf(env).initialShards).keys()].map((index) =>
    env.CLAIM_SHARD.getByName(shardName(index)),
  );
  const stubs = [...ledgers, ...shards] as unknown as DurableObjectStub<CellLedger | ClaimShard>[];
  await Promise.all(stubs.map((stub) => stub.runAlarm()));
}

async function cron(env: Env): Promise<void> {
  const { now } = clock;
  await runCron(env, now(), { ...defaultRuntime, clock: { ...defaultRuntime.clock, now } });
}

async function advance(env: Env, ms: number): Promise<void> {
  clock.offsetMs += ms;
  if (!clock.isStopped) return;
  const ledgers = CELLS.map((cell) => env.CELL_LEDGER.getByName(ledgerName(cell)));
  const stubs = ledgers as unknown as DurableObjectStub<CellLedger>[];
  await Promise.all(stubs.map((stub) => stub.ringTimers()));
}

/** Handles a control request of the benchmark; undefined for all other requests. */
function control(request: { url: string }, env: Env): Promise<void> | undefined {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === CRON_PATH) return cron(env);
  if (pathname === ALARMS_PATH) return runAllAlarms(env);
  if (pathname === ADVANCE_PATH) return advance(env, Number(searchParams.get("ms")));
  return pathname === STOP_PATH ? Promise.resolve(clock.stop()) : undefined;
}

export default {
  fetch: async (request, env, context) => {
    const answer = answerCounts(request);
    if (answer !== undefined) return answer;
    const done = control(request, countedEnv(env));
    if (done !== undefined) return done.then(() => new Response(null, { status: 204 }));
    counts.current.worker.requests += 1;
    return production.fetch(request, countedEnv(env), context);
  },
  // The scheduled cron does nothing, because it would run in the middle of a count.
  scheduled: () => {},
} satisfies ExportedHandler<Env>;
