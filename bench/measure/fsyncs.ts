import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { treeOf } from "../peers.ts";

const EVENTS = "syscalls:sys_enter_fsync,syscalls:sys_enter_fdatasync";
/** The time that `perf` needs to attach to every thread. */
const ATTACH_MS = 300;

/**
 * Counts how often the processes below `pid` wait for the disk during `work`. Undefined when `perf` is
 * missing or not permitted.
 */
export async function countFsyncs<T>(
  pid: number,
  work: () => Promise<T>,
): Promise<{ value: T; fsyncs: number } | undefined> {
  if (spawnSync("perf", ["--version"]).error !== undefined) return undefined;
  const perf = spawn("perf", ["stat", "-x,", "-e", EVENTS, "-p", treeOf(pid).join(",")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  perf.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const ended = once(perf, "close");
  await setTimeout(ATTACH_MS);
  const value = await work();
  perf.kill("SIGINT");
  await ended;
  const counts = [...text.matchAll(/^(\d+),,syscalls:/gm)];
  return counts.length === 0
    ? undefined
    : { value, fsyncs: counts.reduce((sum, [, count]) => sum + Number(count), 0) };
}
