import { access, constants, mkdir, open, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";

export interface StateLock {
  /** Throws when somebody else listens on the port. */
  freePort(port: number): Promise<void>;
  release(): Promise<void>;
}

/** How long a killed predecessor's runtime may take to go away. */
const PREDECESSOR_MS = 5_000;

const LEAVING_MS = 2_000;

/** Two coordinators on one state folder would be two owners of every name: one of them must not start. */
export async function lockState(folder: string): Promise<StateLock> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK | constants.R_OK | constants.X_OK);
  } catch (error) {
    throw new Error(`the state folder ${folder} cannot be written: ${(error as NodeJS.ErrnoException).code ?? String(error)}`, { cause: error });
  }
  const path = join(folder, "lock");
  const takenOver = await take(path, folder);
  return {
    freePort: (port) => waitForPort(port, takenOver ? PREDECESSOR_MS : 0),
    release: () => rm(path, { force: true }),
  };
}

/** As `mkdir -p`; Node's own goes round in circles where a folder cannot be made although its parent exists, as in /proc. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || (await exists(dirname(folder)))) throw error;
    await makeFolder(dirname(folder));
    await mkdir(folder);
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** True when the lock was left behind by a process that is gone. */
async function take(path: string, folder: string): Promise<boolean> {
  let takenOver = false;
  for (;;) {
    try {
      const file = await open(path, "wx", 0o600);
      await file.writeFile(String(process.pid));
      await file.close();
      return takenOver;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST")
        throw new Error(`the state folder ${folder} cannot be written: ${String(error)}`, { cause: error });
    }
    const owner = Number(await readFile(path, "utf8").catch(() => ""));
    // One that was killed a moment ago may still be on its way out.
    if (await outlives(owner, LEAVING_MS))
      throw new Error(`the state folder ${folder} is in use by process ${owner}; set LEASEHOLD_STATE to another one`);
    await rm(path, { force: true });
    takenOver = true;
  }
}

async function outlives(pid: number, patienceMs: number): Promise<boolean> {
  for (const until = Date.now() + patienceMs; Date.now() < until;) {
    if (!(await isAlive(pid))) return false;
    await new Promise((resume) => setTimeout(resume, 50));
  }
  return isAlive(pid);
}

async function isAlive(pid: number): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  // Dead, but not yet collected by its parent. Elsewhere than on Linux there is no such file.
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return !/\) Z /.test(stat);
}

async function waitForPort(port: number, patienceMs: number): Promise<void> {
  if (port === 0) return;
  for (const until = Date.now() + patienceMs; ;) {
    const problem = await tryPort(port);
    if (problem === undefined) return;
    if (Date.now() >= until)
      throw new Error(problem === "EADDRINUSE" ? `port ${port} is in use; set PORT to another one` : `port ${port} cannot be used: ${problem}`);
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
