/**
 * `npm run stale-reads`: reads right after acknowledged changes over HTTP, and fails on a stale answer. With
 * `--late`, a standalone host in this process tells shards each decision late, so that every read meets holds
 * that are over.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createClient } from "../../../src/users/client/index.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { BadOption, parsed, runProgram, wholeNumber } from "../../support/options.ts";
import { hostKinds, hostNamed, Server, type HostKind } from "../crash/server.ts";
import { bugs, plant } from "../sim/bugs.ts";
import { readRightAfter, type Checked, type StaleReadsOptions } from "./stale-reads.ts";

const usage = `npm run stale-reads -- [options]

  --host HOST     start or standalone: the server of npm start or of npm run standalone (both)
  --lanes N       changes at the same time (16)
  --leases N      leases of each lane, each with up to 13 reads (200)
  --seed N        seed of all random choices (the time)
  --late MS       runs a standalone host in this process, which tells shards each decision this much later
  --bug NAME      with --late: plants this bug of the simulator, so that the run must fail
  --help          prints this text`;

const cellIds = ["1", "2", "3", "4"];

type Load = Omit<StaleReadsOptions, "url" | "keys">;

async function main(): Promise<boolean> {
  const { values } = parsed(() =>
    parseArgs({
      options: {
        host: { type: "string" },
        lanes: { type: "string" },
        leases: { type: "string" },
        seed: { type: "string" },
        late: { type: "string" },
        bug: { type: "string" },
        help: { type: "boolean" },
      },
    }),
  );
  if (values.help === true) {
    process.stdout.write(`${usage}\n`);
    return true;
  }
  const load: Load = {
    lanes: wholeNumber("lanes", values.lanes, 16, 1),
    leases: wholeNumber("leases", values.leases, 200, 1),
    seed: wholeNumber("seed", values.seed, Math.floor(Date.now() / 1_000)),
  };
  process.stdout.write(`seed ${load.seed}\n`);
  if (values.bug !== undefined && (values.late === undefined || !Object.hasOwn(bugs, values.bug)))
    throw new BadOption("--bug must name a bug of the simulator, and needs --late");
  if (values.late !== undefined)
    return report(await againstLate(wholeNumber("late", values.late, 0, 1), values.bug, load));
  const hosts = values.host === undefined ? hostKinds : [hostNamed(values.host)];
  let isRight = true;
  for (const host of hosts) {
    process.stdout.write(`${host}\n`);
    isRight = report(await againstProcess(host, load)) && isRight;
  }
  return isRight;
}

function report({ counts, complaints }: Checked): boolean {
  for (const complaint of complaints.slice(0, 10)) process.stdout.write(`${complaint}\n`);
  process.stdout.write(`${JSON.stringify(counts)}\n${complaints.length} stale answers\n`);
  const isShown = counts.begins > counts.unanswered;
  if (!isShown) process.stdout.write("most begins of other cells were not answered, so nothing is shown\n");
  return isShown && complaints.length === 0;
}

async function againstProcess(host: HostKind, load: Load): Promise<Checked> {
  const folder = mkdtempSync(join(tmpdir(), "stale-reads-"));
  const server = new Server({ host, kind: "production", port: await freePort(), folder });
  try {
    if (!(await server.ready())) throw new Error(`the server did not start: ${server.output.slice(-500)}`);
    return await readRightAfter({ ...load, url: server.url, keys: server.keys });
  } finally {
    await server.kill("group");
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function againstLate(lateMs: number, bug: string | undefined, load: Load): Promise<Checked> {
  if (bug !== undefined) plant(bug);
  const { Deliveries } = await import("../../../src/coordinator/kernel/ledger/deliveries.ts");
  const deliver = Reflect.get(Deliveries.prototype, "deliver");
  Deliveries.prototype.deliver = async function (lease) {
    await new Promise((resume) => setTimeout(resume, lateMs));
    return deliver.call(this, lease);
  };
  const { serveFiles } = await import("../../hosts/standalone/served.ts");
  const served = await serveFiles(cellIds, {});
  const { keys, url } = served;
  try {
    const operator = createClient({ url, key: keys.operator });
    for (const cell of cellIds)
      await operator.cells.add({
        cell_id: cell,
        name: `cell-${cell}`,
        address: `https://cell-${cell}.example`,
      });
    const cells = Object.fromEntries(cellIds.map((cell) => [cell, keys.cell(cell)]));
    return await readRightAfter({ ...load, url, keys: { router: keys.router, cells } });
  } finally {
    await served.close();
  }
}

runProgram(usage, main);
