/**
 * Runs the Worker on this machine as it is deployed: in Miniflare's workerd, with SQLite and D1 on disk, and
 * with a cron that fires.
 */
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readConfig } from "../../coordinator/config.ts";
import { bundle, workerEntry, type WorkerModule } from "../../../scripts/bundle.ts";
import { devKeys, type DevKeys, type Dispatch } from "./dev-keys.ts";
import { syncFolders } from "./durable-file.ts";
import { watchClock, FAILED_TRIES, RESTART_TRIES, RuntimeWatch } from "./runtime-watch.ts";
import { freePort } from "./free-port.ts";
import { publicSocketAt } from "./public-socket.ts";
import { shardsFault } from "./settings.ts";
import { checkpoint, forEachDatabase, checkTables } from "./state-databases.ts";
import { openState } from "./state-file.ts";
import { lockState } from "./state-lock.ts";
import { withoutSignalHandlers, workerdWrapper } from "./workerd.ts";

/** How long to wait for the last output of a runtime that has ended. */
const FINAL_OUTPUT_MS = 500;
/** How long a restart of the runtime may take before the coordinator checks whether it answers. */
const RESTART_MS = 20_000;
const root = fileURLToPath(new URL("../../..", import.meta.url));
const host = "127.0.0.1";

export interface CoordinatorOptions {
  /** 0 means any free port. */
  port: number;
  stateFolder: string;
  /** Receives the lines of the Worker's log. Without it, they are dropped. */
  log?: (line: string) => void;
  /** Variables as in `wrangler.toml`. */
  variables?: Record<string, string>;
  /** The Worker to run. Tests use it to run a Worker with faults. */
  entryPoint?: string;
  /** False leaves out the cron at the start, for tests whose faults must not happen there. */
  cronAtStart?: boolean;
}

