/**
 * The Worker as it is deployed, on this machine: Miniflare's workerd with SQLite and D1 on disk, and a cron
 * that fires.
 */
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { access, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readConfig } from "../src/config.ts";
import { bundle } from "./bundle.ts";
import { devKeys, type DevKeys, type Dispatch } from "./dev-keys.ts";
import { writePrivate } from "./private-file.ts";
import { FAILED_TRIES, RESTART_TRIES, RuntimeWatch } from "./runtime-watch.ts";
import { storeShards, chooseShards } from "./shards.ts";
import { lockState } from "./state-lock.ts";

/** How long the last words of a runtime may take. */
const FINAL_OUTPUT_MS = 500;
const root = fileURLToPath(new URL("..", import.meta.url));
const host = "127.0.0.1";

export interface CoordinatorOptions {
  /** 0: any free port. */
  port: number;
  stateFolder: string;
  /** Lines of the Worker's log; by default they are dropped. */
  log?: (line: string) => void;
  /** Variables as in `wrangler.toml`. */
  variables?: Record<string, string>;
  /** The Worker to run; for tests that run it with faults. */
  entryPoint?: string;
}

export interface Coordinator {
  url: string;
  keys: DevKeys;
  isFirstStart: boolean;
  /** Resolves when the runtime has died for good. */
  failed: Promise<Error>;
  /** Runs the cron, which runs every minute by itself. */
  cron(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one coordinator on `stateFolder`. Throws an `Error` with one plain sentence when that cannot be. */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  // What the Worker would refuse at its first request is said at once.
  readConfig(options.variables ?? {});
  const lock = await lockState(options.stateFolder);
  let isReady = false;
  const write = (line: string): void => {
    // The set-up's own requests are nobody's business.
    if (isReady || !line.startsWith('{"event":"request"')) options.log?.(line);
  };
  const log = (event: string, error: unknown): void =>
    options.log?.(JSON.stringify({ event, error: error instanceof Error ? error.message : String(error) }));
  const watch = new RuntimeWatch();
  let miniflare: Miniflare | undefined;
  try {
    const isNew = !(await exists(secretFile(options.stateFolder)));
    const shards = await chooseShards(options.stateFolder, options.variables?.["LEASEHOLD_SHARDS"], isNew);
    // Before anything else is made: a first start that fails later must not look like a state from before
    // this file.
    if (isNew) await storeShards(options.stateFolder, shards);
    const signingSecret = await readOrMakeSecret(options.stateFolder);
    const script = await bundle(options.entryPoint ?? join(root, "src/index.ts"));
    const runtime = (port: number): ReturnType<typeof convertV4MiniflareOptions> =>
      runtimeOptions(
        { ...options, variables: { ...options.variables, LEASEHOLD_SHARDS: shards }, log: write },
        watch,
        script,
        signingSecret,
        port,
      );
    await lock.freePort(options.port);
    process.env["MINIFLARE_WORKERD_PATH"] ??= workerdWrapper();
    // A start that has something to set up does it on a port that nobody knows: whoever reaches the real one
    // finds everything ready.
    const known = await devKeys.read(options.stateFolder, signingSecret);
    const isSetUp = known !== undefined && (await isMigrated(options.stateFolder));
    const started = withoutSignalHandlers(() => new Miniflare(runtime(isSetUp ? options.port : 0)));
    miniflare = started;
    await started.ready;
    // D1 decides nothing: without it everything but the listings works.
    if (!isSetUp) await migrateD1(started).catch((error: unknown) => log("d1_not_migrated", error));
    const keys =
      known ??
      (await devKeys.make(options.stateFolder, signingSecret, (path, init) => dispatch(started, path, init)));
    await checkPlacement(started, keys);
    await storeShards(options.stateFolder, shards);
    if (!isSetUp && options.port !== 0) await started.setOptions(runtime(options.port));
    const url = (await started.ready).origin;
    isReady = true;
    watch.start(url);
    const cron = async (): Promise<void> => {
      const worker = await started.getWorker();
      await worker.scheduled({ scheduledTime: new Date(), cron: "* * * * *" });
    };
    const stopCron = startCron(cron, log);
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      watch.stop();
      stopCron();
      await started.dispose();
      await lock.release();
    };
    return {
      url,
      keys,
      isFirstStart: known === undefined,
      failed: watch.failed,
      cron,
      stop: () => (stopping ??= stop()),
    };
  } catch (error) {
    const reason = await explainStartFailure(error);
    // The lock last: a runtime that is still there would be a second owner of the state.
    await miniflare?.dispose().catch(() => {});
    await lock.release();
    throw reason;
  }
}

/**
 * A runtime that ends before it has read what to run: what it said comes a moment later, and says more than
 * the broken pipe.
 */
async function explainStartFailure(error: unknown): Promise<unknown> {
  if ((error as NodeJS.ErrnoException).code !== "EPIPE") return error;
  await sleep(FINAL_OUTPUT_MS);
  return new Error("the runtime ended while it was starting", { cause: error });
}

const dispatch = (miniflare: Miniflare, path: string, init: Parameters<Dispatch>[1]): Promise<Response> =>
  miniflare.dispatchFetch(`http://${host}${path}`, init ?? {}) as unknown as Promise<Response>;

/** Miniflare ends the process on a signal by itself, before anything can be closed in order; ours decides. */
function withoutSignalHandlers<T>(make: () => T): T {
  const signals = ["SIGINT", "SIGTERM"] as const;
  const before = new Map(signals.map((signal) => [signal, process.listeners(signal)]));
  const made = make();
  for (const signal of signals) {
    for (const listener of process.listeners(signal))
      if (!before.get(signal)?.includes(listener)) process.removeListener(signal, listener);
  }
  return made;
}

