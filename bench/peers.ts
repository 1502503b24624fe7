/** Starts the peers as separate processes, reads their processor time, and stops them. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Serving } from "./peers/serve.ts";

/** Each of these has its own process. */
const programs = [
  "leasehold",
  "standalone",
  "d1-only",
  "postgres",
  "postgres-transactions",
  "etcd",
  "ceilings",
] as const;
export type Program = (typeof programs)[number];
const ceilings = ["answer", "object", "write"] as const;
export type Ceiling = (typeof ceilings)[number];
export type PeerName = Exclude<Program, "ceilings"> | Ceiling;
export const peerNames: readonly PeerName[] = [
  ...programs.filter((program) => program !== "ceilings"),
  ...ceilings,
];
export const isCeiling = (name: PeerName): name is Ceiling => (ceilings as readonly string[]).includes(name);
export const programOf = (name: PeerName): Program => (isCeiling(name) ? "ceilings" : name);

/** The kernel counts processor time in hundredths of a second. */
const TICKS_PER_SECOND = 100;
const START_MS = 60_000;
const STOP_MS = 10_000;

export class Peer {
  readonly program: Program;
  readonly #process: ChildProcess;
  readonly #serving: Serving;

  private constructor(program: Program, process: ChildProcess, serving: Serving) {
    this.program = program;
    this.#process = process;
    this.#serving = serving;
  }

  /** Starts the program with a folder of its own below `root`. Throws when it does not answer in time. */
  static async start(program: Program, root: string): Promise<Peer> {
    const folder = join(root, program);
    mkdirSync(folder, { recursive: true });
    // Some peers run as a user of their own, who must be able to write here.
    for (const path of [root, folder]) chmodSync(path, 0o777);
    const script = join(import.meta.dirname, "peers", `${program}.ts`);
    const child = spawn(process.execPath, [script, folder], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout });
    const signal = AbortSignal.timeout(START_MS);
    const started = Promise.race([
      once(lines, "line", { signal }).then(([text]) => String(text)),
      once(child, "exit", { signal }).then(() => {
        throw new Error(`${program} exited during its start; see its output above`);
      }),
    ]);
    const line = await started.catch((error: unknown) => {
      child.kill("SIGKILL");
      throw error;
    });
    return new Peer(program, child, JSON.parse(line) as Serving);
  }

  serving(name: PeerName): Serving {
    return isCeiling(name) ? { ...this.#serving, url: `${this.#serving.url}/${name}` } : this.#serving;
  }

  /** Processor seconds of the process and all its descendants, up to now. */
  cpuSeconds(): number {
    return cpuOfTree(this.#process.pid ?? 0);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGTERM");
    const patience = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(patience);
  }
}

/** All live processes below `root`, itself included. */
export function treeOf(root: number): number[] {
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    const stat = /^\d+$/.test(entry) ? statOf(Number(entry)) : undefined;
    if (stat !== undefined) parents.set(Number(entry), Number(stat[1]));
  }
  const isBelow = (pid: number): boolean =>
    pid === root || (parents.has(pid) && pid !== 1 && isBelow(parents.get(pid) ?? 1));
  return [...parents.keys()].filter(isBelow);
}

function cpuOfTree(root: number): number {
  let ticks = 0;
  for (const pid of treeOf(root)) {
    // The fields are utime and stime, and their sums over ended children (cutime and cstime).
    const stat = statOf(pid);
    if (stat !== undefined) for (const field of [11, 12, 13, 14]) ticks += Number(stat[field]);
  }
  return ticks / TICKS_PER_SECOND;
}

/** The fields of `/proc/PID/stat`, starting with the process's state; undefined when the process is gone. */
function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
