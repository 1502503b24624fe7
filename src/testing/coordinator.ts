import { randomBytes } from "node:crypto";
import { v4 as newUuid } from "uuid";
import { configOf, type Env } from "../env.ts";
import { app } from "../http/app.ts";
import { deploy } from "../http/deployment.ts";
import { runCron } from "../projections/cron.ts";
import { TestClock } from "./clock.ts";
import { SqliteD1 } from "../node-host/d1.ts";
import type { TypesDocument } from "../core/types/document.ts";
import { FaultRegistry } from "./faults.ts";
import { directoryInstance, ledgerInstance, shardInstance } from "../node-host/instances.ts";
import { makeKeys } from "./keys.ts";
import type { HostedObject } from "../node-host/hosted-object.ts";
import { HostedNamespace } from "../node-host/namespace.ts";
import { optionsOf, type Options } from "./options.ts";
import type { TestCoordinator, TestCoordinatorOptions, TestKeys } from "./types.ts";
import { Network } from "./network.ts";

const COORDINATOR_URL = "https://leasehold.test";

/**
 * Starts a coordinator in this process. Only its own `fetch` reaches it. Its databases are in memory, and
 * coordinators share nothing with each other.
 *
 * @param options - By default two cells, "1" and "2", and four shards.
 * @throws {TypeError} When an option is unknown or malformed.
 *
 * @example
 * ```ts
 * import { createClient } from "leasehold/client";
 * import { startTestCoordinator } from "leasehold/testing";
 *
 * const coordinator = await startTestCoordinator({ cells: ["1", "2"] });
 * const client = createClient({
 *   url: coordinator.url,
 *   fetch: coordinator.fetch,
 *   key: coordinator.keys.cell("1"),
 *   cell: "1",
 * });
 * coordinator.faults.next({ kind: "lose_answer" }, { operation: "begin" });
 * await client.leases.begin({});
 * await coordinator.close();
 * ```
 */
export async function startTestCoordinator(options: TestCoordinatorOptions = {}): Promise<TestCoordinator> {
  const checked = optionsOf(options);
  const deployment = new MemoryDeployment(checked);
  const keys = await makeKeys(
    deployment.secret,
    checked.cells,
    deployment.clock.now(),
    configOf(deployment.env).limits.keyLifetimeS,
  );
  if (checked.types !== undefined) await declare(deployment, keys, checked.types);
  for (const cell of checked.cells) await register(deployment, keys, cell);
  const faults = new FaultRegistry();
  const network = new Network(
    COORDINATOR_URL,
    (request) => deployment.dispatch(request),
    faults,
    deployment.clock,
  );
  return {
    url: COORDINATOR_URL,
    fetch: (url, init) => network.fetch(url, init),
    keys,
    faults,
    advance: (ms) => deployment.advance(ms),
    cron: () => deployment.cron(),
    restart: () => deployment.restart(),
    close: async () => {
      network.close();
      deployment.close();
    },
  };
}

async function declare(
  deployment: MemoryDeployment,
  { operator }: TestKeys,
  { bucket_types, subject_types, source_types }: TypesDocument,
): Promise<void> {
  const request = new Request(`${COORDINATOR_URL}/v1/admin/types`, {
    method: "PUT",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ version: 0, types: { bucket_types, subject_types, source_types } }),
  });
  const response = await deployment.dispatch(request);
  if (!response.ok) throw new Error(`the types could not be declared: ${await response.text()}`);
}

async function register(deployment: MemoryDeployment, { operator }: TestKeys, cell: string): Promise<void> {
  const request = new Request(`${COORDINATOR_URL}/v1/admin/cells`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ cell_id: cell, name: `cell-${cell}`, address: `https://cell-${cell}.test` }),
  });
  const response = await deployment.dispatch(request);
  if (!response.ok) throw new Error(`cell ${cell} could not be registered: ${await response.text()}`);
}

/** The Worker, its objects and its D1 database, in this process. */
class MemoryDeployment {
  readonly secret = randomBytes(32).toString("hex");
  readonly clock = new TestClock();
  readonly #options: Options;
  readonly #database = new SqliteD1();
  readonly #ledgers: HostedNamespace;
  readonly #shards: HostedNamespace;
  readonly #directory: HostedNamespace;
  #isClosed = false;
  /** Isolates keep their caches per `env`, so a new `env` is a new isolate. */
  env: Env;

  constructor(options: Options) {
    const { clock } = this;
    const { log } = options;
    this.#options = options;
    this.#ledgers = new HostedNamespace(clock, log, (name, ports) => ledgerInstance(name, ports, this.env));
    this.#shards = new HostedNamespace(clock, log, (name, ports) => shardInstance(name, ports, this.env));
    this.#directory = new HostedNamespace(clock, log, (_, ports) => directoryInstance(ports, this.env));
    this.env = this.#newIsolate();
  }

  async dispatch(request: Request): Promise<Response> {
    return app.fetch(request, this.env);
  }

  async advance(ms: number): Promise<void> {
    this.#requireOpen();
    if (!(ms >= 0 && Number.isFinite(ms)))
      throw new TypeError("`ms` must be a number of milliseconds, 0 or more");
    await this.clock.advance(ms, () => this.#untilIdle());
  }

  async cron(): Promise<void> {
    this.#requireOpen();
    const { error } = await runCron(this.env, this.clock.now(), {
      clock: this.clock,
      uuid: newUuid,
      log: this.#options.log,
    });
    if (error !== null) throw new Error(`the cron failed: ${error}`);
  }

  async restart(): Promise<void> {
    this.#requireOpen();
    for (const object of this.#objects()) object.restart();
    this.env = this.#newIsolate();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const object of this.#objects()) object.close();
    this.#database.close();
    this.clock.stop();
  }

  #newIsolate(): Env {
    const bindings = {
      CELL_LEDGER: this.#ledgers,
      CLAIM_SHARD: this.#shards,
      DIRECTORY: this.#directory,
      DB: this.#database,
    };
    // Stand-ins that have only those parts of the platform's interfaces that the Worker uses.
    const { variables, log } = this.#options;
    const env = { ...variables, LEASEHOLD_SIGNING_SECRET: this.secret, ...bindings } as unknown as Env;
    deploy(env, { clock: this.clock, log });
    return env;
  }

  /** Waits until the alarms that have started are done. */
  async #untilIdle(): Promise<void> {
    await this.clock.turn();
    for (const object of this.#objects()) await object.untilIdle();
  }

  #objects(): HostedObject[] {
    return [this.#ledgers, this.#shards, this.#directory].flatMap(({ objects }) => [...objects]);
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new Error("the test coordinator is closed");
  }
}
