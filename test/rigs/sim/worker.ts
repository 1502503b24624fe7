/** The entry point of a thread that runs seeds with the simulator that it is given. */
import { parentPort, workerData } from "node:worker_threads";
import type { Job } from "./pool.ts";
import { loadSimulator } from "./simulator.ts";

const { run } = loadSimulator((workerData as { simulator: string }).simulator);

parentPort?.on("message", (job: Job) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  void run(job).then((result) => parentPort?.postMessage(result));
});
