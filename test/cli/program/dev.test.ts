/** `leasehold dev` as a process, with its state, its context and its signals. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../scripts/free-port.ts";
import { checkNode } from "../../../src/cli/dev/start-server.ts";

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

function newHome(): Home {
  const home = new Home();
  onTestFinished(() => {
    for (const child of home.children) child.kill("SIGKILL");
    rmSync(home.folder, { recursive: true, force: true });
  });
  return home;
}

test("it keeps its state, and a second start continues", async () => {
  const home = newHome();
  const port = String(await freePort());
  const first = await home.dev("--port", port, "--seed", "5");
  expect(first.ready).toMatchObject({ first_start: true, context: "dev", seeded: 5 });
  expect(first.ready.state).toBe(join(home.folder, ".leasehold"));
  expect(statSync(first.ready.keys_file).mode & 0o777).toBe(0o600);
  const keys = JSON.parse(readFileSync(first.ready.keys_file, "utf8")) as { cells: object };
  expect(Object.keys(keys.cells)).toEqual(["1", "2", "3"]);
  expect(home.contexts).toMatchObject({ current: "dev", contexts: { dev: { url: first.ready.url } } });
  expect(home.run("lookup", "SEED-00005", "--type", "USERNAMES").status).toBe(0);

  const other = home.run("dev", "--port", port, "--state", "other");
  expect(other.status).toBe(1);
  expect(other.stderr).toContain(`leasehold: port ${port} is in use\nNext: leasehold dev --port `);
  const same = home.run("dev", "--port", String(await freePort()));
  expect(same.stderr).toContain("is in use by process");
  expect(same.stderr).toContain("Next: leasehold dev --state FOLDER\n");

  const stopped = await first.stop("SIGINT");
  expect(stopped.code).toBe(0);
  expect(first.line + stopped.err).not.toContain("lhk_");
  const second = await home.dev("--port", port, "--seed", "6");
  expect(second.ready).toMatchObject({ first_start: false, seeded: 1 });
  expect((await second.stop("SIGTERM")).code).toBe(0);
});

test("a temporary one leaves nothing behind, and does not replace the context of another URL", async () => {
  const home = newHome();
  const port = String(await freePort());
  const first = await home.dev("--port", port, "--temporary");
  expect(home.contexts.contexts).toHaveProperty("dev");
  expect((await first.stop("SIGINT")).code).toBe(0);
  expect(existsSync(first.ready.state)).toBe(false);
  expect(home.contexts).toEqual({ current: null, contexts: {} });

  const dev = { url: "https://leasehold.example.com", key: "lhk_a.b" };
  const saved = { current: "dev", contexts: { dev } };
  writeFileSync(join(home.folder, "leasehold/config.json"), JSON.stringify(saved), { mode: 0o600 });
  const second = await home.dev("--port", port, "--temporary");
  expect(second.ready.context).toBe(null);
  expect((await second.stop("SIGINT")).err).toContain("was kept: give another name with --save-as");
  expect(home.contexts).toEqual(saved);

  const kept = { current: "dev", contexts: { dev: { url: first.ready.url, key: "lhk_c.d" } } };
  writeFileSync(join(home.folder, "leasehold/config.json"), JSON.stringify(kept), { mode: 0o600 });
  const third = await home.dev("--port", port, "--temporary");
  expect(third.ready.context).toBe("dev");
  expect(home.contexts).not.toEqual(kept);
  expect((await third.stop("SIGINT")).code).toBe(0);
  expect(home.contexts).toEqual(kept);
});

test("mistakes are named before anything is started, and a wrong seed stops it", async () => {
  const home = newHome();
  expect(home.run("dev", "--url", "http://127.0.0.1:1")).toMatchObject({ status: 2 });
  expect(home.run("dev", "--types", "none.json").stderr).toContain("--types: none.json cannot be read");
  expect(home.run("dev", "--temporary", "--state", "a").status).toBe(2);
  writeFileSync(
    join(home.folder, "names.ndjson"),
    '{"bucket":{"type":"USERNAMES","value":"a"}}\n\n' +
      '{"bucket":{"type":"USERNAMES","value":"b"},"cell_id":"7"}\n',
  );
  const port = String(await freePort());
  const wrong = home.run("dev", "--temporary", "--no-save", "--port", port, "--seed", "names.ndjson");
  expect(wrong).toMatchObject({ status: 2, stdout: "" });
  expect(wrong.stderr).toContain("--seed: line 3 of names.ndjson: `cell_id` must be one of");
  expect(existsSync(join(home.folder, "leasehold/config.json"))).toBe(false);
});

test("an older Node is told which one is needed", () => {
  expect(() => checkNode("20.19.0")).toThrow(/needs Node 22\.16 or newer.*this is Node 20\.19\.0/);
  expect(() => checkNode("22.15.9")).toThrow();
  for (const version of ["22.16.0", "24.0.0"]) expect(() => checkNode(version)).not.toThrow();
});
