/** Runs `leasehold dev` as a process, in a folder of its own. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

const program = join(import.meta.dirname, "../../../scripts/leasehold.mjs");

interface Ready {
  url: string;
  state: string;
  keys_file: string;
  context: string | null;
  first_start: boolean;
  seeded: number;
}

/** A folder with the file of contexts, in which the program runs. */
class Home {
  readonly folder = mkdtempSync(join(tmpdir(), "leasehold-dev-test-"));
  readonly env = { ...process.env, LEASEHOLD_URL: "", LEASEHOLD_KEY: "", XDG_CONFIG_HOME: this.folder };
  readonly children: ChildProcess[] = [];

  run(...args: string[]) {
    const { folder: cwd, env } = this;
    return spawnSync(process.execPath, [program, ...args], { cwd, env, encoding: "utf8" });
  }

  /** Starts `leasehold dev`, and waits until it is ready. */
  async dev(...args: string[]) {
    const { folder: cwd, env } = this;
    const child = spawn(process.execPath, [program, "dev", "--jsonl", ...args], { cwd, env, stdio: "pipe" });
    this.children.push(child);
    let err = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
    const [line] = (await Promise.race([
      once(createInterface(child.stdout), "line"),
      once(child, "exit").then(() => Promise.reject(new Error(err))),
    ])) as [string];
    const stop = async (signal: NodeJS.Signals) => {
      const ended = once(child, "exit");
      child.kill(signal);
      const [code] = (await ended) as [number | null];
      return { code, err };
    };
    return { line, ready: JSON.parse(line) as Ready, stop };
  }

  get contexts(): { current: string | null; contexts: Record<string, { url: string; key: string }> } {
    return JSON.parse(readFileSync(join(this.folder, "leasehold/config.json"), "utf8"));
  }
}

export function newHome(): Home {
  const home = new Home();
  onTestFinished(() => {
    for (const child of home.children) child.kill("SIGKILL");
    rmSync(home.folder, { recursive: true, force: true });
  });
  return home;
}
