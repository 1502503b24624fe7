import { getTableName, type Table } from "drizzle-orm";
import type { Claimable } from "./claimable.ts";
import { invalidArgument } from "./errors.ts";

/** The claimable tables of a cell. */
export class ClaimableTables {
  readonly all: readonly Claimable[];
  readonly #byTable = new Map<Table, Claimable>();

  constructor(all: readonly Claimable[]) {
    this.all = all;
    const bySource = new Map<string, Claimable>();
    for (const claimable of all) {
      const other = bySource.get(claimable.source);
      // The coordinator identifies a row by its source type and id, so two tables must not share a type.
      if (other !== undefined)
        throw invalidArgument(
          "tables",
          `has ${claimable.source} twice, for ${other.name} and ${claimable.name}: ` +
            "give each table its own `source`",
        );
      bySource.set(claimable.source, claimable);
      this.#byTable.set(claimable.table, claimable);
    }
  }

  of<T extends Table>(table: T): Claimable<T> {
    const found = this.#byTable.get(table);
    if (found === undefined)
      throw invalidArgument(
        "table",
        `${getTableName(table)} is not among the cell's tables: ` +
          "declare it with claimable(), or write it with tx.db",
      );
    return found as Claimable<T>;
  }
}
