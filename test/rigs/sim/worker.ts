/** The entry point of a thread that runs seeds, optionally with a planted bug. */
import { parentPort, workerData } from "node:worker_threads";
import type { Job } from "./pool.ts";
import { plant } from "./bugs.ts";

const { bug } = workerData as { bug: string | undefined };
plant(bug);
// Imported after planting, so that the modules contain the bug.
const { run } = await import("./run.ts");

parentPort?.on("message", ({ seed, steps }: Job) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  void run({ seed, steps }).then((result) => parentPort?.postMessage(result));
});
