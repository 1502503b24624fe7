import { CellDied, stages, type Checkpoint, type Stage } from "./cell.ts";

/**
 * Lets a cell's process end in the middle of its work. Once it is dying, each of its lanes ends at a stage of its own, so that leases are
 * left behind in every state that a crash can leave them in.
 */
export class Life {
  #dying = false;
  readonly deaths: Record<Stage, number> = { begun: 0, saved: 0, committed: 0 };

  get isDying(): boolean {
    return this.#dying;
  }

  end(): void {
    this.#dying = true;
  }

  checkpointOf(lane: number): Checkpoint {
    const last = stages[lane % stages.length];
    return (stage) => {
      if (!this.#dying || stage !== last) return;
      this.deaths[stage] += 1;
      throw new CellDied(stage);
    };
  }
}
