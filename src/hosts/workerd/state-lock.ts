import { access, constants, readFile, rm, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeFolder, writeDurably } from "./durable-file.ts";

export interface StateLock {
  /** Throws if another process uses the port. */
  freePort(port: number): Promise<void>;
  release(): Promise<void>;
}

/** How long the runtime of a killed coordinator may take to end. */
const PREDECESSOR_MS = 5_000;

const LOCK_WAIT_MS = 2_000;

const OTHER_FOLDER = "set LEASEHOLD_STATE to another folder";

/** Keeps the databases referenced. Garbage collection would close them and release their locks. */
const held = new Set<DatabaseSync>();

/**
 * Locks a state folder, because two coordinators on one folder would be two owners of every name. The kernel
 * holds the lock and releases it with the process, even after a crash. SQLite requests the lock in a way that
 * works on every platform that Node supports. `ifInUse` says what to do if another process has the lock.
 */
export async function lockState(folder: string, ifInUse = OTHER_FOLDER): Promise<StateLock> {
  try {
    await makeFolder(folder);
    if (!(await stat(folder)).isDirectory())
      throw Object.assign(new Error("it is not a directory"), { code: "ENOTDIR" });
    await access(folder, constants.W_OK | constants.R_OK | constants.X_OK);
  } catch (error) {
    throw cannotWrite(folder, error);
  }
  const owner = join(folder, "owner");
  const lock = await acquire(folder, owner, ifInUse);
  // An owner file means that the previous coordinator was killed. Its runtime may still use the port for a
  // moment.
  const waitMs = (await readOwner(owner)) === undefined ? 0 : PREDECESSOR_MS;
  await writeDurably(owner, String(process.pid));
  return {
    freePort: (port) => waitForPort(port, waitMs),
    release: async () => {
      await rm(owner, { force: true });
      held.delete(lock);
      lock.close();
    },
  };
}

/** Acquires the lock, and waits up to `LOCK_WAIT_MS` for a process that was killed just now. */
async function acquire(folder: string, owner: string, ifInUse: string): Promise<DatabaseSync> {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(folder, "lock.sqlite"), { timeout: LOCK_WAIT_MS });
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    held.add(database);
    return database;
  } catch (error) {
    database?.close();
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw cannotWrite(folder, error);
  }
  const pid = await readOwner(owner);
  const user = pid === undefined ? "another process" : `process ${pid}`;
  throw new Error(`the state folder ${folder} is in use by ${user}; ${ifInUse}`);
}

const SQLITE_BUSY = 5;

async function readOwner(path: string): Promise<string | undefined> {
  const pid = await readFile(path, "utf8").catch(() => "");
  return /^\d+$/.test(pid) ? pid : undefined;
}

function cannotWrite(folder: string, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === undefined || code === "ERR_SQLITE_ERROR" ? message : code;
  return new Error(`the state folder ${folder} cannot be written (${why}); ${OTHER_FOLDER}`, {
    cause: error,
  });
}

async function waitForPort(port: number, waitMs: number): Promise<void> {
  if (port === 0) return;
  for (const until = Date.now() + waitMs; ;) {
    const problem = await tryPort(port);
    if (problem === undefined) return;
    if (Date.now() >= until)
      throw new Error(
        problem === "EADDRINUSE"
          ? `port ${port} is in use; set PORT to another port`
          : `port ${port} cannot be used (${problem}); set PORT to another port`,
      );
    await new Promise((resume) => setTimeout(resume, 100));
  }
}

function tryPort(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(undefined)));
  });
}
