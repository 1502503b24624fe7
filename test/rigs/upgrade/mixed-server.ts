/**
 * Runs a coordinator as `npm start` does, but with a Worker that is of both versions. The first argument is
 * the folder of the version whose `npm start` it is, and the second one the Worker.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type * as Coordinators from "../../../src/hosts/workerd/coordinator.ts";
import { CHOICE } from "./control.ts";

const [tree = "", entryPoint = ""] = process.argv.slice(2);
const { startCoordinator } = (await import(
  pathToFileURL(join(tree, "src/hosts/workerd/coordinator.ts")).href
)) as typeof Coordinators;

const variables = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && (name === CHOICE || (name.startsWith("LEASEHOLD_") && name !== "LEASEHOLD_STATE"))
      ? [[name, value] as const]
      : [],
  ),
);
const ended = new Promise<void>((end) => process.once("SIGTERM", end));
const coordinator = await startCoordinator({
  port: Number(process.env["PORT"]),
  stateFolder: process.env["LEASEHOLD_STATE"] ?? "",
  variables,
  entryPoint,
  log: (line) => process.stderr.write(`${line}\n`),
});
process.stdout.write(`Leasehold is ready at ${coordinator.url}\n`);
await ended;
await coordinator.stop();
process.exit(0);
