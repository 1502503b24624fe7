import type { Cell } from "./cell.ts";
import { changeNames, provokeRefusals } from "./changing.ts";
import { claimAll } from "./claiming.ts";
import { contest, type ContestResult } from "./contest.ts";
import type { Progress } from "./progress.ts";
import { pause, Queue } from "./queue.ts";
import { Random } from "./random.ts";
import { lookUp } from "./records.ts";
import { reconcileLeftovers } from "./recovery.ts";
import { describeActivity, cellIds, type CellId, type Environment } from "./environment.ts";

const PROVOKED = 20;
const LOOKUP_PAUSE_MS = 100;

export interface ScenarioResult extends ContestResult {
  /** The names that each cell won in the contest: those that it alone wanted, and those that both wanted. */
  won: Record<CellId, { alone: number; contested: number }>;
  /** The number of batches that the coordinator had to refuse. */
  provoked: number;
}

/** Runs all steps in order. A violation is recorded as a problem, and the run continues. */
export async function runScenario(environment: Environment, progress: Progress): Promise<ScenarioResult> {
  const { workload, witness, counts } = environment;
  const router = new AbortController();
  const routing = lookUpContinuously(environment, router.signal);

  const result = await contest(environment, progress);
  const { cells, lost } = result;
  const won = { "1": countWon(cells["1"], environment), "2": countWon(cells["2"], environment) };
  for (const id of cellIds) counts[id].lost = lost[id].length;
  progress.milestone("every requested name is now owned by one of the cells");

  progress.set(() => `sending batches that must be refused; ${describeActivity(environment)}`);
  const provoked = await provokeBoth(environment, cells);
  progress.milestone(
    `${provoked} batches had to be refused: destroys of foreign or absent names, or with wrong sources`,
  );

  const both = (what: "destroyed" | "renamed"): number => counts["1"][what] + counts["2"][what];
  progress.set(() => {
    const changes = `${both("destroyed")} names destroyed, ${both("renamed")} renamed`;
    return `changing: ${changes}; ${describeActivity(environment)}`;
  });
  const half = Math.ceil(workload.reserve.length / 2);
  await Promise.all([
    changeNames(cells["1"], workload.reserve.slice(0, half), witness),
    changeNames(cells["2"], workload.reserve.slice(half), witness),
  ]);
  progress.milestone("the cells destroyed names, renamed some, and changed only the case of others");

  progress.set(() => `claiming lost names again; ${describeActivity(environment)}`);
  const gained = (id: CellId) => (): void => void (counts[id].wonLater += 1);
  await Promise.all(
    cellIds.map((id) =>
      claimAll({ cell: cells[id], queue: new Queue(lost[id]), witness, won: gained(id), lost: () => {} }),
    ),
  );
  progress.milestone("both cells claimed their lost names again, and won those that were free by now");

  router.abort();
  await routing;
  for (const id of cellIds) await reconcileLeftovers(cells[id], result.recovery);
  return { ...result, won, provoked };
}

async function provokeBoth({ workload }: Environment, cells: Record<CellId, Cell>): Promise<number> {
  const absent = workload.reserve.slice(0, PROVOKED);
  const [ofOne, ofTwo] = [cells["1"], cells["2"]].map(({ database }) =>
    database.entries().slice(0, PROVOKED),
  );
  const counts = await Promise.all([
    provokeRefusals(cells["1"], ofTwo ?? [], absent),
    provokeRefusals(cells["2"], ofOne ?? [], absent),
  ]);
  return counts[0] + counts[1];
}

function countWon(cell: Cell, { workload }: Environment): { alone: number; contested: number } {
  const entries = cell.database.entries();
  const contested = entries.filter(({ name }) => workload.contested.has(name)).length;
  return { alone: entries.length - contested, contested };
}

/** Looks names up during the whole run, as routers do, and records failures as problems. */
async function lookUpContinuously(environment: Environment, signal: AbortSignal): Promise<void> {
  const router = environment.connect("router");
  const random = new Random(environment.seed, "router");
  const { names } = environment.workload;
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
    environment.problems.push(`the router: ${error instanceof Error ? error.message : String(error)}`);
  }
}
