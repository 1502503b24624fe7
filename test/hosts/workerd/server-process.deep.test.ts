import { spawn, spawnSync } from "node:child_process";
import { closeSync, constants, existsSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";

/** More lines than the pipe and the queue have room for. */
const REQUESTS = 3_000;

interface Unread {
  /** The end of the pipe that nobody reads yet. */
  reader: number;
  state: string;
  request: (times: number) => Promise<void>;
  end: () => Promise<number | null>;
}

/** Runs `npm start` with a pipe as standard error. */
async function startUnread(): Promise<Unread> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-log-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "pipe");
  spawnSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, "w");
  const [port, state] = [await freePort(), join(folder, "state")];
  const child = spawn(process.execPath, ["src/hosts/workerd/start.ts"], {
    cwd: join(import.meta.dirname, "../../.."),
    env: { ...process.env, PORT: String(port), LEASEHOLD_STATE: state },
    stdio: ["ignore", "pipe", writer],
  });
  closeSync(writer);
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  let stdout = "";
  child.stdout?.on("data", (data: Buffer) => (stdout += data.toString()));
  await expect.poll(() => stdout).toContain("Leasehold is ready");
  return {
    reader,
    state,
    request: async (times) => {
      for (let sent = 0; sent < times; sent += 50) {
        const answers = Array.from({ length: 50 }, () => fetch(`http://127.0.0.1:${port}/healthz`));
        for (const answer of await Promise.all(answers)) expect(await answer.text()).toContain("ok");
      }
    },
    end: () => {
      child.kill("SIGTERM");
      return ended;
    },
  };
}

/** Reads a pipe from now on, and counts the requests in it. */
function countRequests(reader: number): { logged: number; dropped: number } {
  const counts = { logged: 0, dropped: 0 };
  const lines = createInterface(new Socket({ fd: reader, readable: true, writable: false }));
  lines.on("line", (line) => {
    const entry = JSON.parse(line) as { event: string; lines?: number };
    if (entry.event === "request") counts.logged += 1;
    if (entry.event === "log_lines_dropped") counts.dropped += entry.lines ?? 0;
  });
  return counts;
}

/** The lines of the cron, at most one a minute, may be among those that were dropped. */
const MAX_CRON_LINES = 5;

/** Returns `REQUESTS` if every request was logged or counted, and otherwise how many were. */
function linesOf({ logged, dropped }: { logged: number; dropped: number }): number {
  const surplus = logged + dropped - REQUESTS;
  return surplus > 0 && surplus <= Math.min(dropped, MAX_CRON_LINES) ? REQUESTS : logged + dropped;
}

test("a pipe that nobody reads stops nothing, and every line is logged or counted", async () => {
  const { reader, request, end } = await startUnread();
  await request(REQUESTS);
  const counts = countRequests(reader);
  await expect.poll(() => linesOf(counts)).toBe(REQUESTS);
  expect(counts.logged).toBeGreaterThan(0);
  expect(counts.dropped).toBeGreaterThan(0);
  expect(await end()).toBe(0);
});

test("a reader that starts when the coordinator has stopped gets every line or its count", async () => {
  const { reader, request, end, state } = await startUnread();
  await request(REQUESTS);
  const ended = end();
  // The last step of a stop removes this file.
  await expect.poll(() => existsSync(join(state, "owner")), { interval: 1 }).toBe(false);
  const counts = countRequests(reader);
  expect(await ended).toBe(0);
  await expect.poll(() => linesOf(counts)).toBe(REQUESTS);
});

test("a full pipe does not keep the coordinator from ending", async () => {
  const { reader, request, end } = await startUnread();
  await request(REQUESTS);
  expect(await end()).toBe(0);
  closeSync(reader);
});

test("a pipe that its reader closes stops nothing", async () => {
  const { reader, request, end } = await startUnread();
  await request(50);
  closeSync(reader);
  await request(200);
  expect(await end()).toBe(0);
});
