import { CellCrashed, stages, type Checkpoint, type Stage } from "./cell.ts";

/**
 * Lets a cell's process end in the middle of its work. Once it is dying, each of its lanes ends at a stage of
 * its own, so that leases are left behind in every state that a crash can leave them in.
 */
export class CellCrash {
  #isUnderway = false;
  readonly crashes: Record<Stage, number> = { begun: 0, saved: 0, committed: 0 };

  get isUnderway(): boolean {
    return this.#isUnderway;
  }

  start(): void {
    this.#isUnderway = true;
  }

  checkpointOf(lane: number): Checkpoint {
    const last = stages[lane % stages.length];
    return (stage) => {
      if (!this.#isUnderway || stage !== last) return;
      this.crashes[stage] += 1;
      throw new CellCrashed(stage);
    };
  }
}
