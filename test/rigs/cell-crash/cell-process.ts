/** A process of a cell that runs one flow and stops at one point, where it is killed. */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { Breakpoint } from "./breakpoint.ts";
import { CHUNK_OF_FLOWS, flows, type Flow } from "./flows.ts";
import { KILLED_PROCESS, type Job } from "./job.ts";
import { openCell } from "./open-cell.ts";

async function run({ config, flow: name, names, point, hit }: Job): Promise<string> {
  const flow: Flow = flows[name];
  const breakpoint = new Breakpoint({ point, hit, fault: flow.fault });
  const { fetch, logQuery } = breakpoint;
  const open = openCell(config, {
    applicationName: KILLED_PROCESS,
    client: { fetch },
    logQuery,
    cell: { chunk: CHUNK_OF_FLOWS },
  });
  breakpoint.wrap(open.database);
  const outcome = await flow.act(open.cell, names).then(
    () => "it succeeded",
    (error: unknown) =>
      `it failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  );
  // The point may be in a rollback that no caller waits for.
  await open.cell.flush();
  return outcome;
}

// A killed process does not write its compile cache, so it is written now.
flushCompileCache();

process.once("message", (job) => {
  void run(job as Job).then((outcome) => {
    writeSync(1, `never reached ${(job as Job).point}; ${outcome}\n`);
    process.exit(1);
  });
});
