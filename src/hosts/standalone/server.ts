import { setTimeout as sleep } from "node:timers/promises";
import { devKeys, type DevKeys } from "../workerd/dev-keys.ts";
import { shardsFault } from "../workerd/settings.ts";
import { lockState, type StateLock } from "../workerd/state-lock.ts";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { readConfig } from "../../coordinator/config.ts";
import type { GrpcServer } from "../grpc/grpc-server.ts";
import { requestSend } from "../grpc/send.ts";
import { Host, type HostOptions } from "../node/host.ts";
import { connectionLimit } from "./connections.ts";
import { backUp, type BackedUp, type UsedSource } from "./backup.ts";
import { askForBackup, listenForBackups } from "./control.ts";
import { addressOf, HttpServer, listenError, type HttpOptions } from "./http-server.ts";
import { partFault } from "./parts.ts";
import { openFolder, clearUse } from "./state-folder.ts";
import { Storage } from "./storage.ts";
import type { OnStorageFailure } from "./disk.ts";
import { systemClock } from "./system-clock.ts";

export interface StandaloneOptions {
  host: string;
  /** 0 means any free port. */
  port: number;
  stateFolder: string;
  /** Accepts a folder that is a copy of one in use. */
  trustCopy?: boolean | undefined;
  /** Variables as in `wrangler.toml`. */
  variables: Readonly<Record<string, string>>;
  tls?: HttpOptions["tls"];
  /** Serves native gRPC, too, with the files of `tls`. */
  grpc?: { port: number } | undefined;
  /** The cells that are registered at the first start. */
  cells?: readonly string[];
  /** Receives the lines of the log. */
  log: (line: string) => void;
  /** Must end the process. */
  onStorageFailure: OnStorageFailure;
  /** Makes the host. Tests use it to make one with faults. */
  makeHost?: (options: HostOptions) => Host;
  /** False leaves out the cron at the start, for tests whose faults must not happen there. */
  cronAtStart?: boolean;
}

export interface Standalone {
  url: string;
  /** The address of native gRPC, such as `127.0.0.1:8788`. Undefined: it is not served. */
  grpcAddress: string | undefined;
  /** Few if the system allows few open files. */
  maxConnections: number;
  keys: DevKeys;
  isFirstStart: boolean;
  /** Carries out a request of this process itself. */
  dispatch: (request: Request) => Promise<Response>;
  /** Stops accepting requests, ends those that run, and moves all logs into their databases. */
  stop(): Promise<void>;
}

/** How long requests may take to end when the server stops. */
const STOP_MS = 10_000;
/** A run requests no page after 45 s, and has some more seconds to store how far it got. */
const FIRST_CRON_MS = 60_000;
const CRON_MS = 60_000;
/** Only a path is needed here, because no request leaves the process. */
const INTERNAL_URL = "http://localhost";

/** Starts the server on a state folder. Throws an `Error` with one sentence if it cannot. */
export async function startStandalone(options: StandaloneOptions): Promise<Standalone> {
  // Wrong variables are refused before anything is made.
  readConfig(options.variables);
  let lock: StateLock | undefined;
  try {
    lock = await lockState(options.stateFolder);
    await lock.freePort(options.port);
    return await startLocked(options, lock);
  } catch (error) {
    await lock?.release();
    throw startError(options.stateFolder, error);
  }
}

/** Names the folder in an error of the file system. */
function startError(folder: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return error;
  return new Error(
    `the state folder ${folder} cannot be read or written (${code}); fix its permissions or free some ` +
      "space, or set LEASEHOLD_STATE to another folder",
    { cause: error },
  );
}

async function startLocked(options: StandaloneOptions, lock: StateLock): Promise<Standalone> {
  const { stateFolder, variables, log: write, makeHost = (all) => new Host(all) } = options;
  const log = (event: string, fields: Record<string, string | number | boolean>): void =>
    write(JSON.stringify({ event, ...fields }));
  const { databases, shards, signingSecret } = await openFolder(stateFolder, {
    shards: variables["LEASEHOLD_SHARDS"],
    trustCopy: options.trustCopy,
  });
  const storage = new Storage({ folder: databases, onFailure: options.onStorageFailure });
  for (const name of storage.names) {
    const fault = partFault(storage.projection.connection, "main", name);
    if (fault === undefined) continue;
    await storage.close();
    await clearUse(databases);
    throw new Error(`${name} in ${storage.path} cannot be used: ${fault}`);
  }
  let isReady = false;
  const host = makeHost({
    clock: systemClock,
    // The log starts after the set-up, so that it does not contain the set-up's own requests.
    log: (event, fields) => (isReady || event !== "request" ? log(event, fields) : undefined),
    variables: {
      // Only a deployment pays for each line.
      LEASEHOLD_REQUEST_LOG: "all",
      ...variables,
      LEASEHOLD_SHARDS: shards,
      LEASEHOLD_SIGNING_SECRET: signingSecret,
    },
    store: (name) => storage.store(name),
    d1: storage.projection,
  });
  // The alarms that became due while the server was down ring, but a start doesn't wait for them.
  host.holdAlarms();
  for (const name of storage.names) host.open(name);
  const dispatch = (path: string, init?: RequestInit): Promise<Response> =>
    host.dispatch(new Request(`${INTERNAL_URL}${path}`, init));
  const known = await devKeys.read(stateFolder, signingSecret, options.cells);
  // Nobody but the cells could notice it, and only when they call.
  if (known !== undefined && storage.names.length === 0)
    throw new Error(
      `${databases} has no databases, though the folder has been used; restore a backup, ` +
        "or set LEASEHOLD_STATE to another folder",
    );
  const keys = known ?? (await devKeys.make(stateFolder, signingSecret, dispatch, options.cells));
  await checkShards(dispatch, keys, variables["LEASEHOLD_SHARDS"]);
  const cron = (): Promise<void> => runCron(host, log);
  // Callers find a part that has gone back in time only after the cron has told it so (H2).
  const firstCron =
    options.cronAtStart !== false && Promise.race([cron(), sleep(FIRST_CRON_MS, undefined, { ref: false })]);
  await Promise.all([storage.startCheckpoints(), firstCron]);
  isReady = true;
  const { limits } = readConfig(variables);
  const http = await HttpServer.listen(host, {
    host: options.host,
    port: options.port,
    bodyReadMs: limits.bodyReadMs,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    limits: { connections: connectionLimit() },
  });
  const grpc = await startGrpc(options, host, connectionLimit(), limits.bodyReadMs).catch(
    async (error: unknown) => {
      await http.close(0);
      throw error;
    },
  );
  const stopBackups = await listenForBackups(stateFolder, (to) =>
    backUp(sourceOf(stateFolder, storage), to),
  ).catch((error: unknown) => {
    log("backups_unavailable", { error: error instanceof Error ? error.message : String(error) });
    return () => {};
  });
  const stopCron = startCron(async () => {
    const dropped = http.takeDropped();
    if (dropped > 0) log("connections_dropped", { dropped });
    await cron();
  });
  host.releaseAlarms();
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    stopCron();
    stopBackups();
    await Promise.all([http.close(STOP_MS), grpc?.close(STOP_MS)]);
    host.end();
    await storage.settle();
    host.close();
    await storage.close();
    await clearUse(databases);
    await lock.release();
  };
  return {
    url: http.url,
    grpcAddress: grpc && addressOf(options.host, grpc.port),
    maxConnections: connectionLimit(),
    keys,
    isFirstStart: known === undefined,
    dispatch: (request) => host.dispatch(request),
    stop: () => (stopping ??= stop()),
  };
}

