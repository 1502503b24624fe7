import { randomBytes } from "node:crypto";
import { v4 as newUuid } from "uuid";
import { limitNames, limitVariable } from "../../common/limits.ts";
import { typesOf, type TypesDocument } from "../../common/types/document.ts";
import { Hmac } from "../../coordinator/auth/secrets.ts";
import { makeKey, type KeyPayload } from "../../coordinator/auth/key.ts";
import { isCellId } from "../../coordinator/auth/principal.ts";
import { readConfig } from "../../coordinator/config.ts";
import { configOf, type Env } from "../../coordinator/env.ts";
import { MAX_SHARDS } from "../../coordinator/kernel/placement.ts";
import { ok } from "../../coordinator/kernel/refusal.ts";
import { logEvent } from "../../coordinator/log.ts";
import { Host } from "../../hosts/node/host.ts";
import { MemoryStore } from "../../hosts/node/object-store.ts";
import { SqliteDatabase } from "../../hosts/node/sqlite-database.ts";
import { TestClock } from "./clock.ts";
import { FaultRegistry, type Faults } from "./faults.ts";
import { Network } from "./network.ts";

export interface TestCoordinatorOptions {
  /** The ids of the cells that are registered and have a key from the start: "1" and "2" by default. */
  cells?: readonly string[];
  /** The number of shards at the start: 4 by default. */
  shards?: number;
  /**
   * The contents of `leasehold.types.json`, if the application declares its own types. Left out: the types
   * that Leasehold ships.
   */
  types?: TypesDocument;
  /**
   * Variables as in wrangler.toml, such as `LEASEHOLD_BATCH_OPS` and the other limits. The coordinator logs
   * only with `LEASEHOLD_REQUEST_LOG`.
   */
  variables?: Readonly<Record<string, string>>;
}

/**
 * Keys with the longest lifetime that the coordinator allows: 400 days, unless `LEASEHOLD_KEY_LIFETIME_S`
 * differs.
 */
export interface TestKeys {
  /**
   * Returns the key of a cell that was given at the start. Throws for other cells: make their keys with `POST
   * /v1/admin/keys`.
   */
  cell(id: string): string;
  readonly operator: string;
  readonly router: string;
}

/** Has the parameters of the global `fetch`, but reaches only one coordinator. */
export type TestFetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** A complete coordinator in this process. */
export interface TestCoordinator {
  /** An invented origin. Only this coordinator's `fetch` reaches it. */
  readonly url: string;
  /** Give it to every client of the coordinator. It works without `this`. */
  readonly fetch: TestFetch;
  readonly keys: TestKeys;
  readonly faults: Faults;
  /**
   * Lets time pass: leases age, alarms run, the sweep inquires about old holds, and delays end. Resolves when
   * all of that is done. After 1,000 timers it skips the rest of the time. It does not run the cron: call
   * `cron`.
   */
  advance(ms: number): Promise<void>;
  /**
   * Runs the cron, which a deployment runs every minute. It copies leases, cells and keys to D1, and deletes
   * old outcomes.
   */
  cron(): Promise<void>;
  /**
   * Restarts every object and the Worker from what they stored. As in a crash, calls under way fail or go on.
   */
  restart(): Promise<void>;
  /**
   * Stops the coordinator and its timers. Calls under way, and all later ones, reject. You may call it twice.
   */
  close(): Promise<void>;
}

/** Makes keys from the secret, as an operator makes the first key. */
export async function makeKeys(
  secret: string,
  cells: readonly string[],
  nowMs: number,
  lifetimeS: number,
): Promise<TestKeys> {
  const hmac = new Hmac(secret);
  const iat = Math.floor(nowMs / 1_000);
  const make = (holder: Pick<KeyPayload, "role" | "cell">): Promise<string> =>
    makeKey({ v: 1, id: newUuid(), ...holder, iat, exp: iat + lifetimeS }, hmac);
  const [operator, router] = await Promise.all([make({ role: "operator" }), make({ role: "router" })]);
  const byCell = new Map(
    await Promise.all(cells.map(async (cell) => [cell, await make({ role: "cell", cell })] as const)),
  );
  const cell = (id: string): string => {
    const key = byCell.get(id);
    if (key === undefined)
      throw new Error(
        `cell ${id} has no key: the coordinator was started with the cells ${cells.join(", ")}`,
      );
    return key;
  };
  return { operator, router, cell };
}

interface Options {
  cells: readonly string[];
  types: TypesDocument | undefined;
  /** All variables, in the form in which the Worker gets them. */
  variables: Readonly<Record<string, string>>;
  log: typeof logEvent;
}

const OPTIONS: ReadonlySet<string> = new Set(["cells", "shards", "types", "variables"]);

/** The variables that may be given. The number of shards is an option, and the secret is generated. */
const VARIABLES: ReadonlySet<string> = new Set([
  ...limitNames.map(limitVariable),
  "LEASEHOLD_REQUEST_LOG",
  "LEASEHOLD_WEBHOOK_HOSTS",
  "LEASEHOLD_SHARD_LOCATION_HINT",
]);

/** Throws a TypeError that names the wrong option. */
function optionsOf(given: TestCoordinatorOptions): Options {
  for (const name of Object.keys(given))
    if (!OPTIONS.has(name))
      throw new TypeError(
        `startTestCoordinator has no option \`${name}\`; it has cells, shards, types and variables`,
      );
  const { cells = ["1", "2"], shards = 4, types, variables = {} } = given;
  checkCells(cells);
  const read = types === undefined ? ok([]) : typesOf(types);
  if (!read.ok) throw new TypeError(`\`types\` cannot be used: ${read.refusal.detail}`);
  if (!Number.isSafeInteger(shards) || shards < 1 || shards > MAX_SHARDS)
    throw new TypeError(`\`shards\` must be a whole number from 1 to ${MAX_SHARDS}`);
  for (const [name, value] of Object.entries(variables)) checkVariable(name, value);
  // A decision that waits would make the kinds of later conflicts depend on time.
  const all = { LEASEHOLD_DECISION_WAIT_MS: "0", ...variables, LEASEHOLD_SHARDS: String(shards) };
  readConfig(all);
  // The coordinator is silent by default, because its log would hide the output of the test.
  const log = "LEASEHOLD_REQUEST_LOG" in variables ? logEvent : () => {};
  return { cells, types, variables: all, log };
}

function checkCells(cells: readonly string[]): void {
  if (!Array.isArray(cells)) throw new TypeError("`cells` must be a list of ids");
  const wrong = cells.find((id) => typeof id !== "string" || !isCellId(id));
  if (wrong !== undefined)
    throw new TypeError(
      `\`cells\` must be ids, which are decimal strings above 0; ${JSON.stringify(wrong)} is not`,
    );
  if (new Set(cells).size < cells.length) throw new TypeError("`cells` must not have the same id twice");
}

function checkVariable(name: string, value: unknown): void {
  if (name === "LEASEHOLD_SHARDS")
    throw new TypeError("give the number of shards as `shards`, not as the variable LEASEHOLD_SHARDS");
  if (!VARIABLES.has(name))
    throw new TypeError(`\`variables\` must not have ${name}: it does not exist, or has no effect in tests`);
  if (typeof value !== "string")
    throw new TypeError(`\`variables.${name}\` must be a string, as in wrangler.toml`);
}

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
