import type { TypesDocument } from "../../common/types/document.ts";
import type { Types } from "../../common/types/types.ts";
import type { Claimable } from "./claimable.ts";
import { declaredTypes } from "./declared-types.ts";
import { invalidArgument } from "./errors.ts";
import { declaredColumns, fullName, tableName, type AnyTable } from "./table.ts";

/** The claimable tables of a cell. */
export class ClaimableTables {
  readonly all: readonly Claimable[];
  readonly types: Types;
  readonly #byTable = new Map<unknown, Claimable>();

  /** @param types the contents of `leasehold.types.json` */
  constructor(all: readonly Claimable[], types?: TypesDocument) {
    this.all = all;
    this.types = declaredTypes(types, all);
    const bySource = new Map<string, Claimable>();
    const names = new Set<string>();
    for (const claimable of all) {
      const other = bySource.get(claimable.source);
      // The coordinator identifies a row by its source type and id, so two tables must not share a type.
      if (other !== undefined)
        throw invalidArgument(
          "tables",
          `has ${claimable.source} twice, for ${other.name} and ${claimable.name}: ` +
            "give each table its own `source`",
        );
      // A write with one of them would not claim the names of the other.
      const name = fullName(claimable.table);
      if (names.has(name))
        throw invalidArgument(
          "tables",
          `has ${claimable.name} twice: name all its columns in one claimable()`,
        );
      names.add(name);
      bySource.set(claimable.source, claimable);
      this.#byTable.set(keyOf(claimable.table), claimable);
    }
  }

  of<T extends AnyTable>(table: T): Claimable<T> {
    const found = this.#byTable.get(keyOf(table));
    if (found === undefined)
      throw invalidArgument(
        "table",
        `${tableName(table)} is not among the cell's tables: ` +
          "declare it with claimable(), or write it with tx.db",
      );
    return found as Claimable<T>;
  }
}

/** Two named tables with the same name are the same table. */
const keyOf = (table: AnyTable): unknown => (declaredColumns(table) === undefined ? tableName(table) : table);
