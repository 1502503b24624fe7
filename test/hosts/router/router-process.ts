import { spawn, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Ended } from "../workerd/server.ts";

const root = join(import.meta.dirname, "../../..");

/** Runs `npm run router` in its own process. */
export class RouterProcess {
  readonly url: string;
  readonly ended: Promise<Ended>;
  readonly #process: ChildProcess;
  #stdout = "";
  #stderr = "";

  constructor(port: number, args: readonly string[] = [], variables: Record<string, string> = {}) {
    this.url = `http://127.0.0.1:${port}`;
    this.#process = spawn(process.execPath, ["src/hosts/router/router.ts", "--port", String(port), ...args], {
      cwd: root,
      env: { ...process.env, ...variables },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process.stdout?.on("data", (data: Buffer) => (this.#stdout += data.toString()));
    this.#process.stderr?.on("data", (data: Buffer) => (this.#stderr += data.toString()));
    this.ended = new Promise((resolve) =>
      this.#process.once("exit", (code) => resolve({ code, stderr: this.#stderr })),
    );
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  async ready(): Promise<this> {
    for (;;) {
      if (this.#process.exitCode !== null) throw new Error(`the router ended: ${this.#stderr}`);
      if (this.#stdout.includes("is ready")) return this;
      await new Promise((resume) => setTimeout(resume, 50));
    }
  }

  end(signal: "SIGINT" | "SIGTERM" | "SIGKILL"): Promise<Ended> {
    this.#process.kill(signal);
    return this.ended;
  }

  /** The memory of the router's workerd in bytes. Only Linux says it. */
  memoryBytes(): number {
    const pid = this.#workerd();
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kib) * 1_024;
  }

  #workerd(): string {
    const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const child = processes.find((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        return status.startsWith("Name:\tworkerd") && status.includes(`\nPPid:\t${this.#process.pid}\n`);
      } catch {
        // The process has ended meanwhile.
        return false;
      }
    });
    if (child === undefined) throw new Error("the router has no workerd");
    return child;
  }
}
