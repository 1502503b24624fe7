import { sql, type SQL, type Table } from "drizzle-orm";
import {
  customType,
  getTableConfig,
  mysqlSchema,
  mysqlTable,
  uniqueIndex,
  type MySqlColumn,
  type MySqlTable,
} from "drizzle-orm/mysql-core";
import type { StoredColumn, StoredName, StoredTables, TableReader } from "../adapter/stored-tables.ts";
import type { Action, StoredForeignKeys } from "../cascades.ts";
import type { Claimable } from "../claimable.ts";
import type { Connection, SqlTable } from "../sql/connection.ts";
import { keysOf, type StoredTraits } from "../sql/unique-keys.ts";
import type { Orm } from "./schema.ts";

/** The bytes in UTF-8, whatever the character set is, because collations would compare letters. */
export const bytes = (text: string | SQL): SQL => sql`CAST(CONVERT(${text} USING utf8mb4) AS BINARY)`;

/**
 * Whether a row of the information schema is about a table. The schema compares names without regard to case,
 * but most servers may have a table `A` beside `a`, also in a database `D` beside `d`.
 */
function isAbout({ schema, name }: StoredName): SQL {
  const database = schema === undefined ? sql`DATABASE()` : sql`${schema}`;
  const spelled = bytes(sql`CONCAT(table_schema, '.', table_name)`);
  return sql`table_schema = ${database} AND table_name = ${name} AND (@@lower_case_table_names <> 0
    OR ${spelled} = ${bytes(sql`CONCAT(${database}, '.', ${name})`)})`;
}

interface KeyPart {
  key: string;
  /** Null if it is an expression. */
  column: string | null;
}

/** Reads tables from MySQL's information schema, from the connection's database if they name no other. */
export const mysqlTableReader = <Tx>(connection: Connection<Tx, Orm>): TableReader<Tx> => ({
  read: async (tx, stored, propertiesOf) => {
    const its = isAbout(stored);
    const columns = await connection
      .orm(tx)
      .select({
        name: sql<string>`column_name`.as("name"),
        type: sql<string>`column_type`.mapWith(String).as("type"),
      })
      .from(sql`information_schema.columns`)
      .where(its)
      .orderBy(sql`ordinal_position`);
    if (columns.length === 0) return undefined;
    const parts = await connection
      .orm(tx)
      .select({
        key: sql<string>`index_name`.as("key_name"),
        column: sql<string | null>`column_name`.as("name"),
      })
      .from(sql`information_schema.statistics`)
      .where(sql`${its} AND non_unique = 0`)
      .orderBy(sql`index_name`, sql`seq_in_index`);
    return tableOf(stored, columns, parts, await propertiesOf(columns.map((column) => column.name)));
  },
});

function tableOf(
  { schema, name }: StoredName,
  columns: readonly StoredColumn[],
  parts: readonly KeyPart[],
  properties: readonly string[],
): Table {
  const declared = Object.fromEntries(columns.map((column, index) => [properties[index], asStored(column)]));
  const propertyOf = new Map(columns.map(({ name: column }, index) => [column, properties[index] ?? column]));
  const keys = new Map<string, string[]>();
  // The columns of an expression are not known, and without them the others would be taken for the whole key.
  const withExpressions = new Set(parts.flatMap(({ key, column }) => (column === null ? [key] : [])));
  for (const { key, column } of parts)
    if (column !== null && !withExpressions.has(key))
      keys.set(key, [...(keys.get(key) ?? []), propertyOf.get(column) ?? column]);
  const indexes = (table: Record<string, MySqlColumn>) =>
    [...keys].flatMap(([key, its]) => {
      const [first, ...others] = its.flatMap((each) => table[each] ?? []);
      return first === undefined ? [] : [uniqueIndex(key).on(first, ...others)];
    });
  return schema === undefined
    ? mysqlTable(name, declared, indexes)
    : mysqlSchema(schema).table(name, declared, indexes);
}

/** A column whose values are those of the driver. */
const asStored = ({ name, type }: StoredColumn) =>
  customType<{ data: unknown }>({ dataType: () => type })(name);

