import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Random } from "../../../demo/random.ts";
import { disagreements, settle } from "./agreement.ts";
import { figuresOf, finishedSignUps, type Figures } from "./figures.ts";
import { openCell, type OpenCell } from "./open-cell.ts";
import { Processes } from "./processes.ts";
import { kinds, readRecords, type Line } from "./record.ts";
import { Servers } from "./servers.ts";
import { createTables } from "./tables.ts";
import { brokenPromises, doubleNames, lostChanges, readJournals } from "./told.ts";

export interface RunOptions {
  seed: number;
  /** Those that came to an end, one way or the other. */
  signUps: number;
  names: number;
  /** It ends then at the latest. */
  minutes: number;
  /** Between two kills, at most: what is down takes no sign-ups. */
  calmMs: number;
  /** Empty, and the run's own. */
  folder: string;
  log: (line: string) => void;
}

const victims = ["process of a cell", "PostgreSQL", "coordinator"] as const;
type Victim = (typeof victims)[number];
type Kills = Record<Victim, number>;

export interface Outcome {
  kills: Kills;
  figures: Figures;
  /** Of the load, with its kills. */
  seconds: number;
  complaints: string[];
}

const CELLS = ["1", "2"] as const;
const EACH = 2;
const LANES = 4;
/** Shuffled again and again: each is killed, and processes most. */
const DECK: readonly Victim[] = [
  "process of a cell",
  "process of a cell",
  "process of a cell",
  "PostgreSQL",
  "coordinator",
];
const LEAST_CALM_MS = 500;

/** Two cells under load while everything is killed; then both settle, and everything is compared with everything. */
export async function run(options: RunOptions): Promise<Outcome> {
  const { folder, seed, names } = options;
  const records = join(folder, "records");
  mkdirSync(records, { recursive: true });
  const servers = await Servers.start(folder);
  const cells: OpenCell[] = [];
  try {
    const places = await Promise.all(CELLS.map((cell) => servers.place(cell)));
    for (const place of places) {
      const cell = openCell(place);
      cells.push(cell);
      await createTables(cell.orm);
      await cell.cell.install();
    }
    const processes = new Processes({ places, each: EACH, lanes: LANES, names, seed, folder });
    const started = performance.now();
    const kills = await killAround(options, records, servers, processes);
    await processes.end();
    const seconds = Math.round((performance.now() - started) / 1_000);
    const lines = readRecords(records);
    const figures = figuresOf(lines);
    const complaints = [
      ...processes.complaints,
      ...shownNothing(figures, kills),
      ...(await verify(cells, lines)),
    ];
    return { kills, seconds, figures, complaints };
  } finally {
    await Promise.all(cells.map((cell) => cell.close()));
    await servers.stop();
  }
}

async function killAround(
  { seed, signUps, minutes, calmMs, log }: RunOptions,
  records: string,
  servers: Servers,
  processes: Processes,
): Promise<Kills> {
  const random = new Random(seed, "kills");
  const kills: Kills = { "process of a cell": 0, PostgreSQL: 0, coordinator: 0 };
  const kill: Record<Victim, () => Promise<void>> = {
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
    for (const victim of random.shuffled(DECK)) {
      await pause(random.between(LEAST_CALM_MS, calmMs));
      await kill[victim]();
      kills[victim] += 1;
    }
    log(`${finished} sign-ups, ${Object.values(kills).reduce((sum, each) => sum + each, 0)} kills`);
  }
  return kills;
}

/** A run in which nothing happened has passed nothing. */
function shownNothing({ told }: Figures, kills: Kills): string[] {
  return [
    ...victims.filter((victim) => kills[victim] === 0).map((victim) => `no ${victim} was killed`),
    ...kinds.filter((kind) => (told[`${kind} OK`] ?? 0) === 0).map((kind) => `no ${kind} was saved`),
  ];
}

async function verify(cells: readonly OpenCell[], lines: readonly Line[]): Promise<string[]> {
  const complaints = lines.flatMap((line) =>
    line.line === "event" && line.kind === "contradicted" ? [`contradicted: ${line.detail}`] : [],
  );
  for (const [at, cell] of cells.entries()) {
    const wrong = [...(await settle(cell)), ...(await disagreements(cell)), ...(await lostChanges(cell))];
    complaints.push(...wrong.map((text) => `cell ${CELLS[at]}: ${text}`));
  }
  return [...complaints, ...(await doubleNames(cells)), ...brokenPromises(lines, await readJournals(cells))];
}
