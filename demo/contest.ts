import type { Cell } from "./cell.ts";
import { claimAll, LANES, type Claiming } from "./claiming.ts";
import { Life } from "./life.ts";
import { keyOf, type Wanted } from "./names.ts";
import type { Progress } from "./progress.ts";
import { pause, Queue } from "./queue.ts";
import { deathsText, recover, type RecoveryRun } from "./recovery.ts";
import { thousands } from "./table.ts";
import { activity, type CellId, type World } from "./world.ts";

/** Of cell 2's names: still to be asked for when it dies. Never fewer than keep all its lanes busy, so that leases are open. */
const LEFT_AT_DEATH = 0.45;
const LEAST_LEFT_AT_DEATH = LANES * 20;
/** How far one cell may get ahead of the other, as a share of its names: less than they have under way, so that they really collide. */
const LEAD = 0.004;

export interface ContestResult {
  cells: Record<CellId, Cell>;
  /** What each cell wanted and the other has. */
  lost: Record<CellId, Wanted[]>;
  deaths: Life["deaths"];
  recovery: RecoveryRun[];
}

/** Both cells ask for all their names, side by side. Cell 2 dies on the way, is recovered while cell 1 goes on, and asks for the rest. */
export async function contest(world: World, progress: Progress): Promise<ContestResult> {
  const { plan, witness } = world;
  const queues = { "1": new Queue(plan.orders["1"]), "2": new Queue(plan.orders["2"]) };
  const lost: Record<CellId, Wanted[]> = { "1": [], "2": [] };
  const recovery: RecoveryRun[] = [];
  const life = new Life();
  let note = "";

  const share = (id: CellId): number => 1 - queues[id].length / plan.orders[id].length;
  // Once cell 2 has died, each goes as fast as it can.
  const isAhead = (id: CellId): boolean => !life.isDying && share(id) > share(id === "1" ? "2" : "1") + LEAD;
  const claim = (cell: Cell, id: CellId, some: Partial<Claiming>): Promise<Wanted[]> =>
    claimAll({
      cell,
      queue: queues[id],
      witness,
      won: () => {},
      lost: (wanted) => lost[id].push(wanted),
      ...some,
    });

  const claimAndDie = async (): Promise<{ unanswered: Wanted[]; diedAtMs: number }> => {
    const cell = world.startCell("2", 1);
    const claiming = claim(cell, "2", { life, waits: () => isAhead("2") });
    const names = plan.orders["2"].length;
    const last = Math.max(names * LEFT_AT_DEATH, Math.min(names, LEAST_LEFT_AT_DEATH));
    // It may also end by itself, when something is wrong.
    const over = claiming.then(
      () => true,
      () => true,
    );
    while (queues["2"].length > last && !(await Promise.race([over, pause(2).then(() => false)])));
    life.end();
    const unanswered = await claiming;
    cell.database.close();
    progress.milestone(`cell 2 died. Leases left: ${deathsText(life)}`);
    return { unanswered, diedAtMs: performance.now() };
  };

  const claimTheRest = async ({
    unanswered,
    diedAtMs,
  }: {
    unanswered: Wanted[];
    diedAtMs: number;
  }): Promise<Cell> => {
    const cell = world.startCell("2", 2);
    note = " (dead)";
    await recover(cell, diedAtMs, recovery);
    note = "";
    progress.milestone("cell 2 is back: its open leases are settled, and it goes on");
    // Whoever got no answer asks again, unless the name is there.
    const saved = new Set(cell.database.entries().map(({ name }) => keyOf(name)));
    queues["2"] = new Queue(
      [...unanswered, ...queues["2"].all()].filter(({ name }) => !saved.has(keyOf(name))),
    );
    await claim(cell, "2", {});
    return cell;
  };

  const asked = (id: CellId): string =>
    `cell ${id} ${thousands(plan.orders[id].length - queues[id].length)}/${thousands(plan.orders[id].length)}`;
  progress.set(() => `claiming: ${asked("1")}, ${asked("2")}${note}; ${activity(world)}`);
  const one = world.startCell("1", 1);
  const [, two] = await Promise.all([
    claim(one, "1", { waits: () => isAhead("1") }),
    claimAndDie().then(claimTheRest),
  ]);
  return { cells: { "1": one, "2": two }, lost, deaths: life.deaths, recovery };
}
