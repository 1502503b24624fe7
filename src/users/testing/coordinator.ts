import { randomBytes } from "node:crypto";
import { configOf, type Env } from "../../coordinator/env.ts";
import { SqliteDatabase } from "../../hosts/node/sqlite-database.ts";
import { Host } from "../../hosts/node/host.ts";
import { MemoryStore } from "../../hosts/node/object-store.ts";
import { TestClock } from "./clock.ts";
import type { TypesDocument } from "../../common/types/document.ts";
import { FaultRegistry } from "./faults.ts";
import { makeKeys } from "./keys.ts";
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

/** A host whose databases are in memory, on the clock of a test. */
class MemoryDeployment {
  readonly secret = randomBytes(32).toString("hex");
  readonly clock = new TestClock();
  readonly #host: Host;
  #isClosed = false;

  constructor({ variables, log }: Options) {
    this.#host = new Host({
      clock: this.clock,
      log,
      variables: { ...variables, LEASEHOLD_SIGNING_SECRET: this.secret },
      store: () => new MemoryStore(),
      d1: new SqliteDatabase(),
    });
  }

  get env(): Env {
    return this.#host.env;
  }

  dispatch(request: Request): Promise<Response> {
    return this.#host.dispatch(request);
  }

  async advance(ms: number): Promise<void> {
    this.#requireOpen();
    if (!(ms >= 0 && Number.isFinite(ms)))
      throw new TypeError("`ms` must be a number of milliseconds, 0 or more");
    await this.clock.advance(ms, () => this.#host.untilIdle());
  }

  async cron(): Promise<void> {
    this.#requireOpen();
    const { error } = await this.#host.cron();
    if (error !== null) throw new Error(`the cron failed: ${error}`);
  }

  async restart(): Promise<void> {
    this.#requireOpen();
    this.#host.restart();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#host.close();
    this.clock.stop();
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new Error("the test coordinator is closed");
  }
}
