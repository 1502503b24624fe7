import { causesOf } from "../causes.ts";
import type { Claimable } from "../claimable.ts";
import type { FailedWrite } from "../local.ts";
import type { RowMethods } from "./connection.ts";

/** Remembers the errors of the cell's own statements about rows, by transaction, and what they wrote. */
export class StatementErrors<Tx> {
  readonly #errors = new WeakMap<WeakKey, unknown[]>();
  readonly #writes = new WeakMap<WeakKey, FailedWrite>();

  /** Forgets those of an earlier transaction. Some drivers use the same object for each on a connection. */
  begin(tx: Tx): void {
    this.#errors.set(tx as WeakKey, []);
  }

  of(tx: Tx): readonly unknown[] {
    return this.#errors.get(tx as WeakKey) ?? [];
  }

  writeOf(error: unknown): FailedWrite | undefined {
    return [...causesOf(error)].map((cause) => this.#writes.get(cause)).find(Boolean);
  }

  noting(rows: RowMethods<Tx>): RowMethods<Tx> {
    return {
      insert: (tx, claimable, given, options) => {
        const ids = given.map((row) => row[claimable.idName]);
        return this.#note(tx, rows.insert(tx, claimable, given, options), writeTo(claimable, ids));
      },
      select: (tx, ...given) => this.#note(tx, rows.select(tx, ...given)),
      update: (tx, claimable, ids, set) =>
        this.#note(tx, rows.update(tx, claimable, ids, set), writeTo(claimable, ids)),
      delete: (tx, ...given) => this.#note(tx, rows.delete(tx, ...given)),
    };
  }

  async #note<T>(tx: Tx | undefined, statement: Promise<T>, write?: FailedWrite): Promise<T> {
    try {
      return await statement;
    } catch (error) {
      if (tx !== undefined) this.#errors.get(tx as WeakKey)?.push(error);
      if (write !== undefined && error instanceof Error) this.#writes.set(error, write);
      throw error;
    }
  }
}

const writeTo = (claimable: Claimable, ids: readonly unknown[]): FailedWrite => ({
  claimable,
  id: ids.length === 1 ? ids[0] : undefined,
});
