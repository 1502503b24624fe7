import { DrizzleQueryError } from "drizzle-orm";
import { noteBegin, requireOpen } from "../run-transaction.ts";
import { asItIs, type Connection, type DescribeError, type TransactionConfig } from "../sql/connection.ts";
import type { SqlAdapter, SqlResult } from "./port.ts";

/**
 * Makes every statement of a drizzle database reject with the error of the driver, not with that of drizzle
 * around it, because the application may not know drizzle. It wraps drizzle's builders: each call on one
 * answers another, and a statement is sent by `then`.
 */
const withDriverErrors = <T extends object>(builder: T): T =>
  new Proxy(builder, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...given: unknown[]): unknown => {
        // Native promises wait for the statement by a call of `then`, whose error they pass on.
        if (name === "then") return unwrapped(Promise.resolve(target)).then(...(given as []));
        const made: unknown = member.apply(target, given);
        return typeof made === "object" && made !== null ? withDriverErrors(made) : made;
      };
    },
  });

const unwrapped = (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: unknown) => {
    throw error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  });

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
