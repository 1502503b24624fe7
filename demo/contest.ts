import type { Cell } from "./cell.ts";
import { claimAll, LANES, type Claiming } from "./claiming.ts";
import { CellCrash } from "./cell-crash.ts";
import { keyOf, type NameRequest } from "./names.ts";
import type { Progress } from "./progress.ts";
import { pause, Queue } from "./queue.ts";
import { describeCrashes, recover, type RecoveryRun } from "./recovery.ts";
import { thousands } from "./table.ts";
import { describeActivity, type CellId, type Environment } from "./environment.ts";

/**
 * The share of cell 2's names that are still in its queue when it dies. In small runs the minimum below keeps
 * all its lanes busy, so that it dies with open leases.
 */
const LEFT_AT_DEATH = 0.45;
const LEAST_LEFT_AT_DEATH = LANES * 20;
/**
 * How far one cell may get ahead of the other, as a share of its names. This is less than the share in
 * flight, so that the cells really compete for the same names.
 */
const LEAD = 0.004;

export interface ContestResult {
  cells: Record<CellId, Cell>;
  /** The names that each cell lost to the other cell. */
  lost: Record<CellId, NameRequest[]>;
  crashes: CellCrash["crashes"];
  recovery: RecoveryRun[];
}

/**
 * Both cells claim all their names at the same time. Cell 2 dies midway, recovers while cell 1 continues, and
 * claims the rest.
 */
export async function contest(environment: Environment, progress: Progress): Promise<ContestResult> {
  const { workload, witness } = environment;
  const queues = { "1": new Queue(workload.orders["1"]), "2": new Queue(workload.orders["2"]) };
  const lost: Record<CellId, NameRequest[]> = { "1": [], "2": [] };
  const recovery: RecoveryRun[] = [];
  const crash = new CellCrash();
  let note = "";

  const share = (id: CellId): number => 1 - queues[id].length / workload.orders[id].length;
  // After cell 2 has died, the cells no longer wait for each other.
  const isAhead = (id: CellId): boolean =>
    !crash.isUnderway && share(id) > share(id === "1" ? "2" : "1") + LEAD;
  const claim = (cell: Cell, id: CellId, some: Partial<Claiming>): Promise<NameRequest[]> =>
    claimAll({
      cell,
      queue: queues[id],
      witness,
      won: () => {},
      lost: (wanted) => lost[id].push(wanted),
      ...some,
    });

  const claimAndDie = async (): Promise<{ unanswered: NameRequest[]; diedAtMs: number }> => {
    const cell = environment.startCell("2", 1);
    const claiming = claim(cell, "2", { crash, waits: () => isAhead("2") });
    const names = workload.orders["2"].length;
    const last = Math.max(names * LEFT_AT_DEATH, Math.min(names, LEAST_LEFT_AT_DEATH));
    // The claiming also ends early if something goes wrong.
    const over = claiming.then(
      () => true,
      () => true,
    );
    while (queues["2"].length > last && !(await Promise.race([over, pause(2).then(() => false)])));
    crash.start();
    const unanswered = await claiming;
    cell.database.close();
    progress.milestone(`cell 2 died and left leases behind: ${describeCrashes(crash)}`);
    return { unanswered, diedAtMs: performance.now() };
  };

  const claimTheRest = async ({
    unanswered,
    diedAtMs,
  }: {
    unanswered: NameRequest[];
    diedAtMs: number;
  }): Promise<Cell> => {
    const cell = environment.startCell("2", 2);
    note = " (down)";
    await recover(cell, diedAtMs, recovery);
    note = "";
    progress.milestone("cell 2 is back: its open leases are decided, and it continues");
    // Names without an answer are claimed again, unless they were saved before the crash.
    const saved = new Set(cell.database.entries().map(({ name }) => keyOf(name)));
    queues["2"] = new Queue(
      [...unanswered, ...queues["2"].all()].filter(({ name }) => !saved.has(keyOf(name))),
    );
    await claim(cell, "2", {});
    return cell;
  };

  const asked = (id: CellId): string => {
    const total = workload.orders[id].length;
    return `cell ${id} ${thousands(total - queues[id].length)}/${thousands(total)}`;
  };
  progress.set(() => `claiming: ${asked("1")}, ${asked("2")}${note}; ${describeActivity(environment)}`);
  const one = environment.startCell("1", 1);
  const [, two] = await Promise.all([
    claim(one, "1", { waits: () => isAhead("1") }),
    claimAndDie().then(claimTheRest),
  ]);
  return { cells: { "1": one, "2": two }, lost, crashes: crash.crashes, recovery };
}
