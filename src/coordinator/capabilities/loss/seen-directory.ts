import { isSamePoint, nextPoint } from "../../kernel/instances.ts";
import type { HistoryPoint } from "../../kernel/messages.ts";
import type { ToldDirectory } from "./messages.ts";
import type { LedgerStore } from "../../kernel/ledger/store.ts";

/**
 * How far this ledger has seen the directory. Nobody asks the directory for a begin, so the cron tells the
 * ledger, and the ledger stores it together with its applied position (H3). If the directory goes back in
 * time, the ledger still has the point that is missing.
 */
export class SeenDirectory {
  readonly #store: LedgerStore;
  #point: HistoryPoint | undefined;

  constructor(store: LedgerStore) {
    this.#store = store;
    this.#point = this.#stored;
  }

  get #stored(): HistoryPoint | undefined {
    const { directory } = this.#store.applied;
    return directory === undefined ? undefined : { incarnation: directory[0], position: directory[1] };
  }

  get point(): HistoryPoint | undefined {
    return this.#point;
  }

  get isStored(): boolean {
    return this.#point === undefined || isSamePoint(this.#stored, this.#point);
  }

  learn({ point, confirmed }: ToldDirectory): void {
    this.#point = nextPoint(this.#point, point, confirmed) ?? this.#point;
  }
}
