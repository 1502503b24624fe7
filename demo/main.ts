/** `npm run demo`: a coordinator on this machine, two cells, real names, and a check at the end. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCoordinator, type Coordinator } from "../scripts/coordinator.ts";
import { differences } from "./check.ts";
import { plan, readNames } from "./names.ts";
import { readOptions, usage, type Options } from "./options.ts";
import { Progress } from "./progress.ts";
import { report, verdict } from "./report.ts";
import { runScenario } from "./scenario.ts";
import { gatherFacts } from "./verify.ts";
import { World } from "./world.ts";

/** What must not stay behind, however the demo ends. */
class Cleanup {
  readonly #steps: (() => Promise<void>)[] = [];
  #done: Promise<void> | undefined;

  add(step: () => Promise<void>): void {
    this.#steps.unshift(step);
  }

  /** Last first, once. */
  run(): Promise<void> {
    return (this.#done ??= (async () => {
      for (const step of this.#steps) await step().catch((error: unknown) => process.stderr.write(`demo: ${String(error)}\n`));
    })());
  }
}

/** True when the check passed. */
async function demo({ names, seed, keep }: Options, cleanup: Cleanup): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-demo-"));
  if (!keep) cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const progress = new Progress(process.stdout);
  cleanup.add(async () => progress.stop());

  progress.set(() => "starting a coordinator");
  const started = performance.now();
  const coordinator = await start(join(folder, "coordinator"));
  cleanup.add(() => coordinator.stop());
  const cellsFolder = join(folder, "cells");
  await mkdir(cellsFolder);
  const world = new World(plan(await readNames(), names, seed), seed, { url: coordinator.url, keys: coordinator.keys, folder: cellsFolder });
  progress.milestone(`a coordinator runs at ${coordinator.url}, with nothing in it`);

  const story = await runScenario(world, progress);
  const facts = await gatherFacts(world, story, progress);
  const found = differences(facts);
  progress.milestone("checked");
  progress.stop();
  const lines = ["", ...report(world, story, facts, (performance.now() - started) / 1_000), "", ...verdict(found)];
  process.stdout.write(`${lines.join("\n")}\n`);
  if (keep) process.stdout.write(`The state is kept in ${folder}\n`);
  for (const { database } of Object.values(story.cells)) database.close();
  return found.length === 0;
}

async function start(stateFolder: string): Promise<Coordinator> {
  try {
    return await startCoordinator({ port: 0, stateFolder });
  } catch (error) {
    throw new Error(`the coordinator does not start: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

async function main(): Promise<number> {
  let options: Options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  const cleanup = new Cleanup();
  const interrupt = (): void => void cleanup.run().then(() => process.exit(130));
  process.once("SIGINT", interrupt);
  process.once("SIGTERM", interrupt);
  try {
    return (await demo(options, cleanup)) ? 0 : 1;
  } catch (error) {
    // What is expected to go wrong comes as a sentence with a cause; for the rest the place matters.
    const text = error instanceof Error ? (error.cause === undefined ? error.stack : error.message) : String(error);
    await cleanup.run();
    process.stderr.write(`demo: ${text}\n`);
    return 1;
  } finally {
    await cleanup.run();
  }
}

process.exit(await main());
