import {
  sql,
  TableNode,
  type AliasedExpression,
  type Expression,
  type ExpressionBuilder,
  type Kysely,
  type QueryResult,
  type SqlBool,
  type Transaction,
} from "kysely";
import { columnValuesOf } from "../adapter/condition.ts";
import type { AdapterNames } from "../adapter/port.ts";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { Selection } from "../local.ts";
import { inOrderOfIds, insertRows, type InsertHeader } from "../mysql/rows.ts";
import { oidOfRow, TABLE_OID } from "../postgres/claimable-tables.ts";
import type { RowMethods, SelectOptions } from "../sql/connection.ts";
import type { AnyRow } from "../table.ts";

/** Stands for the `Database` interface of the application, where the table is only known at run time. */
type AnyTables = Record<string, Record<string, unknown>>;

const withAnyTables = <DB>(db: Kysely<DB>): Kysely<AnyTables> => db as unknown as Kysely<AnyTables>;

/**
 * The names that Kysely's plugins make, such as those of CamelCasePlugin. Asks the plugins themselves, with a
 * query that is compiled and a result that is made up.
 */
export function kyselyNames<DB>(db: Kysely<DB>): AdapterNames {
  const compiled = (table: string) => withAnyTables(db).selectFrom(table).selectAll().compile();
  return {
    table: (table) => {
      const { query } = compiled(table);
      const from = query.kind === "SelectQueryNode" ? query.from?.froms[0] : undefined;
      if (from === undefined || !TableNode.is(from))
        throw invalidArgument("tables", `has ${table}, which Kysely does not read as one table`);
      const { schema, identifier } = from.table;
      return schema === undefined ? identifier.name : `${schema.name}.${identifier.name}`;
    },
    property: async (table, column) => {
      const { queryId } = compiled(table);
      let result: QueryResult<Record<string, unknown>> = { rows: [{ [column]: null }] };
      for (const plugin of db.getExecutor().plugins)
        result = await plugin.transformResult({ queryId, result });
      return Object.keys(result.rows[0] ?? {})[0] ?? column;
    },
  };
}

type Builder = ExpressionBuilder<AnyTables, string>;
type Factory = (eb: Builder) => Expression<SqlBool>;

/** Answers a condition in the form of Kysely. Undefined matches all rows. */
function conditionOf(where: unknown): Factory | undefined {
  if (where === undefined) return undefined;
  if (isExpression(where)) return () => where;
  if (typeof where === "function")
    return (eb) => {
      const expression: unknown = (where as (eb: Builder) => unknown)(eb);
      if (isExpression(expression)) return expression;
      throw invalidArgument("where", "must return an expression of Kysely");
    };
  const columns = columnValuesOf(where, "an expression of Kysely, a function that returns one");
  return (eb) => eb.and(columns.map(([name, value]) => columnMatches(eb, name, value)));
}

function columnMatches(eb: Builder, name: string, value: unknown): Expression<SqlBool> {
  if (value === null) return eb(name, "is", null);
  if (!Array.isArray(value)) return eb(name, "=", value);
  const values = value.filter((each) => each !== null);
  const isOneOf = values.length === 0 ? eb.lit(false) : eb(name, "in", values);
  return value.includes(null) ? eb.or([isOneOf, eb(name, "is", null)]) : isOneOf;
}

const isExpression = (value: unknown): value is Expression<SqlBool> =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as { toOperationNode?: unknown }).toOperationNode === "function";

interface InsertOptions {
  skipExisting: boolean;
}

/** Rows of claimable tables, written and read with Kysely's builders, so that its plugins apply. */
abstract class KyselyRows<DB> implements RowMethods<Transaction<DB>> {
  readonly #db: Kysely<DB>;

  constructor(db: Kysely<DB>) {
    this.#db = db;
  }

  abstract insert(
    tx: Transaction<DB>,
    claimable: Claimable,
    rows: readonly AnyRow[],
    options: InsertOptions,
  ): Promise<AnyRow[]>;

  /** What to select besides the columns of a table, which tells what table it is. */
  protected identity(_table: string): AliasedExpression<unknown, string>[] {
    return [];
  }

