/** A caller over HTTP, such as a cell or an operator. */
import { createExecutionContext, createScheduledController } from "cloudflare:test";
import { env, signedKey } from "../../support/workerd/api.ts";
import worker from "./worker.ts";
import type { TestDeployment } from "./test-deployment.ts";

export interface Received {
  /** 0 if the Worker died. */
  status: number;
  json: { code?: string; reason?: string; lease?: { uuid: string; state: string } } & Record<string, unknown>;
}

const DEAD: Received = { status: 0, json: {} };
/**
 * When each run of the cron was planned. The first run of an hour does more, and the minute decides which
 * part a run scrubs first.
 */
const PLANNED_AT_MS = Date.UTC(2026, 0, 1, 1, 30);
/** The interval for checking whether the Worker is alive. */
const LOOK_MS = 5;

export class Client {
  readonly #deployment: TestDeployment;

  constructor(deployment: TestDeployment) {
    this.#deployment = deployment;
  }

  /** One request. `key`: a role, `cell <id>`, or a key itself. */
  async send(
    method: string,
    path: string,
    { key = "operator", body }: { key?: string; body?: unknown } = {},
  ): Promise<Received> {
    const headers = { authorization: `Bearer ${await keyOf(key)}`, "content-type": "application/json" };
    const request = new Request(`https://deployment-${this.#deployment.id}.test${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return this.#unlessDead(async () => {
      const response = await worker.fetch(
        request as Parameters<typeof worker.fetch>[0],
        env,
        createExecutionContext(),
      );
      return { status: response.status, json: await response.json() };
    });
  }

  async cron(): Promise<void> {
    const controller = createScheduledController({
      scheduledTime: PLANNED_AT_MS,
      cron: `deployment-${this.#deployment.id}`,
    });
    await this.#unlessDead(async () => {
      await worker.scheduled(controller, env);
      return DEAD;
    });
  }

  /** Returns DEAD if the Worker dies during `work`, like a lost connection. */
  async #unlessDead(work: () => Promise<Received>): Promise<Received> {
    this.#deployment.born("worker");
    const watch = { isOver: false };
    const death = (async () => {
      while (!watch.isOver && !this.#deployment.isDead("worker"))
        await new Promise((resume) => setTimeout(resume, LOOK_MS));
      return DEAD;
    })();
    try {
      return await Promise.race([work(), death]);
    } finally {
      watch.isOver = true;
    }
  }
}

const keys = new Map<string, Promise<string>>();

function keyOf(key: string): Promise<string> {
  if (key.startsWith("lhk_")) return Promise.resolve(key);
  const [role, cell] = key.split(" ");
  const made =
    keys.get(key) ??
    signedKey(cell === undefined ? { role: role as "operator" | "router" } : { role: "cell", cell });
  keys.set(key, made);
  return made;
}
