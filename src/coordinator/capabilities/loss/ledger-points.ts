import { laterPoint, nextPoint } from "../../kernel/instances.ts";
import type { HistoryPoint } from "../../kernel/messages.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import type { Sightings, StoredPoints } from "../../kernel/shard/sightings.ts";

const NONE: readonly string[] = [];

/** The points of ledgers that a shard stores, in the rows of its log (H3). */
export class LedgerPoints implements Sightings {
  /** The newest point of each ledger, and the slot of the row that has it. */
  readonly #ledgers = new Map<string, { point: HistoryPoint; slot: number }>();
  /** The cells whose points are in the row of a slot. */
  readonly #cells = new Map<number, readonly string[]>();
  /** The points of the ledgers whose messages the current transaction carries out. */
  readonly #noted = new Map<string, HistoryPoint>();

  constructor(log: Pick<ShardLog, "takeLedgers">) {
    for (const { slot, ledgers } of log.takeLedgers())
      this.#appended(slot, JSON.parse(ledgers) as StoredPoints);
  }

  of(cell: string): HistoryPoint | undefined {
    return this.#noted.get(cell) ?? this.#ledgers.get(cell)?.point;
  }

  get all(): Record<string, HistoryPoint> {
    return Object.fromEntries([...this.#ledgers].map(([cell, { point }]) => [cell, point]));
  }

  note(cell: string, point: HistoryPoint | null, confirmed: HistoryPoint | null): boolean {
    const known = this.of(cell);
    const next = nextPoint(known, point, confirmed);
    if (next !== undefined && next !== known) this.#noted.set(cell, next);
    return next !== undefined || known === undefined;
  }

  noteLater(cell: string, point: HistoryPoint): void {
    this.#noted.set(cell, laterPoint(this.of(cell), point));
  }

  take(slot: number): StoredPoints {
    const ledgers: StoredPoints = {};
    // The points that only the replaced row has must not be lost.
    for (const cell of this.#cells.get(slot) ?? NONE) {
      const known = this.#ledgers.get(cell);
      if (known?.slot === slot) ledgers[cell] = [known.point.incarnation, known.point.position];
    }
    for (const [cell, { incarnation, position }] of this.#noted) ledgers[cell] = [incarnation, position];
    this.#appended(slot, ledgers);
    this.#noted.clear();
    return ledgers;
  }

  discard(): void {
    this.#noted.clear();
  }

  #appended(slot: number, ledgers: StoredPoints): void {
    const cells = Object.keys(ledgers);
    for (const cell of cells) {
      const [incarnation, position] = ledgers[cell] ?? [0, 0];
      this.#ledgers.set(cell, { point: { incarnation, position }, slot });
    }
    this.#cells.set(slot, cells.length === 0 ? NONE : cells);
  }
}
