import { CellCrashed, stages, type Checkpoint, type Stage } from "./cell.ts";

/**
 * Simulates the death of a cell's process. After `start`, each lane dies at its own stage, so that the crash
 * leaves leases in every state that a crash can leave behind.
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
