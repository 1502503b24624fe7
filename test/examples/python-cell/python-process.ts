import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { requirePython } from "../../support/python.ts";
import { BoxError } from "./black-box.ts";

const DRIVER = join(import.meta.dirname, "driver.py");

/** What driver.py needs to know. Its names are those of Python. */
export interface ProcessConfig {
  url: string;
  key: string;
  cell: string;
  database_url: string;
  tables: readonly PythonTable[];
  retries?: number;
  point?: string;
  hit?: number;
  fault?: string | undefined;
}

export interface PythonTable {
  name: string;
  source: string;
  subject: string;
  columns: Record<string, string>;
  subject_id?: string;
  integer_ids?: boolean;
  /** A column that says whether the names of a row are claimed. */
  when?: string;
}

/** A point that a process has reached, and the number of requests that it has sent until then. */
export interface Reached {
  reached: string;
  sent: number;
}

type Line =
  | Reached
  | { id: number; value: unknown }
  | { id: number; error: { code: string; message: string } };

/** A Python process with the cell of the example. */
export class PythonProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #reached = Promise.withResolvers<Reached>();
  #serial = 0;

  /** Starts Python. Configure it before the first request. */
  constructor() {
    this.#child = spawn(requirePython(), ["-u", DRIVER], { stdio: ["pipe", "pipe", "inherit"] });
    this.#ended = new Promise((end) => this.#child.once("exit", () => end()));
    void this.#ended.then(() => this.#fail(new Error("the Python process has ended")));
    // A process that is killed may still have a request in its input.
    this.#child.stdin?.on("error", () => {});
    void this.#read();
  }

  configure(config: ProcessConfig): this {
    this.#write(config);
    return this;
  }

  async request<T>(op: string, options: Record<string, unknown> = {}): Promise<T> {
    const id = (this.#serial += 1);
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    this.#write({ id, op, options });
    return (await waiting.promise) as T;
  }

  /** Waits until the process has stopped at its point. Fails if its only request ends without reaching it. */
  async runToPoint(op: string, options: Record<string, unknown>): Promise<Reached> {
    const ended = this.request(op, options).then((value) => {
      throw new Error(`the request has ended: ${JSON.stringify(value)}`);
    });
    return Promise.race([this.#reached.promise, ended]);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  #write(line: unknown): void {
    this.#child.stdin?.write(`${JSON.stringify(line)}\n`);
  }

  async #read(): Promise<void> {
    if (this.#child.stdout === null) return;
    for await (const text of createInterface(this.#child.stdout)) this.#take(JSON.parse(text) as Line);
  }

  #take(line: Line): void {
    if ("reached" in line) return this.#reached.resolve(line);
    const waiting = this.#waiting.get(line.id);
    this.#waiting.delete(line.id);
    if ("error" in line) waiting?.reject(new BoxError(line.error.code, line.error.message));
    else waiting?.resolve(line.value);
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
