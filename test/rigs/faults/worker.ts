/**
 * The Worker of src/coordinator/index.ts, except that all calls go through a TestDeployment, where tests can
 * make them fail.
 */
import type { Env } from "../../../src/coordinator/env.ts";
import { serveRequest } from "../../../src/coordinator/api/web-request.ts";
import {
  CellLedger as RealLedger,
  ClaimShard as RealShard,
  Directory as RealDirectory,
} from "../../../src/coordinator/objects/durable-objects.ts";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import { faultyEnv } from "./faulty-env.ts";
import { faultyPorts, FaultyInstance } from "./faulty-ports.ts";
import { prepareIsolate } from "./isolate.ts";
import { deploymentOf, type TestDeployment } from "./test-deployment.ts";

prepareIsolate();

export class CellLedger extends RealLedger {
  constructor(ctx: DurableObjectState, env: Env) {
    const instance = new FaultyInstance(ctx);
    super(ctx, faultyEnv(env, instance.deployment, instance.label, instance.check), faultyPorts(instance));
  }
}

export class ClaimShard extends RealShard {
  constructor(ctx: DurableObjectState, env: Env) {
    const instance = new FaultyInstance(ctx);
    // A shard must know its number within the deployment, which has no shards with larger numbers.
    Object.defineProperty(ctx, "id", { value: { name: shardNameIn(instance) } });
    super(ctx, faultyEnv(env, instance.deployment, instance.label, instance.check), faultyPorts(instance));
  }
}

export class Directory extends RealDirectory {
  constructor(ctx: DurableObjectState, env: Env) {
    const instance = new FaultyInstance(ctx);
    super(ctx, faultyEnv(env, instance.deployment, instance.label, instance.check), faultyPorts(instance));
  }
}

const shardNameIn = ({ label }: FaultyInstance): string => label.replace("shard", "shard-");

const envs = new WeakMap<TestDeployment, { generation: number; env: Env }>();

/**
 * One environment for all requests, because caches are keyed by it. After a `cut` there is another one, as in
 * a new isolate.
 */
function workerEnv(env: Env, deployment: TestDeployment): Env {
  const { generation } = deployment;
  const known = envs.get(deployment);
  if (known?.generation === generation) return known.env;
  const isAlive = (): void => {
    if (deployment.generation !== generation) throw new Error("this Worker has ended");
  };
  const made = faultyEnv(env, deployment, "worker", isAlive);
  envs.set(deployment, { generation, env: made });
  return made;
}

/**
 * The number of the deployment is in the host of a request (`deployment-12.test`) and in the cron pattern.
 */
export default {
  fetch: async (request, env, context) =>
    serveRequest(request, workerEnv(env, deploymentIn(new URL(request.url).hostname)), context),
  scheduled: async (event, env) => {
    await runCron(workerEnv(env, deploymentIn(event.cron)), event.scheduledTime);
  },
} satisfies ExportedHandler<Env>;

const deploymentIn = (text: string): TestDeployment => deploymentOf(Number(/\d+/.exec(text)?.[0]));
