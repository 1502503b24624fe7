import { laterPoint, nextPoint } from "../../kernel/instances.ts";
import type { HistoryPoint } from "../../kernel/messages.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import type { Sightings, StoredPoints } from "../../kernel/shard/sightings.ts";

/** The points of ledgers that a shard stores, in the rows of its log (H3). */
export class LedgerPoints implements Sightings {
  /** The newest point of each ledger, and the slot of the row that has it. */
  readonly #ledgers = new Map<string, { point: HistoryPoint; slot: number }>();
  /** The cells whose points are in the row of a slot. */
  readonly #cells = new Map<number, string[]>();
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
    for (const [cell, { incarnation, position }] of [...this.#onlyIn(slot), ...this.#noted])
      ledgers[cell] = [incarnation, position];
    this.#appended(slot, ledgers);
    this.#noted.clear();
    return ledgers;
  }

  discard(): void {
    this.#noted.clear();
  }

  /** Returns the points that only the row of this slot has. They must not be lost when it is replaced. */
  #onlyIn(slot: number): [string, HistoryPoint][] {
    return (this.#cells.get(slot) ?? []).flatMap((cell) => {
      const known = this.#ledgers.get(cell);
      return known?.slot === slot ? [[cell, known.point] satisfies [string, HistoryPoint]] : [];
    });
  }

  #appended(slot: number, ledgers: StoredPoints): void {
    const cells = Object.entries(ledgers);
    for (const [cell, [incarnation, position]] of cells)
      this.#ledgers.set(cell, { point: { incarnation, position }, slot });
    this.#cells.set(
      slot,
      cells.map(([cell]) => cell),
    );
  }
}
