/**
 * The Worker with failpoints: the production objects, on ports that stop at one durable write. Only the crash
 * rig starts it.
 */
import type { Ports, Synchronous } from "../../../src/coordinator/kernel/ports.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import type { Env } from "../../../src/coordinator/env.ts";
import production, {
  CellLedger as RealLedger,
  ClaimShard as RealShard,
  Directory as RealDirectory,
} from "../../../src/coordinator/index.ts";
import { objectPorts, type PortsOf } from "../../../src/coordinator/objects/ports.ts";
import { armVariables, CRON_PATH, cronWriteOf, type ObjectKind, type Side } from "./failpoints.ts";
import { wrappedD1 } from "../../support/workerd/wrapped-d1.ts";

interface ArmedFailpoint {
  point: string;
  side: Side;
  hitsLeft: number;
  /** The URL to call when the failpoint was reached. */
  reportUrl: string;
}

/** State of the isolate, which contains the Worker and all objects, so all of them die together. */
let armed: ArmedFailpoint | undefined;
let isDead = false;
/** Whether the last write is durable. */
const last = { isDurable: false };

class Died extends Error {}

function arm(env: Env): void {
  const variables = env as unknown as Record<string, string | undefined>;
  const {
    [armVariables.point]: point,
    [armVariables.side]: side,
    [armVariables.hit]: nth,
    [armVariables.reportUrl]: reportUrl,
  } = variables;
  if (point === undefined || reportUrl === undefined) return;
  armed ??= { point, side: side === "after" ? "after" : "before", hitsLeft: Number(nth ?? 1), reportUrl };
}

/** Counts a hit. Returns the side of this write at which the process must die, if any. */
function hit(names: readonly string[]): Side | undefined {
  if (armed === undefined || !names.includes(armed.point)) return undefined;
  armed.hitsLeft -= 1;
  return armed.hitsLeft === 0 ? armed.side : undefined;
}

/** Stops all writes and answers. Once the last write is durable, the rig is called and kills the process. */
function die(durable: Promise<unknown>): void {
  // The rest of this turn becomes durable together with the write, so it still runs.
  queueMicrotask(() => (isDead = true));
  void durable.then(() => {
    last.isDurable = true;
    report();
  });
}

const report = (): void => void fetch(armed?.reportUrl ?? "", { method: "POST" }).catch(() => {});

/** An object that stopped in its constructor cannot call the rig. A waiting request calls it instead. */
async function reportWhenDead(over: { yes: boolean }): Promise<void> {
  while (!over.yes && !last.isDurable) await new Promise((resume) => setTimeout(resume, 5));
  if (last.isDurable) report();
}

/** Never returns. The timer keeps the runtime from detecting that nothing will happen. */
async function silence(): Promise<never> {
  for (;;) await new Promise((resume) => setTimeout(resume, 60_000));
}

async function unlessDead<T>(work: Promise<T>): Promise<T> {
  const runToEnd = await work.then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error;
    },
  );
  return isDead ? silence() : runToEnd();
}

const failing =
  (kind: ObjectKind): PortsOf =>
  (ctx) => {
    const real = objectPorts(ctx);
    const transaction = <T>(points: readonly WritePoint[], work: () => Synchronous<T>): T => {
      if (isDead) throw new Died();
      const side = hit(points.map((write) => `${kind}:${write}`));
      if (side === "before") {
        isDead = true;
        die(Promise.resolve());
        throw new Died();
      }
      const value = real.sql.transaction(points, work);
      if (side === "after") die(real.sql.flush());
      return value;
    };
    const ports: Ports = {
      ...real,
      sql: { ...real.sql, transaction, flush: () => unlessDead(real.sql.flush()) },
      alarm: { ...real.alarm, set: (atMs) => (isDead ? undefined : real.alarm.set(atMs)) },
      // A dead process does not end its instances either.
      halt: (reason) => (isDead ? undefined : real.halt(reason)),
    };
    return ports;
  };

export class CellLedger extends RealLedger {
  constructor(ctx: DurableObjectState, env: Env) {
    arm(env);
    super(ctx, env, failing("ledger"));
  }
}

export class ClaimShard extends RealShard {
  constructor(ctx: DurableObjectState, env: Env) {
    arm(env);
    super(ctx, env, failing("shard"));
  }
}

export class Directory extends RealDirectory {
  constructor(ctx: DurableObjectState, env: Env) {
    arm(env);
    super(ctx, env, failing("directory"));
  }
}

async function execute<T>(sql: readonly string[], work: () => Promise<T>): Promise<T> {
  if (isDead) return silence();
  const side = hit(
    sql
      .map(cronWriteOf)
      .filter((name) => name !== undefined)
      .slice(0, 1),
  );
  if (side === "before") {
    die(Promise.resolve());
    return silence();
  }
  const result = await unlessDead(work());
  if (side === "after") {
    die(Promise.resolve());
    return silence();
  }
  return result;
}

async function runCron(env: Env): Promise<void> {
  const event = { scheduledTime: Date.now(), cron: "* * * * *" } as ScheduledController;
  await unlessDead(production.scheduled(event, { ...env, DB: wrappedD1(env.DB, execute) }));
}

async function answerOf(
  request: Parameters<typeof production.fetch>[0],
  env: Env,
  context: ExecutionContext,
): Promise<Response> {
  if (new URL(request.url).pathname !== CRON_PATH)
    return unlessDead(Promise.resolve(production.fetch(request, env, context)));
  await runCron(env);
  return new Response(null, { status: 204 });
}

export default {
  fetch: async (request, env, context) => {
    arm(env);
    if (isDead) return silence();
    const over = { yes: false };
    if (armed !== undefined) context.waitUntil(reportWhenDead(over));
    const answer = await answerOf(request, env, context);
    over.yes = true;
    return answer;
  },
  scheduled: (_event, env) => {
    arm(env);
    return runCron(env);
  },
} satisfies ExportedHandler<Env>;
