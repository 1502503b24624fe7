/**
 * `npm run demo`: starts a coordinator on this machine, lets two cells claim real names, and checks the
 * result.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCoordinator, type Coordinator } from "../src/hosts/workerd/coordinator.ts";
import { findDifferences } from "./differences.ts";
import { makeWorkload, readNames } from "./names.ts";
import { readOptions, usage, type Options } from "./options.ts";
import { Progress } from "./progress.ts";
import { renderReport, renderConclusion } from "./report.ts";
import { runScenario } from "./scenario.ts";
import { gatherFacts } from "./gather-facts.ts";
import { Environment } from "./environment.ts";

/** Returns true if the check passed. */
async function demo({ names, seed, keep }: Options, folder: string, progress: Progress): Promise<boolean> {
  const started = performance.now();
  const all = await readNames();
  progress.set(() => "starting a coordinator");
  const coordinator = await start(join(folder, "coordinator"));
  try {
    const { url, keys } = coordinator;
    const environment = new Environment(makeWorkload(all, names, seed), seed, { url, keys, folder });
    progress.milestone(`a coordinator runs at ${url}, and its state is empty`);

    const result = await runScenario(environment, progress);
    const facts = await gatherFacts(environment, result, progress);
    const found = findDifferences(facts);
    progress.milestone("the check is done");
    progress.stop();

    const seconds = (performance.now() - started) / 1_000;
    const kept = keep ? ["", `The state is kept in ${folder}`] : [];
    const lines = [
      "",
      ...renderReport(environment, result, facts, seconds),
      "",
      ...renderConclusion(found),
      ...kept,
    ];
    process.stdout.write(`${lines.join("\n")}\n`);
    for (const { database } of Object.values(result.cells)) database.close();
    return found.length === 0;
  } finally {
    await coordinator.stop();
  }
}

async function start(stateFolder: string): Promise<Coordinator> {
  try {
    return await startCoordinator({ port: 0, stateFolder });
  } catch (error) {
    throw new Error(
      `the coordinator could not be started: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
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

  const folder = mkdtempSync(join(tmpdir(), "leasehold-demo-"));
  const progress = new Progress(process.stdout);
  // Miniflare may end the process itself on Ctrl-C, so the folder is removed by an exit handler. Exit
  // handlers can only run synchronous code.
  process.once("exit", () => {
    progress.stop();
    if (!options.keep) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  process.once("SIGINT", () => process.exit(130));
  process.once("SIGTERM", () => process.exit(143));
  try {
    mkdirSync(join(folder, "cells"));
    return (await demo(options, folder, progress)) ? 0 : 1;
  } catch (error) {
    progress.stop();
    // Expected failures have a cause, and their message is enough. For all others, print the stack.
    const text =
      error instanceof Error ? (error.cause === undefined ? error.stack : error.message) : String(error);
    process.stderr.write(`demo: ${text}\n`);
    return 1;
  }
}

process.exit(await main());
