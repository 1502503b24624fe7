import type { LedgerHistory, LedgerPoint } from "../client/ledger-history.ts";
import { reasonOf } from "./errors.ts";

/** The cell's table of what it has seen of its ledger (L7). All processes of the cell share it. */
export interface LedgerHistoryTable {
  load(cell: string): Promise<LedgerPoint[]>;
  /** Keeps the larger position of each incarnation. `points` is not empty. */
  save(cell: string, points: readonly LedgerPoint[]): Promise<void>;
  /** Deletes rows that have reached no further than these points. */
  remove(cell: string, points: readonly LedgerPoint[]): Promise<void>;
}

/**
 * Writing every point would make one hot row. A process that dies forgets what it saw in this time at most.
 */
const SAVE_EVERY_MS = 5_000;

/**
 * The wait doubles after each failed save. After this many failures, 85 minutes later, an idle process gives
 * up until its next answer, because its database was probably closed. Otherwise an application that makes
 * many cells and closes their databases would collect timers.
 */
const MAX_RETRIES = 10;

/**
 * Stores what a cell has seen of its ledger (L7). It is loaded before the first call, because the first call
 * must already notice a ledger that went back in time.
 */
export class SavedHistory {
  readonly #table: LedgerHistoryTable;
  readonly #cell: string;
  readonly #history: LedgerHistory;
  readonly #inBackground: (work: () => Promise<void>) => boolean;
  readonly #failed: (error: string) => void;
  /** The positions that the table had when this process last wrote or read it. */
  readonly #saved = new Map<number, number>();
  #isLoaded = false;
  #nextMs = Number.NEGATIVE_INFINITY;
  /** Saves what no call saves, because the process is idle or a call takes long. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The number of failed saves since the last successful one. */
  #failures = 0;

  /** @param inBackground starts work that no call waits for. Answers false if too much of it is under way. */
  constructor(
    table: LedgerHistoryTable,
    cell: string,
    history: LedgerHistory,
    inBackground: (work: () => Promise<void>) => boolean,
    failed: (error: string) => void,
  ) {
    this.#table = table;
    this.#cell = cell;
    this.#history = history;
    this.#inBackground = inBackground;
    this.#failed = failed;
    history.onChange(() => this.#saveSoon());
  }

  /**
   * Loads the points, unless a call has done so. Call this outside of transactions: inside one, a pool of one
   * connection would deadlock.
   */
  async load(): Promise<void> {
    if (this.#isLoaded) return;
    await this.#read();
    this.#isLoaded = true;
  }

  /** Saves, unless this process did so in the last 5 s. */
  async saveIfDue(): Promise<void> {
    if (performance.now() >= this.#nextMs) await this.save();
  }

  /**
   * When it resolves, all points of before the call are saved. It doesn't wait for another save that is under
   * way, but writes the same points again: the table keeps the larger ones. Never rejects: the caller's rows
   * are saved already. A failed save is tried again, also if the process is idle, and writes the same points.
   */
  async save(): Promise<void> {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
    const { points, replaced } = this.#history;
    const changed = points.filter(({ incarnation, position }) => this.#saved.get(incarnation) !== position);
    if (changed.length === 0 && replaced.length === 0) return;
    this.#nextMs = performance.now() + SAVE_EVERY_MS;
    try {
      if (changed.length > 0) await this.#table.save(this.#cell, changed);
      // Afterwards, so that a process that dies in between has forgotten nothing.
      await this.#table.remove(this.#cell, replaced);
      this.#history.deleted(replaced);
      for (const { incarnation } of replaced) this.#saved.delete(incarnation);
      // Another process may have seen more.
      await this.#read();
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      if (this.#failures <= MAX_RETRIES) this.#saveSoon(SAVE_EVERY_MS * 2 ** (this.#failures - 1));
      this.#failed(reasonOf(error));
    }
  }

  #saveSoon(waitMs = SAVE_EVERY_MS): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#inBackground(() => this.save())) this.#saveSoon(waitMs);
    }, waitMs);
    // A process that has nothing else to do may end. Some platforms' timers have no `unref`.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async #read(): Promise<void> {
    const stored = await this.#table.load(this.#cell);
    this.#history.add(stored);
    for (const { incarnation, position } of stored) this.#saved.set(incarnation, position);
  }
}
