import type { Cell } from "./cell.ts";
import { changeSome, overstep } from "./changing.ts";
import { claimAll } from "./claiming.ts";
import { contest, type ContestResult } from "./contest.ts";
import type { Progress } from "./progress.ts";
import { pause, Queue } from "./queue.ts";
import { Random } from "./random.ts";
import { lookUp } from "./records.ts";
import { settle } from "./recovery.ts";
import { activity, cellIds, type CellId, type World } from "./world.ts";

const OVERSTEPS = 20;
const LOOKUP_PAUSE_MS = 100;

export interface Story extends ContestResult {
  /** After the claiming: names by who wanted and who got them. */
  won: Record<CellId, { alone: number; contested: number }>;
  /** Batches that had to be refused. */
  oversteps: number;
}

/** All that happens, in order. What must not happen is noted as a problem, and the story goes on. */
export async function runScenario(world: World, progress: Progress): Promise<Story> {
  const { plan, witness, tallies } = world;
  const router = new AbortController();
  const routing = routeMeanwhile(world, router.signal);

  const result = await contest(world, progress);
  const { cells, lost } = result;
  const won = { "1": wonBy(cells["1"], world), "2": wonBy(cells["2"], world) };
  for (const id of cellIds) tallies[id].lost = lost[id].length;
  progress.milestone("every name that was asked for has been taken by one cell or the other");

  progress.set(() => `asking for what must be refused; ${activity(world)}`);
  const oversteps = await overstepBoth(world, cells);
  progress.milestone(
    `${oversteps} batches were provoked: destroys of foreign names, of absent names, with wrong sources`,
  );

  const both = (what: "givenUp" | "renamed"): number => tallies["1"][what] + tallies["2"][what];
  progress.set(
    () => `changing: ${both("givenUp")} names destroyed, ${both("renamed")} renamed; ${activity(world)}`,
  );
  const half = Math.ceil(plan.reserve.length / 2);
  await Promise.all([
    changeSome(cells["1"], plan.reserve.slice(0, half), witness),
    changeSome(cells["2"], plan.reserve.slice(half), witness),
  ]);
  progress.milestone("names were destroyed, renamed, and changed in case only");

  progress.set(() => `asking again for names that were lost; ${activity(world)}`);
  const gained = (id: CellId) => (): void => void (tallies[id].secondChance += 1);
  await Promise.all(
    cellIds.map((id) =>
      claimAll({ cell: cells[id], queue: new Queue(lost[id]), witness, won: gained(id), lost: () => {} }),
    ),
  );
  progress.milestone("both cells asked again for what the other had taken, and got what was free by now");

  router.abort();
  await routing;
  for (const id of cellIds) await settle(cells[id], result.recovery);
  return { ...result, won, oversteps };
}

async function overstepBoth({ plan }: World, cells: Record<CellId, Cell>): Promise<number> {
  const absent = plan.reserve.slice(0, OVERSTEPS);
  const [ofOne, ofTwo] = [cells["1"], cells["2"]].map(({ database }) =>
    database.entries().slice(0, OVERSTEPS),
  );
  const counts = await Promise.all([
    overstep(cells["1"], ofTwo ?? [], absent),
    overstep(cells["2"], ofOne ?? [], absent),
  ]);
  return counts[0] + counts[1];
}

function wonBy(cell: Cell, { plan }: World): { alone: number; contested: number } {
  const entries = cell.database.entries();
  const contested = entries.filter(({ name }) => plan.contested.has(name)).length;
  return { alone: entries.length - contested, contested };
}

/** Routers do not wait until a cell is done: they look names up all the time. */
async function routeMeanwhile(world: World, signal: AbortSignal): Promise<void> {
  const router = world.connect("router");
  const random = new Random(world.seed, "router");
  const { names } = world.plan;
  try {
    while (!signal.aborted) {
      const some = Array.from(
        { length: Math.min(100, names.length) },
        () => names[random.between(0, names.length - 1)]?.name ?? "",
      );
      await lookUp(
        router,
        [...new Set(some)].map((value) => ({ type: "ROUTES", value })),
      );
      await pause(LOOKUP_PAUSE_MS);
    }
  } catch (error) {
    world.problems.push(`the router: ${error instanceof Error ? error.message : String(error)}`);
  }
}
