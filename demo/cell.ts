import type { ClientLeases } from "../src/users/cell/remote-leases.ts";
import { describeFailure, type Refused } from "../src/users/client/answer.ts";
import type { Batch } from "../src/users/client/index.ts";
import type { LocalDatabase } from "./local-database.ts";
import type { Random } from "./random.ts";
import type { CellCounts } from "./cell-counts.ts";

/** A change to the cell's rows, and the batch of ops on the names in those rows. */
export interface Change {
  batch: Batch;
  /** Runs inside the local transaction. If it throws, the transaction and the lease are rolled back. */
  apply: (database: LocalDatabase) => void;
  /** Runs right after the local transaction has committed. */
  saved?: () => void;
}

export type Outcome =
  | { kind: "done" }
  | { kind: "refused"; refusal: Refused }
  /** The local database refused the change, so the lease was rolled back. */
  | { kind: "failed_here" }
  /** The begin got no answer in time, so the cell rolled its lease back. */
  | { kind: "unknown" };

/** The points between two steps where a process may die. */
export const stages = ["begun", "saved", "committed"] as const;
export type Stage = (typeof stages)[number];

/** Called between two steps. Throws `CellCrashed` if the process dies there. */
export type Checkpoint = (stage: Stage) => void;

export class CellCrashed extends Error {
  readonly stage: Stage;

  constructor(stage: Stage) {
    super(`the cell died at the stage "${stage}"`);
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
 * One process of a cell. For each change it begins a lease, saves the rows together with the lease's UUID,
 * commits the lease, and deletes the UUID.
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
      // An earlier attempt got no answer and may still be granted. The rollback closes its UUID (C7).
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
    // If the outcome is unknown, recovery commits the lease: its UUID was saved with the rows.
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
    // The client has already retried until its deadline, so the demo cannot continue.
    else if (answer.kind === "unknown")
      throw new Error(`the coordinator cannot be reached: ${answer.error}`, { cause: answer });
    else this.counts.problems.push(`cell ${this.id}: a rollback was refused: ${describeFailure(answer)}`);
  }
}