/** It is loaded only if it is used. */
async function startGrpc(
  { host: name, grpc, tls }: StandaloneOptions,
  host: Host,
  connections: number,
  readMs: number,
): Promise<GrpcServer | undefined> {
  if (grpc === undefined) return undefined;
  const { GrpcServer } = await import("../grpc/grpc-server.ts");
  try {
    return await GrpcServer.listen({
      host: name,
      port: grpc.port,
      tls,
      connections,
      limits: { readMs },
      send: requestSend(INTERNAL_URL, (request, certificate) => host.dispatch(request, certificate)),
    });
  } catch (error) {
    throw listenError(name, grpc.port, error as NodeJS.ErrnoException, "--grpc-port");
  }
}

const sourceOf = (folder: string, storage: Storage): UsedSource => ({
  folder,
  database: storage.path,
  flush: () => storage.flush(),
});

/** Copies the state to a new folder, through the server that uses it or, if there is none, by itself. */
export async function backUpState(
  stateFolder: string,
  to: string,
  { trustCopy }: Pick<StandaloneOptions, "trustCopy"> = {},
): Promise<BackedUp> {
  // The server may run in another folder.
  const target = resolve(to);
  const answered = await askForBackup(stateFolder, target);
  if (answered !== undefined) return answered;
  if (!existsSync(join(stateFolder, "state.json")))
    throw new Error(`${stateFolder} is not a state folder; set LEASEHOLD_STATE to the folder to copy`);
  const lock = await lockState(stateFolder, "its server cannot be reached, so stop it before the backup");
  try {
    const { databases } = await openFolder(stateFolder, { shards: undefined, trustCopy });
    const storage = new Storage({
      folder: databases,
      onFailure: (failure) => {
        throw failure;
      },
    });
    try {
      return await backUp(sourceOf(stateFolder, storage), target);
    } finally {
      await storage.close();
      await clearUse(databases);
    }
  } finally {
    await lock.release();
  }
}

async function runCron(
  host: Host,
  log: (event: string, fields: Record<string, string>) => void,
): Promise<void> {
  try {
    await host.cron();
  } catch (error) {
    log("cron_failed", { error: error instanceof Error ? error.message : String(error) });
  }
}

/** A timer may end a moment before the minute does. Without this, the cron would run twice. */
const EARLY_MS = 1_000;

/** Runs the cron at the start of every minute, as the platform does. */
function startCron(cron: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout;
  const next = (): void => {
    timer = setTimeout(
      () => {
        next();
        void cron();
      },
      CRON_MS - ((Date.now() + EARLY_MS) % CRON_MS) + EARLY_MS,
    );
  };
  next();
  return () => clearTimeout(timer);
}

/** Fails the start if LEASEHOLD_SHARDS asks for more shards than the deployment has. */
async function checkShards(
  dispatch: (path: string, init?: RequestInit) => Promise<Response>,
  { operator }: DevKeys,
  configured: string | undefined,
): Promise<void> {
  const answer = await dispatch("/v1/admin/cells?page_size=1", {
    headers: { authorization: `Bearer ${operator}` },
  });
  if (answer.ok) {
    // The first request has read the directory, which has the placement.
    const { placement } = (await (await dispatch("/healthz")).json()) as { placement: string };
    const fault = shardsFault(configured, placement);
    if (fault !== undefined) throw new Error(fault);
    return;
  }
  const problem = (await answer.json()) as { detail?: string; reason?: string };
  // The directory has gone back in time. Its operator reconciles it by calls to this server.
  if (problem.reason === "HISTORY_LOST") return;
  throw new Error(problem.detail ?? `the first request was answered with status ${answer.status}`);
}
