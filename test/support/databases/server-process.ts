import type { ChildProcess, StdioOptions } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { treeOf } from "../../../bench/peers.ts";
import { removeFolder } from "./own-folder.ts";
import type { Database } from "./programs.ts";

const READY_MS = 60_000;
const PAUSE_MS = 20;
const LAST_LINES = 5;

export interface Launch {
  database: Database;
  /** The server's own folder. It is removed with the server. */
  folder: string;
  run: (stdio: StdioOptions) => ChildProcess;
  /** Sends the server a query. Rejects until the server answers. */
  ask: () => Promise<void>;
  /** The signal that ends the server quickly and leaves nothing behind in the system. */
  stopSignal: NodeJS.Signals;
}

/**
 * The processes of a server. They can be killed and started again. When they are stopped, their folder is
 * removed.
 */
export class ServerProcess {
  readonly #launch: Launch;
  #process: ChildProcess | undefined;
  /** Processes that were killed and may still be ending. */
  #killed: readonly number[] = [];

  constructor(launch: Launch) {
    this.#launch = launch;
    process.once("exit", this.#endAtOnce);
  }

  async start(): Promise<void> {
    const child = this.#run();
    this.#process = child;
    await once(child, "spawn");
    const deadline = performance.now() + READY_MS;
    for (;;) {
      try {
        return await this.#launch.ask();
      } catch (error) {
        if (!isRunning(child) || performance.now() > deadline)
          throw new Error(`${this.#launch.database} did not start: ${this.#lastWords()}`, { cause: error });
      }
      await setTimeout(PAUSE_MS);
    }
  }

  kill(): void {
    const child = this.#process;
    if (!isRunning(child)) return;
    // The server is stopped first, because it could otherwise start another process in the meantime.
    signal(child.pid, "SIGSTOP");
    this.#killed = treeOf(child.pid);
    for (const pid of this.#killed) signal(pid, "SIGKILL");
  }

  async restart(): Promise<void> {
    this.kill();
    await this.#gone();
    await this.start();
  }

  async stop(): Promise<void> {
    process.off("exit", this.#endAtOnce);
    if (isRunning(this.#process)) this.#process.kill(this.#launch.stopSignal);
    await this.#gone();
    removeFolder(this.#launch.folder);
  }

  readonly #endAtOnce = (): void => {
    if (isRunning(this.#process)) this.#process.kill(this.#launch.stopSignal);
    removeFolder(this.#launch.folder);
  };

  #run(): ChildProcess {
    const log = openSync(this.#logFile, "a");
    try {
      return this.#launch.run(["ignore", log, log]);
    } finally {
      closeSync(log);
    }
  }

  /**
   * Waits until the old processes are gone, because a server refuses a folder that another one still uses.
   */
  async #gone(): Promise<void> {
    if (isRunning(this.#process)) await once(this.#process, "exit");
    while (this.#killed.some(isAlive)) await setTimeout(PAUSE_MS);
  }

  get #logFile(): string {
    return join(this.#launch.folder, "log");
  }

  #lastWords(): string {
    return readFileSync(this.#logFile, "utf8").trim().split("\n").slice(-LAST_LINES).join("\n");
  }
}

const isRunning = (child: ChildProcess | undefined): child is ChildProcess & { pid: number } =>
  child?.pid !== undefined && child.exitCode === null && child.signalCode === null;

/** Sends a signal to a process, which may have ended already. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Whether a process still runs. A zombie is already dead. */
function isAlive(pid: number): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !["Z", "X"].includes(text.charAt(text.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}
