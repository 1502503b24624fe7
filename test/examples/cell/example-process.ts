import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DevKeys } from "../../../src/hosts/workerd/dev-keys.ts";
import { createClient, type Client } from "../../../src/users/client/index.ts";

const root = join(import.meta.dirname, "../../..");

/** Runs `npm run example` in its own process, with its own temporary folder. */
export class ExampleProcess {
  readonly #process: ChildProcess;
  readonly #temporary = mkdtempSync(join(tmpdir(), "leasehold-example-test-"));
  #output = "";

  constructor(variables: Record<string, string> = {}) {
    const args = ["examples/cell/main.ts", "--quick", "--port", String(randomInt(10_000, 31_000))];
    const env = { ...process.env, ...variables, TMPDIR: this.#temporary };
    this.#process = spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    const keep = (data: Buffer): void => {
      this.#output += data.toString();
    };
    this.#process.stdout?.on("data", keep);
    this.#process.stderr?.on("data", keep);
  }

  /** The output so far. */
  get output(): string {
    return this.#output;
  }

  async ready(): Promise<this> {
    while (!this.#output.includes("Ctrl-C")) {
      if (this.#process.exitCode !== null) throw new Error(`the example ended: ${this.#output}`);
      await Promise.race([once(this.#process, "exit"), once(this.#process.stdout ?? this.#process, "data")]);
    }
    return this;
  }

  get url(): string {
    return this.#address("router");
  }

  cellUrl(cell: string): string {
    return new URL(this.#address(`cell ${cell}`)).origin;
  }

  get keys(): DevKeys {
    const folder = this.left().find((name) => name.startsWith("leasehold-example-")) ?? "";
    return JSON.parse(
      readFileSync(join(this.#temporary, folder, "coordinator/dev-keys.json"), "utf8"),
    ) as DevKeys;
  }

  /** A client with a router key. */
  get records(): Client["records"] {
    return createClient({ url: this.#address("coordinator"), key: this.keys.router }).records;
  }

  /** Posts the form of a sign-up. `crash` is where the cell dies. */
  signUp(cell: string, handle: string, crash = ""): Promise<Response> {
    return fetch(`${this.url}/-/cells/${cell}/sign-up`, {
      method: "POST",
      body: new URLSearchParams({ handle, email: `${handle}@example.com`, crash }),
      headers: { origin: this.url },
      redirect: "manual",
    });
  }

  /** Lists the files in its temporary folder. */
  left(): string[] {
    return readdirSync(this.#temporary);
  }

  /** Sends SIGINT, as Ctrl-C does, and resolves to the exit code. */
  async end(): Promise<number | null> {
    if (this.#process.exitCode === null) {
      this.#process.kill("SIGINT");
      await once(this.#process, "exit");
    }
    return this.#process.exitCode;
  }

  removeFolder(): void {
    rmSync(this.#temporary, { recursive: true, force: true });
  }

  #address(what: string): string {
    const [, url] = new RegExp(`^ {2}${what} +(http\\S+)`, "m").exec(this.#output) ?? [];
    if (url === undefined) throw new Error(`the example does not say where the ${what} is`);
    return url;
  }
}