/** Reads the engine and the unique keys of a table from MySQL's information schema. A view has no engine. */
export async function storedTraits(orm: Orm, { table }: SqlTable): Promise<StoredTraits | undefined> {
  const { schema, name } = getTableConfig(table as MySqlTable);
  const its = isAbout({ schema, name });
  const [stored] = await orm
    .select({
      engine: sql<string | null>`t.engine`.as("table_engine"),
      hasTransactions: sql<number>`e.transactions = 'YES'`.mapWith(Number).as("has_transactions"),
    })
    .from(
      sql`(SELECT engine FROM information_schema.tables WHERE ${its}) t
        LEFT JOIN information_schema.engines e ON e.engine = t.engine`,
    );
  if (stored === undefined) return undefined;
  const keyParts = await orm
    .select({
      key: sql<string>`index_name`.as("name_of_key"),
      column: sql<string | null>`column_name`.as("name_of_column"),
    })
    .from(sql`information_schema.statistics`)
    .where(sql`${its} AND non_unique = 0`);
  const columns = await orm
    .select({
      name: sql<string>`column_name`.as("name_of_column"),
      type: sql<string>`column_type`.as("type_of_column"),
    })
    .from(sql`information_schema.columns`)
    .where(
      sql`${its} AND (data_type REGEXP 'binary|blob'
        OR data_type = 'char' AND @@sql_mode LIKE '%PAD_CHAR_TO_FULL_LENGTH%')`,
    );
  return {
    isTable: stored.engine !== null,
    uniqueKeys: keysOf(keyParts),
    hasDeferrableKey: false,
    hasPolicies: false,
    engineWithoutTransactions: stored.hasTransactions === 1 ? undefined : (stored.engine ?? undefined),
    columnsOfBytes: columns.filter(hasBytes),
    paddedColumns: columns.filter((column) => !hasBytes(column)),
  };
}

const hasBytes = ({ type }: StoredColumn): boolean => /binary|blob/.test(type);

/** How the connection finds tables by their names. */
interface Names {
  /** The database of tables that name none. */
  current: string;
  /** 0 unless `A` and `a` are the same table, as `lower_case_table_names` says. */
  ignoresCase: number;
}

/** Reads the foreign keys of claimable tables from MySQL's information schema. */
export const mysqlForeignKeys =
  <Tx>(connection: Connection<Tx, Orm>, tables: StoredTables<Tx>): StoredForeignKeys =>
  async (claimables) => {
    const names = sql.join(
      claimables.map((claimable) => sql`${tables.nameOf(claimable).name}`),
      sql`, `,
    );
    const parts = await connection
      .orm()
      .select({
        current: sql<string>`DATABASE()`.as("current_database"),
        ignoresCase: sql<number>`@@lower_case_table_names <> 0`.mapWith(Number).as("ignores_case"),
        schema: sql<string>`k.table_schema`.as("child_schema"),
        table: sql<string>`k.table_name`.as("child_table"),
        parentSchema: sql<string>`k.referenced_table_schema`.as("parent_schema"),
        parentTable: sql<string>`k.referenced_table_name`.as("parent_table"),
        key: sql<string>`k.constraint_name`.as("key_name"),
        column: sql<string>`k.column_name`.as("child_column"),
        parentColumn: sql<string>`k.referenced_column_name`.as("parent_column"),
        onDelete: sql<string>`r.delete_rule`.as("on_delete"),
        onUpdate: sql<string>`r.update_rule`.as("on_update"),
      })
      .from(
        sql`information_schema.key_column_usage k JOIN information_schema.referential_constraints r
          ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name
          AND r.table_name = k.table_name`,
      )
      .where(sql`k.table_name IN (${names}) AND k.referenced_table_name IN (${names})`)
      .orderBy(sql`k.constraint_name`, sql`k.ordinal_position`);
    const find = (schema: string, name: string, { current, ignoresCase }: Names): Claimable | undefined => {
      const spelled = (given: string): string => (ignoresCase === 0 ? given : given.toLowerCase());
      return claimables.find((claimable) => {
        const its = tables.nameOf(claimable);
        return spelled(its.name) === spelled(name) && spelled(its.schema ?? current) === spelled(schema);
      });
    };
    const keys = new Map<string, typeof parts>();
    for (const part of parts) {
      const key = JSON.stringify([part.schema, part.table, part.key]);
      keys.set(key, [...(keys.get(key) ?? []), part]);
    }
    const found = [...keys.values()].map(async (its) => {
      const [first] = its;
      if (first === undefined) return [];
      const child = find(first.schema, first.table, first);
      const parent = find(first.parentSchema, first.parentTable, first);
      if (child === undefined || parent === undefined) return [];
      return {
        child,
        parent,
        columns: await tables.propertiesOf(
          child,
          its.map(({ column }) => column),
        ),
        parentColumns: await tables.propertiesOf(
          parent,
          its.map(({ parentColumn }) => parentColumn),
        ),
        onDelete: first.onDelete.toLowerCase() as Action,
        onUpdate: first.onUpdate.toLowerCase() as Action,
      };
    });
    return (await Promise.all(found)).flat();
  };
