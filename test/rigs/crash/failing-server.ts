/**
 * Runs a coordinator as `npm start` does, but with the Worker of test/rigs/crash/worker.ts, which has
 * failpoints.
 */
import { join } from "node:path";
import { startCoordinator } from "../../../src/hosts/workerd/coordinator.ts";
import { armVariables } from "./failpoints.ts";

function variablesOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const arming: readonly string[] = Object.values(armVariables);
  const passed = Object.entries(env).filter(
    ([name]) => arming.includes(name) || (name.startsWith("LEASEHOLD_") && name !== "LEASEHOLD_STATE"),
  );
  return Object.fromEntries(
    passed.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}

const ended = new Promise<void>((end) => process.once("SIGTERM", end));
const coordinator = await startCoordinator({
  port: Number(process.env["PORT"]),
  stateFolder: process.env["LEASEHOLD_STATE"] ?? "",
  variables: variablesOf(process.env),
  entryPoint: join(import.meta.dirname, "worker.ts"),
  cronAtStart: false,
  log: (line) => process.stderr.write(`${line}\n`),
});
process.stdout.write(`Leasehold is ready at ${coordinator.url}\n`);
await ended;
await coordinator.stop();
process.exit(0);
