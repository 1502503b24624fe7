import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DevKeys } from "../../../src/hosts/workerd/dev-keys.ts";

const root = join(import.meta.dirname, "../../..");

export interface Ended {
  code: number | null;
  stderr: string;
}

/** A batch that creates a claim of one name. */
export const oneName = (value: string): object => ({
  creates: [
    {
      bucket: { type: "ROUTES", value },
      subject: { type: "USER", id: 1 },
      source: { type: "RAILS_TABLE_USERS", id: 1 },
    },
  ],
});
export const leaseId = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

export const scripts = { start: "src/hosts/workerd/start.ts", standalone: "scripts/standalone.mjs" } as const;

/** Runs `npm start` or `npm run standalone` in its own process. */
export class Server {
  readonly url: string;
  readonly ended: Promise<Ended>;
  readonly #process: ChildProcess;
  readonly #stateFolder: string;
  #stdout = "";
  #stderr = "";

  constructor(
    port: number,
    stateFolder: string,
    variables: Record<string, string> = {},
    args: readonly string[] = [],
    script: keyof typeof scripts = "start",
    program: string = scripts[script],
  ) {
    this.url = `http://127.0.0.1:${port}`;
    this.#stateFolder = stateFolder;
    const env = { ...process.env, PORT: String(port), LEASEHOLD_STATE: stateFolder, ...variables };
    this.#process = spawn(process.execPath, [program, ...args], {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process.stdout?.on("data", (data: Buffer) => (this.#stdout += data.toString()));
    this.#process.stderr?.on("data", (data: Buffer) => (this.#stderr += data.toString()));
    this.ended = new Promise((resolve) =>
      this.#process.once("exit", (code) => resolve({ code, stderr: this.#stderr })),
    );
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get keys(): DevKeys {
    return JSON.parse(readFileSync(join(this.#stateFolder, "dev-keys.json"), "utf8")) as DevKeys;
  }

  async ready(): Promise<this> {
    for (;;) {
      if (this.#process.exitCode !== null) throw new Error(`the server ended: ${this.#stderr}`);
      const answer = await fetch(`${this.url}/readyz`).catch(() => undefined);
      if (answer?.status === 200) return this;
      await new Promise((resume) => setTimeout(resume, 50));
    }
  }

  end(signal: "SIGINT" | "SIGTERM" | "SIGKILL"): Promise<Ended> {
    this.#process.kill(signal);
    return this.ended;
  }

  /** Sends a request. Status 0 means that there was no answer. */
  async call(
    key: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    try {
      const answer = await fetch(`${this.url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    } catch {
      return { status: 0, body: {} };
    }
  }
}
