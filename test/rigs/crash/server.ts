import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { DevKeys } from "../../../src/hosts/workerd/dev-keys.ts";
import { BadOption } from "../../support/options.ts";

const root = join(import.meta.dirname, "../../..");
const scripts = {
  start: { production: "src/hosts/workerd/start.ts", failing: "test/rigs/crash/failing-server.ts" },
  standalone: { production: "scripts/standalone.mjs", failing: "test/rigs/crash/failing-standalone.ts" },
} as const;

/** The servers that the rig kills: those of `npm start` and of `npm run standalone`. */
export type HostKind = keyof typeof scripts;
export const hostKinds = Object.keys(scripts) as readonly HostKind[];

/** Reads the option `--host`. */
export function hostNamed(given = "start"): HostKind {
  const host = hostKinds.find((kind) => kind === given);
  if (host === undefined)
    throw new BadOption(`--host must be ${hostKinds.join(" or ")}, not ${JSON.stringify(given)}`);
  return host;
}

const READY = "Leasehold is ready at";
/** A runtime that is not back after this time hangs, however slow the machine is. */
const PATIENCE_MS = 300_000;

/**
 * What is killed: the whole process group, or one of its two processes. Node starts a new runtime if workerd
 * is killed.
 */
export const killTargets = ["group", "workerd", "node"] as const;
export type KillTarget = (typeof killTargets)[number];

export interface ServerOptions {
  /** `start` by default. */
  host?: HostKind;
  /** Which of the host's scripts to run, or another one. */
  kind: keyof (typeof scripts)[HostKind] | { script: string };
  port: number;
  /** The folder of its `state` and its log. */
  folder: string;
  variables?: Record<string, string>;
  args?: readonly string[];
}

const alive = new Set<ChildProcess>();
/** Kills everything that was started here and still runs. */
export function killAll(): void {
  for (const child of alive) killGroup(child.pid);
}
process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

/**
 * Starts a child in its own process group. The child does not outlive this process. Its temporary folder is
 * next to its log.
 */
export function startGroup(
  script: string,
  args: readonly string[],
  env: Record<string, string>,
  output: string,
): ChildProcess {
  const file = openSync(output, "a");
  const temp = join(dirname(output), "tmp");
  mkdirSync(temp, { recursive: true });
  const child = spawn(process.execPath, [resolve(root, script), ...args], {
    cwd: root,
    env: { ...process.env, TMPDIR: temp, ...env },
    detached: true,
    stdio: ["ignore", file, file],
  });
  closeSync(file);
  alive.add(child);
  child.once("exit", () => alive.delete(child));
  return child;
}

export function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}

export const endOf = (child: ChildProcess): Promise<number | null> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve(child.exitCode)
    : new Promise((end) => child.once("exit", (code) => end(code)));

/** A coordinator in its own process group, which can be killed as by `kill -9`. */
export class Server {
  readonly url: string;
  readonly pid: number;
  readonly ended: Promise<number | null>;
  readonly stateFolder: string;
  readonly #child: ChildProcess;
  readonly #output: string;
  readonly #from: number;

  constructor({ host = "start", kind, port, folder, variables = {}, args = [] }: ServerOptions) {
    this.url = `http://127.0.0.1:${port}`;
    this.stateFolder = join(folder, "state");
    this.#output = join(folder, "server.log");
    // More than one shard, so that a crash can happen between two shards.
    const env = {
      PORT: String(port),
      LEASEHOLD_STATE: this.stateFolder,
      LEASEHOLD_SHARDS: "4",
      ...variables,
    };
    const script = typeof kind === "string" ? scripts[host][kind] : kind.script;
    this.#child = startGroup(script, args, env, this.#output);
    this.pid = this.#child.pid ?? 0;
    this.#from = readFileSync(this.#output, "utf8").length;
    this.ended = endOf(this.#child);
  }

  get keys(): DevKeys {
    return JSON.parse(readFileSync(join(this.stateFolder, "dev-keys.json"), "utf8")) as DevKeys;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get output(): string {
    return readFileSync(this.#output, "utf8").slice(this.#from);
  }

  /** Waits until the server is ready. Returns false if it ended first. */
  async ready(): Promise<boolean> {
    while (this.isRunning) {
      if (this.output.includes(READY)) return true;
      await new Promise((resume) => setTimeout(resume, 20));
    }
    return false;
  }

  async kill(target: KillTarget): Promise<void> {
    const pid = target === "workerd" ? this.workerd : this.pid;
    if (target === "group" || pid === undefined) killGroup(this.pid);
    else process.kill(pid, "SIGKILL");
    if (target !== "workerd") await this.ended;
    if (target === "node") killGroup(this.pid);
  }

  /**
   * Waits until the process has started another runtime after its runtime was killed. Returns false if it did
   * not.
   */
  async isBack(): Promise<boolean> {
    for (const endMs = performance.now() + PATIENCE_MS; this.isRunning && performance.now() < endMs;) {
      const answer = await fetch(`${this.url}/healthz`).catch(() => undefined);
      if (answer?.ok === true) return true;
      await new Promise((resume) => setTimeout(resume, 50));
    }
    return false;
  }

  /** Asks the server to end. Returns its exit code, or null if a signal ended it. */
  async stop(): Promise<number | null> {
    if (this.isRunning) process.kill(this.pid, "SIGTERM");
    return this.ended;
  }

  get workerd(): number | undefined {
    return membersOf(this.pid).find(({ name }) => name === "workerd")?.pid;
  }
}

/** The processes of a group, from /proc. */
function membersOf(group: number): { pid: number; name: string }[] {
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  return pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
      const [, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(pgrp) === group ? [{ pid: Number(pid), name }] : [];
    } catch {
      return [];
    }
  });
}