  abstract update(
    tx: Transaction<DB>,
    claimable: Claimable,
    ids: readonly unknown[],
    set: AnyRow,
  ): Promise<AnyRow[]>;

  /** Locks in the order of ids, so that two transactions over the same rows don't deadlock. */
  async select(
    tx: Transaction<DB> | undefined,
    claimable: Claimable,
    selection: Selection,
    { limit, isLocking }: SelectOptions,
  ): Promise<AnyRow[]> {
    const { name, idName } = claimable;
    // Kysely would write `in ()`.
    if ("ids" in selection && selection.ids.length === 0) return [];
    const rows = withAnyTables(tx ?? this.#db)
      .selectFrom(name)
      .selectAll()
      .select(this.identity(name))
      .orderBy(idName);
    const condition = "ids" in selection ? undefined : conditionOf(selection.where);
    const matching =
      "ids" in selection
        ? rows.where(idName, "in", selection.ids)
        : condition === undefined
          ? rows
          : rows.where(condition);
    const limited = limit === undefined ? matching : matching.limit(limit);
    return (isLocking ? limited.forUpdate() : limited).execute();
  }

  async delete(tx: Transaction<DB>, { name, idName }: Claimable, ids: readonly unknown[]): Promise<number> {
    const { numDeletedRows } = await withAnyTables(tx)
      .deleteFrom(name)
      .where(idName, "in", ids)
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}

export class KyselyPostgresRows<DB> extends KyselyRows<DB> {
  readonly #names: AdapterNames;

  constructor(db: Kysely<DB>) {
    super(db);
    this.#names = kyselyNames(db);
  }

  protected override identity(table: string): AliasedExpression<unknown, string>[] {
    const name = this.#names.table(table);
    if (name.includes(".")) return [];
    return [sql.raw(oidOfRow({ schema: undefined, name })).as(TABLE_OID)];
  }

  async insert(
    tx: Transaction<DB>,
    claimable: Claimable,
    rows: readonly AnyRow[],
    { skipExisting }: InsertOptions,
  ): Promise<AnyRow[]> {
    const { name, idName } = claimable;
    // Kysely would write `() values ()`, which only MySQL understands.
    const isEmpty = rows.every((row) => Object.values(row).every((value) => value === undefined));
    const values = isEmpty ? rows.map(() => ({ [idName]: sql`default` })) : rows;
    const insert = withAnyTables(tx)
      .insertInto(name)
      .values(values)
      .returningAll()
      .returning(this.identity(name));
    const skipping = insert.onConflict((conflict) => conflict.doNothing());
    return (skipExisting ? skipping : insert).execute();
  }

  async update(
    tx: Transaction<DB>,
    claimable: Claimable,
    ids: readonly unknown[],
    set: AnyRow,
  ): Promise<AnyRow[]> {
    const { name, idName } = claimable;
    const update = withAnyTables(tx).updateTable(name).set(set).where(idName, "in", ids).returningAll();
    return update.returning(this.identity(name)).execute();
  }
}

export class KyselyMysqlRows<DB> extends KyselyRows<DB> {
  async insert(tx: Transaction<DB>, claimable: Claimable, rows: readonly AnyRow[]): Promise<AnyRow[]> {
    const statement = async (chunk: readonly AnyRow[]): Promise<InsertHeader> => {
      const insert = withAnyTables(tx).insertInto(claimable.name).values(chunk);
      const { insertId = 0n } = await insert.executeTakeFirstOrThrow();
      return { insertId };
    };
    const ids = await insertRows(claimable, rows, statement);
    const stored = await this.select(tx, claimable, { ids }, { isLocking: true });
    return inOrderOfIds(claimable, stored, ids);
  }

  async update(
    tx: Transaction<DB>,
    claimable: Claimable,
    ids: readonly unknown[],
    set: AnyRow,
  ): Promise<AnyRow[]> {
    const { name, idName } = claimable;
    await withAnyTables(tx).updateTable(name).set(set).where(idName, "in", ids).execute();
    return this.select(tx, claimable, { ids }, { isLocking: true });
  }
}