/** Miniflare's own words: only what is wrong. That a runtime died is nowhere else to be heard. */
class RuntimeLog extends Log {
  readonly #write: (event: string, error: string) => void;
  readonly #watch: RuntimeWatch;

  constructor(write: (event: string, error: string) => void, watch: RuntimeWatch) {
    super(LogLevel.NONE);
    this.#write = write;
    this.#watch = watch;
  }

  override warn(message: string): void {
    this.#write("runtime_warning", firstLine(message));
    void this.#watch.check(RESTART_TRIES);
  }

  override error(error: Error): void {
    this.#write("runtime_failed", firstLine(error.message));
    const isFinal = (error as NodeJS.ErrnoException).code === "ERR_RUNTIME_FAILURE";
    void this.#watch.check(isFinal ? FAILED_TRIES : RESTART_TRIES);
  }
}

const firstLine = (text: string): string => text.split("\n")[0] ?? "";

function runtimeOptions(
  { stateFolder, log, variables }: CoordinatorOptions,
  watch: RuntimeWatch,
  script: string,
  signingSecret: string,
  port: number,
): ReturnType<typeof convertV4MiniflareOptions> {
  return convertV4MiniflareOptions({
    host,
    port,
    log: new RuntimeLog((event, error) => log?.(JSON.stringify({ event, error })), watch),
    unsafeHandleRuntimeRestart: () => log?.(JSON.stringify({ event: "runtime_restarted" })),
    handleStructuredLogs: ({ message }) => log?.(message),
    resourcePersistencePath: join(stateFolder, "storage"),
    name: "leasehold",
    modules: true,
    script,
    // As in wrangler.toml.
    compatibilityDate: "2026-10-01",
    durableObjects: {
      CELL_LEDGER: { className: "CellLedger", useSQLite: true },
      CLAIM_SHARD: { className: "ClaimShard", useSQLite: true },
      DIRECTORY: { className: "Directory", useSQLite: true },
    },
    d1Databases: { DB: "leasehold" },
    bindings: { ...variables, LEASEHOLD_SIGNING_SECRET: signingSecret },
  });
}

/**
 * Starts workerd so that it ends with this process, however this process ends. Not on Windows, which has no
 * shell for it.
 */
function workerdWrapper(): string {
  const require = createRequire(import.meta.url);
  const { default: binary } = require("workerd") as { default: string };
  if (process.platform === "win32") return binary;
  process.env["LEASEHOLD_WORKERD"] = binary;
  return join(root, "scripts/workerd.sh");
}

async function migrationFiles(): Promise<string[]> {
  return (await readdir(join(root, "migrations"))).filter((name) => name.endsWith(".sql")).toSorted();
}

/**
 * Whether D1's files are there and have every migration: asked of the files themselves, before anything runs
 * on them.
 */
async function isMigrated(stateFolder: string): Promise<boolean> {
  const folder = join(stateFolder, "storage", "d1", "miniflare-D1DatabaseObject");
  const names = await readdir(folder).catch(() => []);
  const needed = await migrationFiles();
  return names
    .filter((name) => name.endsWith(".sqlite"))
    .some((name) => needed.every((file) => appliedIn(join(folder, name)).has(file)));
}

function appliedIn(path: string): Set<string> {
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    const rows = database.prepare("SELECT name FROM d1_migrations").all() as { name: string }[];
    database.close();
    return new Set(rows.map(({ name }) => name));
  } catch {
    return new Set();
  }
}

/** Applies `migrations/`, remembering which as `wrangler d1 migrations apply` does. */
async function migrateD1(miniflare: Miniflare): Promise<void> {
  const db = await miniflare.getD1Database("DB");
  await db.exec(
    "CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
  );
  const { results } = await db.prepare("SELECT name FROM d1_migrations").all<{ name: string }>();
  const applied = new Set(results.map(({ name }) => name));
  for (const name of (await migrationFiles()).filter((file) => !applied.has(file))) {
    const sql = await readFile(join(root, "migrations", name), "utf8");
    const statements = sql.split("--> statement-breakpoint").map((statement) => db.prepare(statement));
    await db.batch([...statements, db.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name)]);
  }
}

/** A deployment that was made with other shards answers nothing: better said at the start. */
async function checkPlacement(miniflare: Miniflare, keys: DevKeys): Promise<void> {
  const answer = await dispatch(miniflare, "/v1/admin/cells?page_size=1", {
    headers: { authorization: `Bearer ${keys.operator}` },
  });
  if (answer.ok) return;
  const problem = (await answer.json()) as { detail?: string };
  throw new Error(problem.detail ?? `the coordinator does not answer: ${answer.status}`);
}

/** Fires every minute, on the minute, as the platform does. */
function startCron(cron: () => Promise<void>, log: (event: string, error: unknown) => void): () => void {
  let timer: NodeJS.Timeout;
  const next = (): void => {
    timer = setTimeout(() => void fire(), 60_000 - (Date.now() % 60_000));
  };
  const fire = async (): Promise<void> => {
    next();
    await cron().catch((error: unknown) => log("cron_failed", error));
  };
  next();
  return () => clearTimeout(timer);
}

const secretFile = (stateFolder: string): string => join(stateFolder, "signing-secret");

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Made once per state folder; the keys are worthless without it. */
async function readOrMakeSecret(stateFolder: string): Promise<string> {
  const path = secretFile(stateFolder);
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  await writePrivate(path, `${secret}\n`);
  return secret;
}
