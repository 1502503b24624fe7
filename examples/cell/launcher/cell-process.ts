import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { READY, type CellConfig } from "../application/cell-config.ts";

const PROGRAM = join(import.meta.dirname, "../application/main.ts");
/** How long a cell may take to stop before it is killed. */
const END_MS = 5_000;

/** A cell's process. If it is killed, another one starts after a pause. */
export class CellProcess {
  readonly id: string;
  readonly address: string;
  readonly #config: CellConfig;
  #child: ChildProcess | undefined;
  #isReady = false;
  #isStopping = false;
  #restart: NodeJS.Timeout | undefined;
  readonly #failed = Promise.withResolvers<Error>();

  constructor(config: CellConfig, address: string) {
    this.id = config.cell;
    this.address = address;
    this.#config = config;
  }

  get isUp(): boolean {
    return this.#isReady;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when a restart of the cell has failed. */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  async start(): Promise<void> {
    // The cell writes errors to this process's stderr.
    const child = fork(PROGRAM, [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#child = child;
    child.once("exit", (code) => this.#ended(code));
    child.send(this.#config);
    const answer = await Promise.race([once(child, "message"), once(child, "exit")]);
    if (answer[0] !== READY) throw new Error(`cell ${this.id} did not start; its error is printed above`);
    this.#isReady = true;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const patience = setTimeout(() => child.kill("SIGKILL"), END_MS);
    await ended;
    clearTimeout(patience);
  }

  /** Kills the cell without waiting, for use in an exit handler. */
  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #ended(code: number | null): void {
    const wasReady = this.#isReady;
    this.#isReady = false;
    // A cell that ended before it was ready would fail again, so it is not restarted.
    if (this.#isStopping || !wasReady) return;
    if (code !== null) process.stderr.write(`example: cell ${this.id} ended with exit code ${code}\n`);
    this.#restart = setTimeout(() => {
      this.start().catch((error: unknown) =>
        this.#failed.resolve(error instanceof Error ? error : new Error(String(error))),
      );
    }, this.#config.timing.restartMs);
  }
}
