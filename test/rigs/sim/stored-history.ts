import type { LedgerHistory, LedgerPoint } from "../../../src/users/client/ledger-history.ts";

/** The table of a cell's database that has the points of its ledger. All processes of the cell share it. */
export class StoredHistory {
  readonly #points = new Map<number, number>();

  load(history: LedgerHistory): void {
    history.add([...this.#points].map(([incarnation, position]): LedgerPoint => ({ incarnation, position })));
  }

  save(history: LedgerHistory): void {
    for (const { incarnation, position } of history.points)
      this.#points.set(incarnation, Math.max(position, this.#points.get(incarnation) ?? 0));
    const { replaced } = history;
    for (const { incarnation, position } of replaced)
      if ((this.#points.get(incarnation) ?? 0) <= position) this.#points.delete(incarnation);
    history.deleted(replaced);
    this.load(history);
  }
}
