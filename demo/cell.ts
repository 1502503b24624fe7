import type { ClientLeases } from "../src/cell/remote-leases.ts";
import { describeFailure, type Refused } from "../src/client/answer.ts";
import type { Batch } from "../src/client/index.ts";
import type { LocalDatabase } from "./local-database.ts";
import type { Random } from "./random.ts";
import type { CellCounts } from "./cell-counts.ts";

/** A change of the cell's own rows, and the names that it takes and gives up. */
export interface Change {
  batch: Batch;
  /** Inside the local transaction. What it throws undoes the change. */
  apply: (database: LocalDatabase) => void;
  /** Right after the local transaction. */
  saved?: () => void;
}

export type Outcome =
  | { kind: "done" }
  | { kind: "refused"; refusal: Refused }
  /** The local database would not have it; the lease was rolled back. */
  | { kind: "failed_here" }
  /** The begin was not answered in time, and its lease was closed. */
  | { kind: "unknown" };

/** The places between two steps where a process may end. */
export const stages = ["begun", "saved", "committed"] as const;
export type Stage = (typeof stages)[number];

/** Called between the steps; throws `CellCrashed` to end there. */
export type Checkpoint = (stage: Stage) => void;

export class CellCrashed extends Error {
  readonly stage: Stage;

  constructor(stage: Stage) {
    super(`the cell died: ${stage}`);
    this.stage = stage;
  }
}

interface Parts {
  id: string;
  leases: ClientLeases;
  database: LocalDatabase;
  random: Random;
  counts: CellCounts;
}

/**
 * One life of a cell: begin a lease, save the rows together with the lease's UUID, commit the lease, forget
 * it.
 */
export class Cell {
  readonly id: string;
  readonly leases: ClientLeases;
  readonly database: LocalDatabase;
  readonly random: Random;
  readonly counts: CellCounts;

  constructor({ id, leases, database, random, counts }: Parts) {
    this.id = id;
    this.leases = leases;
    this.database = database;
    this.random = random;
    this.counts = counts;
  }

  async transact({ batch, apply, saved }: Change, checkpoint: Checkpoint = () => {}): Promise<Outcome> {
    const uuid = this.random.uuid();
    const begun = await this.leases.begin(uuid, batch);
    if (begun.kind === "refused") {
      this.counts.refusal(begun);
      // An earlier try was not answered: it may still be carried out, unless its UUID is closed (rule C7).
      if (!begun.outcomeKnown) await this.#rollBack(uuid);
      return { kind: "refused", refusal: begun };
    }
    if (begun.kind === "unknown") {
      this.counts.unknown += 1;
      await this.#rollBack(uuid);
      return { kind: "unknown" };
    }
    this.#granted(batch);
    checkpoint("begun");
    try {
      this.database.transaction(() => {
        apply(this.database);
        this.database.insertLease(uuid);
      });
    } catch {
      this.counts.localFailures += 1;
      await this.#rollBack(uuid);
      return { kind: "failed_here" };
    }
    saved?.();
    checkpoint("saved");
    const committed = await this.leases.commit(uuid);
    checkpoint("committed");
    if (committed.kind === "ok") {
      this.counts.committed += 1;
      await this.database.remove(uuid);
    }
    // An unknown outcome is left to the recovery: the rows are saved, and the lease's UUID with them.
    else if (committed.kind === "refused")
      this.counts.problems.push(
        `cell ${this.id}: the commit of a granted lease was refused: ${describeFailure(committed)}`,
      );
    return { kind: "done" };
  }

  #granted({ creates, destroys, replaces }: Batch): void {
    this.counts.leasesGranted += 1;
    this.counts.creates += creates?.length ?? 0;
    this.counts.destroys += destroys?.length ?? 0;
    this.counts.replaces += replaces?.length ?? 0;
  }

  async #rollBack(uuid: string): Promise<void> {
    const answer = await this.leases.rollback(uuid);
    if (answer.kind === "ok") this.counts.rolledBack += 1;
    // After all that trying there is no demo left to give.
    else if (answer.kind === "unknown")
      throw new Error(`the coordinator cannot be reached: ${answer.error}`, { cause: answer });
    else this.counts.problems.push(`cell ${this.id}: a rollback was refused: ${describeFailure(answer)}`);
  }
}
