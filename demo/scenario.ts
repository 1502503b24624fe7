import type { Cell } from "./cell.ts";
import { changeSome, overstep } from "./changing.ts";
import { claimAll, LANES } from "./claiming.ts";
import { Life } from "./life.ts";
import { keyOf, type Wanted } from "./names.ts";
import type { Progress } from "./progress.ts";
import { pause, Queue } from "./queue.ts";
import { Random } from "./random.ts";
import { lookUp } from "./records.ts";
import { deathsText, recover, settle, type RecoveryRun } from "./recovery.ts";
import { thousands } from "./table.ts";
import { cellIds, type CellId, type World } from "./world.ts";

/** Of cell 2's names: still to be asked for when it dies. Never fewer than keep all its lanes busy, so that leases are open. */
const LEFT_AT_DEATH = 0.45;
const LEAST_LEFT_AT_DEATH = LANES * 20;
const OVERSTEPS = 20;

export interface Story {
  /** After the claiming: names by who wanted and who got them. */
  won: Record<CellId, { alone: number; contested: number }>;
  deaths: Life["deaths"];
  recovery: RecoveryRun[];
  oversteps: number;
  cells: Record<CellId, Cell>;
}

/** All that happens, in order. What must not happen is noted as a problem, and the story goes on. */
export async function runScenario(world: World, progress: Progress): Promise<Story> {
  const { plan, witness, tallies } = world;
  const router = new AbortController();
  const routing = routeMeanwhile(world, router.signal);
  const recovery: RecoveryRun[] = [];
  const lost: Record<CellId, Wanted[]> = { "1": [], "2": [] };
  const life = new Life();

  // Both cells ask for their names; cell 2 dies on the way and comes back.
  const queues = { "1": new Queue(plan.orders["1"]), "2": new Queue(plan.orders["2"]) };
  let second = "";
  const left = (id: CellId): string => `cell ${id} ${thousands(plan.orders[id].length - queues[id].length)} of ${thousands(plan.orders[id].length)}`;
  progress.set(() => `claiming names: ${left("1")}, ${left("2")}${second}; ${activity(world)}`);
  const won = (): void => {};
  const claim = (cell: Cell, id: CellId, lives?: Life): Promise<void> =>
    claimAll({ cell, queue: queues[id], witness, won, lost: (wanted) => lost[id].push(wanted), ...(lives === undefined ? {} : { life: lives }) });

  const claimWithDeath = async (): Promise<Cell> => {
    const first = world.startCell("2", 1);
    const doomed = claim(first, "2", life);
    const total = plan.orders["2"].length;
    const deadline = Math.max(total * LEFT_AT_DEATH, Math.min(total, LEAST_LEFT_AT_DEATH));
    while (queues["2"].length > deadline) await pause(2);
    life.end();
    await doomed;
    const diedAtMs = performance.now();
    first.database.close();
    progress.milestone(`cell 2 died. Leases it left: ${deathsText(life)}`);
    second = " (dead, being recovered)";
    const again = world.startCell("2", 2);
    await recover(again, diedAtMs, recovery);
    second = "";
    progress.milestone(`cell 2 is back: its open leases are settled, and it goes on`);
    const saved = new Set(again.database.entries().map(({ name }) => keyOf(name)));
    queues["2"] = new Queue(queues["2"].all().filter(({ name }) => !saved.has(keyOf(name))));
    await claim(again, "2");
    return again;
  };
  const one = world.startCell("1", 1);
  const [, two] = await Promise.all([claim(one, "1"), claimWithDeath()]);
  const cells: Record<CellId, Cell> = { "1": one, "2": two };
  for (const id of cellIds) tallies[id].lost = lost[id].length;
  const story: Story = { won: { "1": wonBy(one, world), "2": wonBy(two, world) }, deaths: life.deaths, recovery, oversteps: 0, cells };
  progress.milestone("every name that was asked for has been taken by one cell or the other");

  progress.set(() => `asking for what must be refused; ${activity(world)}`);
  const [ofOne, ofTwo] = [one.database.entries(), two.database.entries()];
  const absent = plan.reserve.slice(0, OVERSTEPS);
  const counts = await Promise.all([overstep(one, ofTwo.slice(0, OVERSTEPS), absent), overstep(two, ofOne.slice(0, OVERSTEPS), absent)]);
  story.oversteps = counts[0] + counts[1];
  progress.milestone(`${story.oversteps} destroys that are not the cell's to make: of foreign names, absent names, wrong sources`);

  progress.set(() => `destroying and renaming: ${cellIds.map((id) => `cell ${id} ${tallies[id].givenUp} and ${tallies[id].renamed}`).join(", ")}; ${activity(world)}`);
  const half = Math.ceil(plan.reserve.length / 2);
  await Promise.all([changeSome(one, plan.reserve.slice(0, half), witness), changeSome(two, plan.reserve.slice(half), witness)]);
  progress.milestone("names were destroyed, renamed, and changed in case only");

  progress.set(() => `asking again for names that were lost; ${activity(world)}`);
  await Promise.all(
    cellIds.map((id) => {
      const chance = (): void => void (tallies[id].secondChance += 1);
      return claimAll({ cell: cells[id], queue: new Queue(lost[id]), witness, won: chance, lost: () => {} });
    }),
  );
  progress.milestone("both cells asked again for what the other had taken, and got what was free by now");

  router.abort();
  await routing;
  for (const id of cellIds) await settle(cells[id], recovery);
  return story;
}

const activity = ({ timings, lostAnswers }: World): string => `${thousands(timings.count)} requests, ${lostAnswers} answers lost`;

function wonBy(cell: Cell, { plan }: World): { alone: number; contested: number } {
  const entries = cell.database.entries();
  const contested = entries.filter(({ name }) => plan.contested.has(name)).length;
  return { alone: entries.length - contested, contested };
}

/** Routers do not wait until a cell is done: they look names up all the time. */
async function routeMeanwhile(world: World, signal: AbortSignal): Promise<void> {
  const connection = world.connect("router");
  const random = new Random(world.seed, "router");
  const { names } = world.plan;
  try {
    while (!signal.aborted) {
      const some = Array.from({ length: Math.min(100, names.length) }, () => names[random.between(0, names.length - 1)]?.name ?? "");
      await lookUp(connection, [...new Set(some)].map((value) => ({ type: "ROUTES", value })));
      await pause(25);
    }
  } catch (error) {
    world.problems.push(`the router: ${error instanceof Error ? error.message : String(error)}`);
  }
}
