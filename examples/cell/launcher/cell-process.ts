import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { READY, type CellConfig } from "../application/cell-config.ts";

const PROGRAM = join(import.meta.dirname, "../application/main.ts");
/** How long a cell may take to end in order. */
const END_MS = 5_000;

/** A cell's process. When it is killed, another one takes its place after a pause. */
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

  /** Resolves when the cell cannot be started again. */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  async start(): Promise<void> {
    // Its standard error is ours; Ctrl-C reaches it too, and it leaves the order of the end to us.
    const child = fork(PROGRAM, [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#child = child;
    child.once("exit", (code) => this.#ended(code));
    child.send(this.#config);
    const answer = await Promise.race([once(child, "message"), once(child, "exit")]);
    if (answer[0] !== READY) throw new Error(`cell ${this.id} did not start`);
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

  /** For the last moment of this process, in which nothing can be waited for. */
  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #ended(code: number | null): void {
    const wasReady = this.#isReady;
    this.#isReady = false;
    // A cell that never got ready would never get ready.
    if (this.#isStopping || !wasReady) return;
    if (code !== null) process.stderr.write(`example: cell ${this.id} ended with ${code}\n`);
    this.#restart = setTimeout(() => {
      this.start().catch((error: unknown) =>
        this.#failed.resolve(error instanceof Error ? error : new Error(String(error))),
      );
    }, this.#config.timing.restartMs);
  }
}