export interface Coordinator {
  url: string;
  keys: DevKeys;
  isFirstStart: boolean;
  /** Resolves when the runtime has ended and could not be restarted. */
  failed: Promise<Error>;
  /** Runs the cron once, in addition to its run every minute. */
  cron(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one coordinator on `stateFolder`. Throws an `Error` with a one-sentence message if it cannot. */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  // The Worker would refuse invalid variables at its first request. Checking them here reports them at the
  // start.
  readConfig(options.variables ?? {});
  const lock = await lockState(options.stateFolder);
  let isReady = false;
  const write = (line: string): void => {
    // The log starts after the set-up, so that it does not contain the set-up's own requests.
    if (isReady || !line.startsWith('{"event":"request"')) options.log?.(line);
  };
  const log = (event: string, error: unknown): void =>
    options.log?.(JSON.stringify({ event, error: error instanceof Error ? error.message : String(error) }));
  const watch = new RuntimeWatch();
  let miniflare: Miniflare | undefined;
  try {
    const configured = options.variables?.["LEASEHOLD_SHARDS"];
    const { shards, signingSecret } = await openState(options.stateFolder, "npm start", configured);
    await checkTables(options.stateFolder);
    const modules = await bundle(options.entryPoint ?? workerEntry);
    const runtime = (at?: string): ReturnType<typeof convertV4MiniflareOptions> =>
      runtimeOptions(
        {
          ...options,
          // Only a deployment pays for each line.
          variables: { LEASEHOLD_REQUEST_LOG: "all", ...options.variables, LEASEHOLD_SHARDS: shards },
          log: write,
        },
        watch,
        modules,
        signingSecret,
        at,
      );
    await lock.freePort(options.port);
    process.env["MINIFLARE_WORKERD_PATH"] ??= workerdWrapper();
    const address = `${host}:${options.port === 0 ? await freePort() : options.port}`;
    const known = await devKeys.read(options.stateFolder, signingSecret);
    const isSetUp = known !== undefined && (await isMigrated(options.stateFolder));
    // The set-up and the first cron run without the public socket. So whoever reaches the coordinator finds
    // it complete, and a shard whose file went back in time has been told so (H2).
    const cronAtStart = options.cronAtStart !== false;
    const isOpen = isSetUp && !cronAtStart;
    const started = withoutSignalHandlers(() => new Miniflare(runtime(isOpen ? address : undefined)));
    miniflare = started;
    await started.ready;
    // Only the listings need D1, so the coordinator also starts without it.
    if (!isSetUp) await migrateD1(started).catch((error: unknown) => log("d1_not_migrated", error));
    const keys =
      known ??
      (await devKeys.make(options.stateFolder, signingSecret, (path, init) => dispatch(started, path, init)));
    await checkShards(started, keys, configured);
    // SQLite makes its files durable, but the folders around them are new.
    if (!isSetUp) await syncFolders(options.stateFolder);
    let isD1Refused = false;
    const replaceLostD1 = async (): Promise<void> => {
      if (!(await isD1Lost(options.stateFolder))) return;
      // Miniflare's D1 client blocks this process during a call. Under load, the runtime would wait in turn
      // for this process to read its log. So callers are kept out meanwhile.
      log("d1_lost", "it is made again");
      await started.setOptions(runtime());
      await migrateD1(started).catch((error: unknown) => {
        isD1Refused = true;
        log("d1_not_migrated", error);
      });
      await started.setOptions(runtime(address));
    };
    let replacing: Promise<void> | undefined;
    const cron = async (): Promise<void> => {
      // Runs at the same time share this, because a second migration would fail.
      if (isReady && !isD1Refused)
        await (replacing ??= replaceLostD1().finally(() => {
          replacing = undefined;
        }));
      const time = `time=${Date.now()}&cron=${encodeURIComponent("* * * * *")}`;
      const answer = await dispatch(started, `/cdn-cgi/local/scheduled?${time}`, {});
      if (!answer.ok) throw new Error(`the Worker's cron ended with status ${answer.status}`);
    };
    if (cronAtStart) await firstCron(cron, log);
    isReady = true;
    if (!isOpen) await started.setOptions(runtime(address));
    const url = `http://${address}`;
    watch.start(url);
    const stopCron = startCron(cron, log);
    const stopClockWatch = watchClock(async (backMs) => {
      options.log?.(JSON.stringify({ event: "clock_went_back", by_ms: backMs }));
      const restarted = started.setOptions(runtime(address)).then(
        () => options.log?.(JSON.stringify({ event: "runtime_restarted" })),
        (error: unknown) => stopping ?? log("runtime_failed", error),
      );
      await Promise.race([restarted, sleep(RESTART_MS, undefined, { ref: false })]);
      await watch.check(FAILED_TRIES);
    });
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      watch.stop();
      stopClockWatch();
      stopCron();
      await started.dispose();
      // The runtime has ended. Otherwise most of the data could still be in the write-ahead logs.
      for (const failure of await forEachDatabase(options.stateFolder, checkpoint))
        log("checkpoint_failed", failure);
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
    // The lock is released last. A runtime that still ran without it would be a second owner of the state.
    await miniflare?.dispose().catch(() => {});
    await lock.release();
    throw reason;
  }
}

/**
 * A runtime that ends before it has read its configuration causes EPIPE. Its own output explains more, but
 * arrives a moment later.
 */
async function explainStartFailure(error: unknown): Promise<unknown> {
  if ((error as NodeJS.ErrnoException).code !== "EPIPE") return error;
  await sleep(FINAL_OUTPUT_MS);
  return new Error("the runtime ended during its start; its output above says why", { cause: error });
}

const dispatch = (miniflare: Miniflare, path: string, init: Parameters<Dispatch>[1]): Promise<Response> =>
  miniflare.dispatchFetch(`http://${host}${path}`, init ?? {}) as unknown as Promise<Response>;

/** Forwards Miniflare's warnings and errors. Miniflare reports the death of a runtime only here. */
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
  modules: WorkerModule[],
  signingSecret: string,
  address?: string,
): ReturnType<typeof convertV4MiniflareOptions> {
  return convertV4MiniflareOptions({
    // Only this process uses Miniflare's own port.
    host,
    port: 0,
    unsafeTriggerHandlers: true,
    ...(address === undefined ? {} : publicSocketAt(address)),
    log: new RuntimeLog((event, error) => log?.(JSON.stringify({ event, error })), watch),
    unsafeHandleRuntimeRestart: () => log?.(JSON.stringify({ event: "runtime_restarted" })),
    handleStructuredLogs: ({ message }) => log?.(message),
    resourcePersistencePath: join(stateFolder, "storage"),
    // Otherwise Miniflare would ask a server of Cloudflare where this machine is.
    cf: false,
    name: "leasehold",
    modules,
    // Must be equal to wrangler.toml; a test compares them.
    compatibilityDate: "2026-10-01",
    compatibilityFlags: ["enable_request_signal"],
    durableObjects: {
      CELL_LEDGER: { className: "CellLedger", useSQLite: true },
      CLAIM_SHARD: { className: "ClaimShard", useSQLite: true },
      DIRECTORY: { className: "Directory", useSQLite: true },
    },
    d1Databases: { DB: "leasehold" },
    bindings: { ...variables, LEASEHOLD_SIGNING_SECRET: signingSecret },
  });
}

