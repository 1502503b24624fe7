/** The entry point of a thread that runs seeds with the simulator that it is given. */
import { parentPort, workerData } from "node:worker_threads";
import type { Job } from "./pool.ts";
import type * as simulation from "./run.ts";

const { simulator } = workerData as { simulator: string };
const { run } = (await import(
  `data:text/javascript;base64,${Buffer.from(simulator).toString("base64")}`
)) as typeof simulation;

parentPort?.on("message", ({ seed, steps }: Job) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  void run({ seed, steps }).then((result) => parentPort?.postMessage(result));
});
