import type { DescribeError, RowMethods, TransactionConfig } from "../sql/connection.ts";

export interface SqlResult {
  /** Objects or arrays, with the values in the order of the selected columns. */
  rows: readonly object[];
  /** MySQL only: the rows that the statement found, also those that it left unchanged. */
  affectedRows?: number | undefined;
  /** MySQL only: the first generated id, or 0. */
  insertId?: number | bigint | string | undefined;
}

/**
 * A database driver or ORM, as a cell uses it. Two methods are enough. The rest is for ORMs that rename
 * tables and columns, wrap errors, or fill in values at an insert.
 *
 * `Tx` is what the application uses inside a transaction, as `tx.db`.
 */
export interface SqlAdapter<Tx> {
  /**
   * Runs `body` between BEGIN and COMMIT, on a connection that no one else uses meanwhile. Answers its value
   * once COMMIT has succeeded. If `body` throws, it rolls back and throws the same error. An error of COMMIT
   * is thrown as the driver gave it, because it decides whether the outcome is known.
   */
  transaction<T>(body: (tx: Tx) => Promise<T>, config?: TransactionConfig): Promise<T>;
  /**
   * Runs one statement with bound parameters: `$1`, `$2`, ... on PostgreSQL, and `?` on MySQL. Without `tx`
   * it is a transaction by itself, on the primary. JSON parameters are text.
   */
  query(tx: Tx | undefined, statement: string, parameters: readonly unknown[]): Promise<SqlResult>;
  /**
   * Answers an error as an object with the properties of node-postgres (`code`, `severity`, `message`,
   * `table`, `constraint`, `detail`) or mysql2 (`errno`, `sqlState`, `message`). By default, the error
   * itself. It is called for each error in a chain of causes.
   */
  describeError?: DescribeError | undefined;
  /** Writes and reads rows with the ORM's own statements. By default, Leasehold writes these statements. */
  rows?: RowMethods<Tx> | undefined;
  /** How the adapter's names differ from those in the database. By default, they are the same. */
  names?: AdapterNames | undefined;
}

export interface AdapterNames {
  /** The name of a table in the database, with its schema if it has one: `people` or `crm.people`. */
  table(name: string): string;
  /** The name in rows of a column of the database. */
  property(table: string, column: string): string | Promise<string>;
}