async function migrationFiles(): Promise<string[]> {
  return (await readdir(join(root, "migrations"))).filter((name) => name.endsWith(".sql")).toSorted();
}

const d1Folder = (stateFolder: string): string =>
  join(stateFolder, "storage", "d1", "miniflare-D1DatabaseObject");

/**
 * Returns whether D1's files exist and contain every migration. It reads the files directly, because no
 * runtime is running yet.
 */
async function isMigrated(stateFolder: string): Promise<boolean> {
  const folder = d1Folder(stateFolder);
  const names = await readdir(folder).catch(() => []);
  const needed = await migrationFiles();
  return names
    .filter((name) => name.endsWith(".sqlite"))
    .some((name) => needed.every((file) => appliedIn(join(folder, name)).has(file)));
}

function appliedIn(path: string): Set<string> {
  try {
    return new Set(migrationsIn(path));
  } catch {
    return new Set();
  }
}

function migrationsIn(path: string): string[] {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = database.prepare("SELECT name FROM d1_migrations").all() as { name: string }[];
    return rows.map(({ name }) => name);
  } finally {
    database.close();
  }
}

/**
 * Returns whether D1's files were deleted. The runtime makes an empty database when it opens them again. A
 * damaged database is not lost: only an operator can decide to remove it.
 */
async function isD1Lost(stateFolder: string): Promise<boolean> {
  const folder = d1Folder(stateFolder);
  const names = await readdir(folder).catch(() => []);
  const databases = names.filter((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"));
  return databases.every((name) => {
    try {
      migrationsIn(join(folder, name));
      return false;
    } catch (error) {
      return error instanceof Error && error.message.includes("no such table");
    }
  });
}

/** Applies `migrations/` and records them in the same table as `wrangler d1 migrations apply`. */
async function migrateD1(miniflare: Miniflare): Promise<void> {
  const db = await miniflare.getD1Database("DB");
  // D1's `exec` treats each line as a statement, so this one must not contain a line break.
  const columns =
    "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, " +
    "applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL";
  await db.exec(`CREATE TABLE IF NOT EXISTS d1_migrations (${columns})`);
  const { results } = await db.prepare("SELECT name FROM d1_migrations").all<{ name: string }>();
  const applied = new Set(results.map(({ name }) => name));
  for (const name of (await migrationFiles()).filter((file) => !applied.has(file))) {
    const sql = await readFile(join(root, "migrations", name), "utf8");
    const statements = sql.split("--> statement-breakpoint").map((statement) => db.prepare(statement));
    await db.batch([...statements, db.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name)]);
  }
}

/** Fails the start if LEASEHOLD_SHARDS asks for more shards than the deployment has. */
async function checkShards(
  miniflare: Miniflare,
  keys: DevKeys,
  configured: string | undefined,
): Promise<void> {
  const answer = await dispatch(miniflare, "/v1/admin/cells?page_size=1", {
    headers: { authorization: `Bearer ${keys.operator}` },
  });
  if (answer.ok) {
    // The first request has read the directory, which has the placement.
    const { placement } = (await (await dispatch(miniflare, "/healthz", {})).json()) as { placement: string };
    const fault = shardsFault(configured, placement);
    if (fault !== undefined) throw new Error(fault);
    return;
  }
  const problem = (await answer.json()) as { detail?: string; reason?: string };
  // The directory has gone back in time. Its operator reconciles it by calls to this coordinator.
  if (problem.reason === "HISTORY_LOST") return;
  throw new Error(
    problem.detail ?? `the coordinator answered its first request with status ${answer.status}`,
  );
}

/** A run requests no page after 45 s, and has some more seconds to store how far it got. */
const FIRST_CRON_MS = 60_000;

/** Runs the cron once. A start does not fail because of it. */
async function firstCron(
  cron: () => Promise<void>,
  log: (event: string, error: unknown) => void,
): Promise<void> {
  const late = sleep(FIRST_CRON_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the first run did not end within ${FIRST_CRON_MS / 1_000} s`);
  });
  await Promise.race([cron(), late]).catch((error: unknown) => log("cron_failed", error));
}

/** Runs the cron at the start of every minute, as the platform does. */
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
