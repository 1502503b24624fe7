/** Runs every command of the packed program once, against a real server. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { createClient } from "../../../src/users/client/index.ts";
import { gitlabTypes } from "../../../src/common/types/gitlab.ts";
import { steps, type Facts, type Step } from "./commands.ts";

interface Keys {
  operator: string;
  router: string;
  cells: Readonly<Record<string, string>>;
}

/** The words of an error that no command may end with. */
const DEATH =
  /TypeError|ReferenceError|SyntaxError|is not a (?:function|constructor)|is not (?:defined|iterable)/;
/** A command that takes longer hangs. */
const HANG_MS = 3 * 60_000;

const rules = [
  {
    id: "names",
    match: { type: "path", pattern: "/:name/*" },
    action: "classify",
    classify: { type: "USERNAMES", value: "${name}" },
  },
  { id: "rest", action: "not_found" },
];
/** The types of the server, and one more. */
const types = {
  ...gitlabTypes,
  bucket_types: { ...gitlabTypes.bucket_types, SHOP_NAMES: { number: 1_000 } },
};

/** Makes a folder for the runs: the files that commands read, and the state of the server. */
function makeFolder(scratch: string): string {
  const folder = mkdtempSync(join(scratch, "commands-"));
  for (const [name, content] of Object.entries({
    "rules.json": rules,
    "types.json": types,
    "identities.json": {},
  }))
    writeFileSync(join(folder, name), JSON.stringify(content));
  return folder;
}

interface Options {
  scratch: string;
  /** Whether `program` has `node:sqlite`. */
  hasSqlite: boolean;
}

/**
 * Runs all commands of `cli` with `program`, and returns how many there were. The server is `leasehold dev`
 * on the Node of this process, because an older one can't run it.
 *
 * @throws an error that names each command that ended otherwise than it must
 */
export async function runCommands(
  program: string,
  cli: string,
  { scratch, hasSqlite }: Options,
): Promise<number> {
  const folder = makeFolder(scratch);
  const env = { PATH: process.env["PATH"] ?? "", XDG_CONFIG_HOME: folder, NO_COLOR: "1" };
  const port = String(await freePort());
  const server = spawn(
    process.execPath,
    [cli, "dev", "--jsonl", "--port", port, "--seed", "9", "--no-save"],
    {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  try {
    const ended = once(server, "exit").then(() => Promise.reject(new Error("the server has ended")));
    const [line] = (await Promise.race([once(createInterface(server.stdout), "line"), ended])) as [string];
    ended.catch(() => undefined);
    const { url, keys_file: file } = JSON.parse(line) as { url: string; keys_file: string };
    const keys = JSON.parse(readFileSync(file, "utf8")) as Keys;
    for (const [cell, key] of Object.entries(keys.cells))
      writeFileSync(join(folder, `cell-${cell}.key`), key, { mode: 0o600 });
    const facts = { ...(await prepare(url, keys)), operator: keys.operator, port: String(await freePort()) };
    const failed: string[] = [];
    for (const step of steps) {
      const failure = await runStep(step, {
        program,
        cli,
        folder,
        facts,
        hasSqlite,
        env: { ...env, LEASEHOLD_URL: url, LEASEHOLD_KEY: keys.operator },
      });
      if (failure !== undefined) failed.push(`leasehold ${step.command}: ${failure}`);
    }
    if (failed.length > 0) throw new Error(failed.join("\n"));
    return steps.length;
  } finally {
    server.kill("SIGKILL");
  }
}

/** Makes what commands work on: two open leases, and a claim with a scope. */
async function prepare(url: string, { cells }: Keys): Promise<Facts> {
  const { leases } = createClient({ url, key: cells["1"] ?? "", cell: "1" });
  const create = (value: string, more: object = {}) => ({
    creates: [
      {
        bucket: { type: "USERNAMES" as const, value },
        subject: { type: "USER" as const, id: 1 },
        source: { type: "RAILS_TABLE_USERS" as const, id: 1 },
        ...more,
      },
    ],
  });
  await leases.commit((await leases.begin(create("moving", { scope: "9970" }))).uuid);
  const { uuid: lease } = await leases.begin(create("ada"));
  const { uuid: otherLease } = await leases.begin(create("grace"));
  return { lease, otherLease };
}

interface Running {
  program: string;
  cli: string;
  folder: string;
  facts: Facts;
  hasSqlite: boolean;
  env: Readonly<Record<string, string>>;
}

/** Returns what is wrong with the run. */
async function runStep(
  step: Step,
  { program, cli, folder, facts, hasSqlite, env }: Running,
): Promise<string | undefined> {
  const { command, args, input, keep, until, needsSqlite } = step;
  const given = [...command.split(" "), ...(args?.(facts) ?? []), ...(keep === undefined ? [] : ["--json"])];
  const child = spawn(program, [cli, ...given], { cwd: folder, env, stdio: "pipe", timeout: HANG_MS });
  child.stdin.end(input?.(facts) ?? "");
  const isRefused = needsSqlite === true && !hasSqlite;
  const { code, out, err } = await outputOf(child, isRefused ? undefined : until);
  const expected = isRefused ? 1 : (step.code ?? 0);
  if (DEATH.test(err) || code !== expected)
    return `ended with ${code} instead of ${expected}: ${err.trim() || out.slice(-500)}`;
  if (keep !== undefined) facts[keep.at(-1) ?? ""] = fieldOf(JSON.parse(out), keep.slice(0, -1));
  return undefined;
}

const fieldOf = (document: unknown, path: readonly string[]): string =>
  String(path.reduce((value, name) => (value as Record<string, unknown>)[name], document));

/** Waits for the end. Sends SIGINT when `until` is in the output. */
async function outputOf(
  child: ChildProcess,
  until: string | undefined,
): Promise<{ code: number | null; out: string; err: string }> {
  let [out, err] = ["", ""];
  let isStopped = false;
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (err += text));
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    // A second signal would end it at once.
    if (isStopped || until === undefined || !out.includes(until)) return;
    isStopped = child.kill("SIGINT");
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}
