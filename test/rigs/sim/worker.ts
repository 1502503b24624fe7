/** Runs seeds on a thread of its own, perhaps with a bug planted. */
import { parentPort, workerData } from "node:worker_threads";
import type { Job } from "./pool.ts";
import { plant } from "./bugs.ts";

const { bug } = workerData as { bug: string | undefined };
if (bug !== undefined) plant(bug);
// Only now, so that the bug is in what it loads.
const { run } = await import("./run.ts");

parentPort?.on("message", ({ seed, steps }: Job) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  void run({ seed, steps }).then((result) => parentPort?.postMessage(result));
});
