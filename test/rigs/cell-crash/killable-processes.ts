import { build } from "esbuild";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { REACHED, type Job } from "./job.ts";

/** Bundles the program once, because every case starts a new process. */
async function bundled(folder: string): Promise<string> {
  const outfile = join(folder, "cell-process.cjs");
  const entryPoints = [join(import.meta.dirname, "cell-process.ts")];
  await build({
    entryPoints,
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    external: ["pg-native"],
    logLevel: "silent",
  });
  return outfile;
}

/**
 * Processes that are killed at a point. One is always started in advance, because starting takes longer than
 * dying.
 */
export class KillableProcesses {
  readonly #alive = new Set<ChildProcess>();
  readonly #program: string;
  #spare: ChildProcess | undefined;

  private constructor(program: string) {
    this.#program = program;
  }

  /** `folder` is where the bundled program is written. */
  static async start(folder: string): Promise<KillableProcesses> {
    return new KillableProcesses(await bundled(folder));
  }

  /** Runs `job` in a process and kills it at its point. Rejects if the process never reaches the point. */
  async runAndKill(job: Job): Promise<void> {
    const child = this.#spare ?? this.#start();
    this.#spare = this.#start();
    const ended = once(child, "exit");
    const said = this.#firstLine(child);
    child.send(job);
    const line = await said;
    child.kill("SIGKILL");
    await ended;
    if (line !== `${REACHED}${job.point}`) throw new Error(line);
  }

  end(): void {
    for (const child of this.#alive) child.kill("SIGKILL");
  }

  async #firstLine(child: ChildProcess): Promise<string> {
    if (child.stdout === null) throw new Error("the process has no output");
    for await (const line of createInterface(child.stdout)) return line;
    return "the process ended before it reached a point";
  }

  #start(): ChildProcess {
    const child = fork(this.#program, {
      stdio: ["ignore", "pipe", "inherit", "ipc"],
      env: { ...process.env, NODE_COMPILE_CACHE: join(dirname(this.#program), "compiled") },
    });
    this.#alive.add(child);
    child.once("exit", () => this.#alive.delete(child));
    return child;
  }
}
