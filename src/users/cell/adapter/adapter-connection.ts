import { noteBegin, requireOpen } from "../run-transaction.ts";
import type { Connection, TransactionConfig } from "../sql/connection.ts";
import { asItIs, type DescribeError } from "../sql/describe-error.ts";
import { withDriverErrors } from "./driver-errors.ts";
import type { SqlAdapter, SqlResult } from "./port.ts";

type Send = (statement: string, parameters: readonly unknown[]) => Promise<SqlResult>;

interface ConnectionParts<Orm extends object> {
  /** Makes drizzle's interface over a function that sends statements. */
  ormOf: (send: Send) => Orm;
  /** Whether an error says that a table or a column does not exist. */
  isMissing: (error: unknown, describe: DescribeError) => boolean;
  onMissing: () => void;
}

/** Sends drizzle's statements with an adapter. */
export class AdapterConnection<Tx, Orm extends object> implements Connection<Tx, Orm> {
  readonly describeError: DescribeError;
  readonly #adapter: SqlAdapter<Tx>;
  readonly #parts: ConnectionParts<Orm>;
  readonly #outside: Orm;

  constructor(adapter: SqlAdapter<Tx>, parts: ConnectionParts<Orm>) {
    this.describeError = adapter.describeError ?? asItIs;
    this.#adapter = adapter;
    this.#parts = parts;
    this.#outside = this.#ormIn(undefined);
  }

  orm(tx?: Tx): Orm {
    requireOpen(tx);
    return tx === undefined ? this.#outside : this.#ormIn(tx);
  }

  transaction<T>(body: (tx: Tx) => Promise<T>, config?: TransactionConfig): Promise<T> {
    return this.#adapter.transaction((tx) => {
      noteBegin(tx);
      return body(tx);
    }, config);
  }

  #ormIn(tx: Tx | undefined): Orm {
    const orm = this.#parts.ormOf(async (statement, parameters) => {
      try {
        return await this.#adapter.query(tx, statement, parameters);
      } catch (error) {
        if (this.#parts.isMissing(error, this.describeError)) this.#parts.onMissing();
        throw error;
      }
    });
    return withDriverErrors(orm);
  }
}
