import type {
  MySqlDatabase,
  MySqlQueryResultHKT,
  MySqlTable,
  PreparedQueryHKTBase,
} from "drizzle-orm/mysql-core";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import { isDuplicateKey } from "./failure.ts";

type AnyRow = Readonly<Record<string, unknown>>;
export type Orm = MySqlDatabase<MySqlQueryResultHKT, PreparedQueryHKTBase>;

/**
 * Inserts rows, and answers their ids: MySQL cannot answer rows. It tells one id that it made, the first of a statement's, and whether those of the
 * other rows follow it depends on settings of the server (innodb_autoinc_lock_mode, auto_increment_increment): rows without an id get a statement
 * each. Rows with one, also by drizzle's `$defaultFn`, share theirs.
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
    // Made here instead of by drizzle, which would not tell.
    const rows = given.map((row) => (this.#hasId(row) ? row : { ...row, [idName]: idColumn.defaultFn?.() }));
    if (rows.every((row) => this.#hasId(row))) return this.#statement(rows);
    const ids: unknown[] = [];
    for (const row of rows) ids.push(...(await this.#statement([row])));
    return ids;
  }

  /**
   * INSERT IGNORE would swallow other errors too, and after ON DUPLICATE KEY UPDATE nobody can tell which rows are new. A duplicate undoes its statement
   * and nothing else of the transaction, so the half without it is inserted, and the half with it is halved again.
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

  /** A string where a number would not be exact. */
  #madeId({ insertId }: InsertHeader): number | bigint {
    const { name, idName } = this.#claimable;
    if (Number(insertId) === 0)
      throw invalidArgument(
        idName,
        `of ${name} is made by the database, and not by AUTO_INCREMENT: MySQL does not tell it. Give the row an id`,
      );
    return typeof insertId === "string" ? BigInt(insertId) : insertId;
  }
}

interface InsertHeader {
  insertId: number | string;
}
