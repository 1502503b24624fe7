import type { MySqlTable } from "drizzle-orm/mysql-core";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import { isDuplicateKey } from "./failure.ts";
import type { Orm } from "./orm.ts";

type AnyRow = Readonly<Record<string, unknown>>;

/**
 * Inserts rows and answers their ids, because MySQL cannot return rows. It returns only the first generated
 * id of a statement. Whether the others follow it depends on the server (innodb_autoinc_lock_mode,
 * auto_increment_increment), so each row without an id gets its own statement. Rows with an id, also from
 * drizzle's `$defaultFn`, share one.
 */
export class Insert {
  readonly #orm: Orm;
  readonly #claimable: Claimable;
  readonly #skipExisting: boolean;

  constructor(orm: Orm, claimable: Claimable, { skipExisting = false }: { skipExisting?: boolean } = {}) {
    this.#orm = orm;
    this.#claimable = claimable;
    this.#skipExisting = skipExisting;
  }

  async run(given: readonly AnyRow[]): Promise<unknown[]> {
    const { idName, idColumn } = this.#claimable;
    // Generated here, because drizzle would not return the id.
    const rows = given.map((row) => (this.#hasId(row) ? row : { ...row, [idName]: idColumn.defaultFn?.() }));
    if (rows.every((row) => this.#hasId(row))) return this.#statement(rows);
    const ids: unknown[] = [];
    for (const row of rows) ids.push(...(await this.#statement([row])));
    return ids;
  }

  /**
   * INSERT IGNORE would swallow other errors too, and ON DUPLICATE KEY UPDATE does not show which rows are
   * new. A duplicate key undoes only its statement, so the statement is split in halves until the duplicates
   * are alone.
   */
  async #statement(rows: readonly AnyRow[]): Promise<unknown[]> {
    try {
      const [header] = (await this.#orm
        .insert(this.#claimable.table as MySqlTable)
        .values(rows as Record<string, never>[])) as [InsertHeader];
      return rows.map((row) => (this.#hasId(row) ? row[this.#claimable.idName] : this.#madeId(header)));
    } catch (error) {
      if (!this.#skipExisting || !isDuplicateKey(error)) throw error;
    }
    if (rows.length === 1) return [];
    const middle = Math.ceil(rows.length / 2);
    return [
      ...(await this.#statement(rows.slice(0, middle))),
      ...(await this.#statement(rows.slice(middle))),
    ];
  }

  #hasId(row: AnyRow): boolean {
    return row[this.#claimable.idName] !== undefined && row[this.#claimable.idName] !== null;
  }

  /** mysql2 answers a string if a number would not be exact. */
  #madeId({ insertId }: InsertHeader): number | bigint {
    const { name, idName } = this.#claimable;
    if (Number(insertId) === 0)
      throw invalidArgument(
        idName,
        `of ${name} is not made by AUTO_INCREMENT, and MySQL returns no other default: give the row an id`,
      );
    return typeof insertId === "string" ? BigInt(insertId) : insertId;
  }
}

interface InsertHeader {
  insertId: number | string;
}
