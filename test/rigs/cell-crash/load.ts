import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Random } from "../../../demo/random.ts";
import { findDisagreements, reconcileUntilDone } from "./agreement.ts";
import { figuresOf, finishedSignUps, type Figures } from "./figures.ts";
import { openCell, type OpenCell } from "./open-cell.ts";
import { Processes } from "./processes.ts";
import { kinds, readRecords, type Line } from "./record.ts";
import { Servers } from "./servers.ts";
import { createTables } from "./tables.ts";
import { findBrokenPromises, findDoubleNames, findLostChanges, readJournals } from "./outcome-checks.ts";

export interface LoadOptions {
  seed: number;
  /** Sign-ups to finish, with any outcome. */
  signUps: number;
  names: number;
  /** The longest time of the load. */
  minutes: number;
  /** The longest pause between two kills. */
  maxPauseMs: number;
  /** An empty folder for this run. */
  folder: string;
  log: (line: string) => void;
}

const components = ["process of a cell", "PostgreSQL", "coordinator"] as const;
type Component = (typeof components)[number];
type Kills = Record<Component, number>;

export interface LoadResult {
  kills: Kills;
  figures: Figures;
  /** The duration of the load. */
  seconds: number;
  complaints: string[];
}

const CELLS = ["1", "2"] as const;
const PROCESSES_PER_CELL = 2;
const CONCURRENCY = 4;
/** Shuffled for each round. Every component is killed, processes of cells most often. */
const KILL_ORDER: readonly Component[] = [
  "process of a cell",
  "process of a cell",
  "process of a cell",
  "PostgreSQL",
  "coordinator",
];
const MIN_PAUSE_MS = 500;

/**
 * Runs two cells under load while their processes, PostgreSQL and the coordinator are killed. Then both cells
 * reconcile completely and everything is compared.
 */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { folder, seed, names } = options;
  const records = join(folder, "records");
  mkdirSync(records, { recursive: true });
  const servers = await Servers.start(folder);
  const cells: OpenCell[] = [];
  try {
    const configs = await Promise.all(CELLS.map((cell) => servers.config(cell)));
    for (const config of configs) {
      const cell = openCell(config);
      cells.push(cell);
      await createTables(cell.orm);
      await cell.cell.install();
    }
    const processes = new Processes({
      configs,
      each: PROCESSES_PER_CELL,
      concurrency: CONCURRENCY,
      names,
      seed,
      folder,
    });
    const started = performance.now();
    const kills = await killUntilDone(options, records, servers, processes);
    await processes.end();
    const seconds = Math.round((performance.now() - started) / 1_000);
    const lines = readRecords(records);
    const figures = figuresOf(lines);
    const complaints = [
      ...processes.complaints,
      ...findUnexercised(figures, kills),
      ...(await verify(cells, lines)),
    ];
    return { kills, seconds, figures, complaints };
  } finally {
    await Promise.all(cells.map((cell) => cell.close()));
    await servers.stop();
  }
}

async function killUntilDone(
  { seed, signUps, minutes, maxPauseMs, log }: LoadOptions,
  records: string,
  servers: Servers,
  processes: Processes,
): Promise<Kills> {
  const random = new Random(seed, "kills");
  const kills: Kills = { "process of a cell": 0, PostgreSQL: 0, coordinator: 0 };
  const kill: Record<Component, () => Promise<void>> = {
    "process of a cell": () => processes.killOne(random),
    PostgreSQL: () => servers.killPostgres(random),
    coordinator: () => servers.killCoordinator(random),
  };
  const end = performance.now() + minutes * 60_000;
  for (
    let finished = 0;
    finished < signUps && performance.now() < end;
    finished = finishedSignUps(readRecords(records))
  ) {
    for (const component of random.shuffled(KILL_ORDER)) {
      await pause(random.between(MIN_PAUSE_MS, maxPauseMs));
      await kill[component]();
      kills[component] += 1;
    }
    log(`${finished} sign-ups, ${Object.values(kills).reduce((sum, each) => sum + each, 0)} kills`);
  }
  return kills;
}

/** What the run did not exercise. Such a run proves nothing. */
function findUnexercised({ reported }: Figures, kills: Kills): string[] {
  return [
    ...components
      .filter((component) => kills[component] === 0)
      .map((component) => `no ${component} was killed`),
    ...kinds.filter((kind) => (reported[`${kind} OK`] ?? 0) === 0).map((kind) => `no ${kind} was saved`),
  ];
}

async function verify(cells: readonly OpenCell[], lines: readonly Line[]): Promise<string[]> {
  const complaints = lines.flatMap((line) =>
    line.line === "event" && line.kind === "contradicted" ? [`contradicted: ${line.detail}`] : [],
  );
  for (const [at, cell] of cells.entries()) {
    const wrong = [
      ...(await reconcileUntilDone(cell)),
      ...(await findDisagreements(cell)),
      ...(await findLostChanges(cell)),
    ];
    complaints.push(...wrong.map((text) => `cell ${CELLS[at]}: ${text}`));
  }
  return [
    ...complaints,
    ...(await findDoubleNames(cells)),
    ...findBrokenPromises(lines, await readJournals(cells)),
  ];
}
