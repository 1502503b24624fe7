import type { RowMethods } from "./connection.ts";

/** Remembers the errors of the cell's own statements about rows, by transaction. */
export class StatementErrors<Tx> {
  readonly #errors = new WeakMap<WeakKey, unknown[]>();

  /** Forgets those of an earlier transaction. Some drivers use the same object for each on a connection. */
  begin(tx: Tx): void {
    this.#errors.set(tx as WeakKey, []);
  }

  of(tx: Tx): readonly unknown[] {
    return this.#errors.get(tx as WeakKey) ?? [];
  }

  noting(rows: RowMethods<Tx>): RowMethods<Tx> {
    return {
      insert: (tx, ...given) => this.#note(tx, rows.insert(tx, ...given)),
      select: (tx, ...given) => this.#note(tx, rows.select(tx, ...given)),
      update: (tx, ...given) => this.#note(tx, rows.update(tx, ...given)),
      delete: (tx, ...given) => this.#note(tx, rows.delete(tx, ...given)),
    };
  }

  async #note<T>(tx: Tx | undefined, statement: Promise<T>): Promise<T> {
    try {
      return await statement;
    } catch (error) {
      if (tx !== undefined) this.#errors.get(tx as WeakKey)?.push(error);
      throw error;
    }
  }
}
