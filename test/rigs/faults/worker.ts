/** The Worker as src/index.ts makes it, except that everything goes through a world (world.ts), where tests let it go wrong. */
import type { Env } from "../../../src/env.ts";
import { app } from "../../../src/http/app.ts";
import { CellLedger as RealLedger } from "../../../src/objects/cell-ledger.ts";
import { ClaimShard as RealShard } from "../../../src/objects/claim-shard.ts";
import { Directory as RealDirectory } from "../../../src/objects/directory.ts";
import { runCron } from "../../../src/projections/cron.ts";
import { faultyEnv } from "./faulty-env.ts";
import { faultyPorts, Life } from "./faulty-ports.ts";
import { prepareIsolate } from "./isolate.ts";
import { worldOf, type World } from "./world.ts";

prepareIsolate();

export class CellLedger extends RealLedger {
  constructor(ctx: DurableObjectState, env: Env) {
    const life = new Life(ctx);
    super(ctx, faultyEnv(env, life.world, life.label, life.check), faultyPorts(life));
  }
}

export class ClaimShard extends RealShard {
  constructor(ctx: DurableObjectState, env: Env) {
    const life = new Life(ctx);
    super(ctx, faultyEnv(env, life.world, life.label, life.check), faultyPorts(life));
  }
}

export class Directory extends RealDirectory {
  constructor(ctx: DurableObjectState, env: Env) {
    const life = new Life(ctx);
    super(ctx, faultyEnv(env, life.world, life.label, life.check), faultyPorts(life));
  }
}

const envs = new WeakMap<World, { generation: number; env: Env }>();

/** What caches hang on: an isolate has one for all of its requests. When everything has died it is another isolate. */
function workerEnv(env: Env, world: World): Env {
  const { generation } = world;
  const known = envs.get(world);
  if (known?.generation === generation) return known.env;
  const isAlive = (): void => {
    if (world.generation !== generation) throw new Error("this Worker has died");
  };
  const made = faultyEnv(env, world, "worker", isAlive);
  envs.set(world, { generation, env: made });
  return made;
}

/** The world is in the host of a request, `world-12.test`, and in the place of the cron's pattern. */
export default {
  fetch: async (request, env, context) =>
    app.fetch(request, workerEnv(env, worldIn(new URL(request.url).hostname)), context),
  scheduled: async (event, env) => {
    await runCron(workerEnv(env, worldIn(event.cron)), event.scheduledTime);
  },
} satisfies ExportedHandler<Env>;

const worldIn = (text: string): World => worldOf(Number(/\d+/.exec(text)?.[0]));
