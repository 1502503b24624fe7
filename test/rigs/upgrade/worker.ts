/**
 * A Worker that is today's version and the next one at the same time: it has the modules of both, and chooses
 * one for each object and each request.
 *
 * An object takes its version when it starts, so it cannot ask anybody. In workerd on one machine, the Worker
 * and all of its objects are in one isolate, so the choice is in a variable that a request sets. An update of
 * an object's code ends its instance, as on the platform, and its next instance has the other version.
 */
import { DurableObject } from "cloudflare:workers";
import type { Envelope } from "../../../src/coordinator/kernel/messages.ts";
import { defineMethods, type MethodList } from "../../../src/coordinator/kernel/method.ts";
import * as kinds from "../../../src/coordinator/capabilities/index.ts";
import { FORMAT, type Stamp } from "../../../src/coordinator/kernel/formats.ts";
import type { Env } from "../../../src/coordinator/env.ts";
import today, * as todayObjects from "../../../src/coordinator/index.ts";
import {
  CHOICE,
  combination,
  CONTROL_PATH,
  type Choice,
  type Control,
  type Ran,
  type VersionName,
} from "./control.ts";
import next, * as nextObjects from "./other-version.ts";

const workers = { today, next };
const objects = { today: todayObjects, next: nextObjects };

let choice: Choice | undefined;
const ran: Ran = {
  requests: { today: 0, next: 0 },
  cronRuns: { today: 0, next: 0 },
  calls: {},
};

const choiceOf = (env: Env): Choice =>
  (choice ??= JSON.parse((env as unknown as Record<string, string>)[CHOICE] ?? "") as Choice);

const drawn = ({ nextShare }: Choice): VersionName => (Math.random() < nextShare ? "next" : "today");

function namespaceOf(env: Env, name: string): DurableObjectNamespace {
  if (name === "directory") return env.DIRECTORY as unknown as DurableObjectNamespace;
  return (name.startsWith("cell-") ? env.CELL_LEDGER : env.CLAIM_SHARD) as unknown as DurableObjectNamespace;
}

/** An instance that an alarm has woken does not know its name, but its id. */
function versionOf(ctx: DurableObjectState, env: Env): VersionName {
  const { objects: chosen, rest } = choiceOf(env);
  const names = Object.keys(chosen);
  const name = names.find((each) => namespaceOf(env, each).idFromName(each).equals(ctx.id));
  return (name === undefined ? undefined : chosen[name]) ?? rest;
}

type Inner = Readonly<Record<string, (message: unknown) => Promise<unknown>>> & { alarm?(): Promise<void> };

function mixed(kind: "CellLedger" | "ClaimShard" | "Directory", methods: MethodList) {
  return class extends DurableObject<Env> {
    readonly #version: VersionName;
    readonly #inner: Inner;

    static {
      defineMethods<InstanceType<typeof this>>(this.prototype, methods, async (self, name, message) => {
        const { speaks } = message as Envelope & Stamp;
        const what = combination(kind, self.#version, speaks === FORMAT ? "today" : "next");
        ran.calls[what] = (ran.calls[what] ?? 0) + 1;
        return self.#inner[name]?.(message);
      });
    }

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.#version = versionOf(ctx, env);
      this.#inner = new objects[this.#version][kind](ctx, env) as unknown as Inner;
    }

    override async alarm(): Promise<void> {
      await this.#inner.alarm?.();
    }

    /** Ends this instance and all of its calls. */
    endInstance(): void {
      this.ctx.abort("the code of the object was updated");
    }
  };
}

export const CellLedger = mixed("CellLedger", kinds.ledger.methods);
export const ClaimShard = mixed("ClaimShard", kinds.shard.methods);
export const Directory = mixed("Directory", kinds.directory.methods);

async function obey(env: Env, { choice: chosen, end = [], migration, cron }: Control): Promise<void> {
  if (chosen !== undefined) choice = chosen;
  for (const name of end) {
    const object = namespaceOf(env, name).getByName(name) as unknown as { endInstance(): Promise<void> };
    // The call ends with its instance.
    await object.endInstance().catch(() => {});
  }
  if (migration !== undefined) await migrate(env, migration);
  if (cron !== undefined) await runCron(env, cron);
}

async function migrate(env: Env, { name, sql }: NonNullable<Control["migration"]>): Promise<void> {
  const applied = await env.DB.prepare("SELECT 1 FROM d1_migrations WHERE name = ?").bind(name).first();
  if (applied !== null) return;
  const noted = env.DB.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name);
  await env.DB.batch([env.DB.prepare(sql), noted]);
}

async function runCron(env: Env, version: VersionName): Promise<void> {
  ran.cronRuns[version] += 1;
  await workers[version].scheduled(
    { scheduledTime: Date.now(), cron: "* * * * *" } as ScheduledController,
    env,
  );
}

export default {
  fetch: async (request, env, context) => {
    if (new URL(request.url).pathname === CONTROL_PATH) {
      await obey(env, await request.json<Control>());
      return Response.json(ran);
    }
    const version = drawn(choiceOf(env));
    ran.requests[version] += 1;
    return workers[version].fetch(request, env, context);
  },
  scheduled: (_event, env) => runCron(env, drawn(choiceOf(env))),
} satisfies ExportedHandler<Env>;
