import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Server } from "../crash/server.ts";
import { readStores } from "../crash/state-files.ts";
import type { VersionName } from "./control.ts";
import { Load, type Pace } from "./load.ts";
import { makeNextVersion, root } from "./next-version.ts";
import { NEXT_FORMAT } from "./pieces.ts";
import { refusesToStart } from "./no-way-back.ts";
import type { RunResult } from "./run.ts";

export interface TurnOptions {
  /** An empty folder. */
  folder: string;
  seed: number;
  pace: Pace;
  /** How long each turn takes. */
  turnMs: number;
  log: (line: string) => void;
}

const NAMES_OF_CELL = 150;
const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

/**
 * Runs the standalone servers of both versions in turn, on one folder, while the cells go on. Then it
 * finishes the upgrade, after which today's version must refuse the folder.
 */
export async function takeTurns(options: TurnOptions): Promise<RunResult> {
  const { folder, seed, pace, turnMs, log } = options;
  const next = join(folder, "next");
  mkdirSync(folder, { recursive: true });
  makeNextVersion(next);
  const port = await freePort();
  const complaints: string[] = [];
  let running: Server | undefined;
  const start = async (version: VersionName): Promise<Server> => {
    const script = join(version === "next" ? next : root, "scripts/standalone.mjs");
    const server = new Server({ host: "standalone", kind: { script }, port, folder });
    running = server;
    if (!(await server.ready())) throw new Error(`${version} did not start: ${server.output.slice(-1_000)}`);
    return server;
  };
  const stop = async (server: Server): Promise<void> => {
    const code = await server.stop();
    if (code !== 0) complaints.push(`a server ended with ${code}`);
  };
  try {
    let server = await start("today");
    const { url, keys } = server;
    const load = new Load({ url, keys, seed, isPatient: true, namesOfCell: NAMES_OF_CELL });
    await load.begin("today");
    await load.runDuring(pace, async () => {
      for (const version of ["next", "today", "next"] as const) {
        await sleep(turnMs);
        await stop(server);
        log(version);
        server = await start(version);
        await load.begin(version);
      }
      await sleep(turnMs);
      log("finish");
      await load.begin("finish");
      await finish(url, keys.operator);
      await sleep(turnMs);
      await stop(server);
      complaints.push(...(await refusesToStart({ host: "standalone", kind: "production", folder })));
      server = await start("next");
      await load.begin("next version after today's was refused");
      await sleep(turnMs);
    });
    await load.verify();
    await sleep(2_000);
    await stop(server);
    const { failures } = load;
    if (failures.length === 0) complaints.push(...readStores(server.stateFolder).leftovers);
    return { load, kills: 0, complaints: [...failures, ...complaints, ...load.complaints] };
  } finally {
    if (running?.isRunning === true) await running.kill("group");
  }
}

async function finish(url: string, key: string): Promise<void> {
  const answer = await fetch(`${url}/v1/admin/upgrade/finish`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ format: NEXT_FORMAT, reason: "the rig" }),
  });
  if (!answer.ok) throw new Error(`the upgrade cannot be finished: ${await answer.text()}`);
}
