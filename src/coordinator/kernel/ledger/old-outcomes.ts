import type { Limits } from "../../../common/limits.ts";
import type { Ports } from "../ports.ts";
import type { LedgerStore, OutcomeRow } from "./store.ts";

/** The outcomes that are read at once for new leases. */
const READ_ROWS = 100;
/** If no outcome is old enough, new leases look for one again after this time. */
const RETRY_MS = 10_000;

interface Needs {
  readonly ports: Pick<Ports, "clock">;
  readonly limits: Limits;
  readonly store: LedgerStore;
}

/** Outcomes that are applied on every shard, and fences, by their age (S1, C7). */
export class OldOutcomes {
  readonly #part: Needs;
  /** The created positions of outcomes that may be forgotten. They may be forgotten by now. */
  #found: number[] = [];
  /** Where the search for more of them goes on. */
  #from = 0;
  #missedAtMs = -Infinity;

  constructor(part: Needs) {
    this.#part = part;
  }

  /**
   * Returns the created position of an outcome that may be forgotten. Each is returned once. A new lease
   * takes its row: to change a row costs as much as to write one, and nothing has to be deleted.
   */
  take(): number | undefined {
    const now = this.#part.ports.clock.now();
    if (this.#found.length === 0 && Math.abs(now - this.#missedAtMs) >= RETRY_MS) {
      const { rows, old } = this.page(1, this.#from, READ_ROWS, this.#part.limits.outcomeRetentionS);
      this.#found = old.map((row) => row.created_position);
      const isEnd = rows.length < READ_ROWS;
      if (isEnd) this.#missedAtMs = now;
      this.#from = isEnd ? 0 : (rows.at(-1)?.created_position ?? 0);
    }
    return this.#found.shift();
  }

  /**
   * Returns the next leases that were created long enough ago, up to the first one that was not, and those of
   * them that have been finished for as long. Usually the first one is too young, so it is read by itself.
   */
  page(kind: 1 | 2, from: number, limit: number, ageS: number): { rows: OutcomeRow[]; old: OutcomeRow[] } {
    const { store } = this.#part;
    const isYoung = (row: OutcomeRow): boolean => this.#ageS(row.created_position, row.created_at_ms) < ageS;
    const [oldest] = store.outcomes(kind, from, 1);
    if (oldest === undefined || isYoung(oldest)) return { rows: [], old: [] };
    const all = store.outcomes(kind, from, limit);
    const young = all.findIndex(isYoung);
    const rows = young === -1 ? all : all.slice(0, young);
    const isOld = ({ decided, pending, position, decided_at_ms: decidedAtMs }: OutcomeRow): boolean =>
      decided === kind && (kind === 2 || pending === 0) && this.#ageS(position, decidedAtMs ?? 0) >= ageS;
    return { rows, old: rows.filter(isOld) };
  }

  #ageS(position: number, stampedMs: number): number {
    const { ports, store } = this.#part;
    return (ports.clock.now() - store.times.timeOf(position, stampedMs)) / 1_000;
  }
}
