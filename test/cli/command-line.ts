/** Runs commands in this process: a real coordinator, and output that a test can read. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { runCommandLine } from "../../src/cli/framework/run-command-line.ts";
import type { ExitCode } from "../../src/cli/framework/command-error.ts";
import type { Io } from "../../src/cli/framework/io.ts";
import { createClient, type Client } from "../../src/users/client/index.ts";
import {
  startTestCoordinator,
  type TestCoordinator,
  type TestCoordinatorOptions,
} from "../../src/users/testing/index.ts";

export interface Ran {
  code: ExitCode;
  out: string;
  err: string;
  /** The questions that were asked. */
  asked: string[];
}

export interface RunOptions {
  env?: Record<string, string | undefined>;
  /** Standard input, if it is no terminal. */
  input?: string;
  /** What a person types at a terminal. */
  answers?: readonly string[];
  /** Whether standard output is a terminal. */
  isTerminal?: boolean;
  signal?: AbortSignal;
  wait?: (ms: number) => Promise<void>;
  /** Runs before each piece of output. */
  onWrite?: (text: string) => void | Promise<void>;
  now?: () => number;
}

/** The methods and paths of requests that were sent. */
export interface Sent {
  method: string;
  path: string;
  authorization: string | undefined;
}

export class CommandLine {
  readonly coordinator: TestCoordinator;
  readonly sent: Sent[] = [];
  /** The folder of the file of contexts. */
  readonly home = mkdtempSync(join(tmpdir(), "leasehold-cli-"));

  constructor(coordinator: TestCoordinator) {
    this.coordinator = coordinator;
  }

  /** Requests that change something. */
  get changes(): Sent[] {
    return this.sent.filter(({ method }) => method !== "GET");
  }

  client(cell?: string): Client {
    const { url, fetch, keys } = this.coordinator;
    return createClient({ url, fetch, key: cell === undefined ? keys.operator : keys.cell(cell), cell });
  }

  /** Runs a command with an operator key, unless `env` differs. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const { env = {}, input = "", answers, isTerminal = false, signal, wait, onWrite, now } = options;
    const ran: Ran = { code: 0, out: "", err: "", asked: [] };
    const left = [...(answers ?? [])];
    const answer = async (question: string): Promise<string> => {
      ran.asked.push(question);
      return left.shift() ?? "";
    };
    const io: Io = {
      env: {
        XDG_CONFIG_HOME: this.home,
        LEASEHOLD_URL: this.coordinator.url,
        LEASEHOLD_KEY: this.coordinator.keys.operator,
        ...env,
      },
      out: {
        isTerminal,
        write: async (text) => {
          await onWrite?.(text);
          ran.out += text;
        },
      },
      err: {
        isTerminal,
        write: async (text) => {
          ran.err += text;
        },
      },
      prompt: answers === undefined ? undefined : { ask: answer, askHidden: answer },
      readInput: async () => input,
      now: now ?? Date.now,
      wait: wait ?? (async () => undefined),
      signal: signal ?? new AbortController().signal,
      fetch: (url, init) => {
        const { pathname, search } = new URL(url);
        this.sent.push({
          method: init.method,
          path: `${pathname}${search}`,
          authorization: init.headers["authorization"],
        });
        return this.coordinator.fetch(url, init);
      },
    };
    ran.code = await runCommandLine(args, io);
    return ran;
  }

  /** Runs a command with `--json`, and reads the document. */
  async json(args: readonly string[], options?: RunOptions): Promise<Record<string, unknown>> {
    const { out } = await this.run([...args, "--json"], options);
    return JSON.parse(out) as Record<string, unknown>;
  }
}

/** Ends with the test. */
export async function startCommandLine(options?: TestCoordinatorOptions): Promise<CommandLine> {
  const line = new CommandLine(await startTestCoordinator(options));
  onTestFinished(async () => {
    await line.coordinator.close();
    rmSync(line.home, { recursive: true, force: true });
  });
  return line;
}

/** Replaces the answers of one path, as a proxy in front of the coordinator could. */
export function spoil(line: CommandLine, path: string, answer: () => Response): void {
  const real = line.coordinator;
  const fetch: typeof real.fetch = async (url, init) =>
    new URL(url instanceof Request ? url.url : url).pathname === path ? answer() : real.fetch(url, init);
  Object.assign(line, { coordinator: { ...real, fetch } });
}

let ids = 0;

/** An op that creates a username. */
export const create = (value: string) => ({
  bucket: { type: "USERNAMES" as const, value },
  subject: { type: "USER" as const, id: String((ids += 1)) },
  source: { type: "RAILS_TABLE_USERS" as const, id: String(ids) },
});

/** Claims usernames for a cell. */
export async function claim(line: CommandLine, cell: string, ...names: string[]): Promise<void> {
  const { leases } = line.client(cell);
  const { uuid } = await leases.begin({ creates: names.map(create) });
  await leases.commit(uuid);
}
