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
  /** The largest number of sign-ups that finish between two kills. */
  signUpsPerKill: number;
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
/** A load that finishes no more sign-ups for so long hangs, however slow the machine is. */
const PATIENCE_MS = 600_000;
const LOOK_MS = 100;

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
    const complaints = [...processes.complaints, ...(await verify(cells, lines))];
    return { kills, seconds, figures, complaints };
  } finally {
    await Promise.all(cells.map((cell) => cell.close()));
    await servers.stop();
  }
}

async function killUntilDone(
  { seed, signUps, signUpsPerKill, log }: LoadOptions,
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
  const finished = (): number => finishedSignUps(readRecords(records));
  const isEnough = (): boolean =>
    finished() >= signUps && isExercised(figuresOf(readRecords(records)), kills);
  while (!isEnough()) {
    for (const component of random.shuffled(KILL_ORDER)) {
      const next = finished() + random.between(1, signUpsPerKill);
      await until(() => finished() >= next);
      await kill[component]();
      kills[component] += 1;
    }
    log(`${finished()} sign-ups, ${Object.values(kills).reduce((sum, each) => sum + each, 0)} kills`);
  }
  return kills;
}

async function until(isOver: () => boolean): Promise<void> {
  for (const endMs = performance.now() + PATIENCE_MS; !isOver(); await pause(LOOK_MS))
    if (performance.now() > endMs) throw new Error("the load makes no progress; see its logs");
}

/** Whether the run has killed every component and saved every kind of change. Otherwise it proves nothing. */
const isExercised = ({ reported }: Figures, kills: Kills): boolean =>
  components.every((component) => kills[component] > 0) &&
  kinds.every((kind) => (reported[`${kind} OK`] ?? 0) > 0);

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
