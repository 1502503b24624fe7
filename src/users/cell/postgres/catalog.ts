import { sql, type SQL, type Table } from "drizzle-orm";
import { customType, getTableConfig, PgSchema, pgTable, type PgTable } from "drizzle-orm/pg-core";
import type { StoredColumn, StoredName, StoredTables, TableReader } from "../adapter/stored-tables.ts";
import type { Action, StoredForeignKeys } from "../cascades.ts";
import type { Connection, SqlTable } from "../sql/connection.ts";
import { keysOf, type StoredTraits } from "../sql/unique-keys.ts";
import type { Orm } from "./schema.ts";

/** Reads tables from PostgreSQL's catalog, by the search path if they have no schema. */
export const postgresTableReader = <Tx>(connection: Connection<Tx, Orm>): TableReader<Tx> => ({
  read: async (tx, name, propertiesOf) => {
    const columns = await connection
      .orm(tx)
      .select({
        name: sql<string>`attname::text`.as("name"),
        type: sql<string>`format_type(atttypid, atttypmod)`.as("type"),
      })
      .from(sql`pg_attribute`)
      .where(sql`attrelid = to_regclass(${quoted(name)}) AND attnum > 0 AND NOT attisdropped`)
      .orderBy(sql`attnum`);
    if (columns.length === 0) return undefined;
    return tableOf(name, columns, await propertiesOf(columns.map((column) => column.name)));
  },
});

/** An SQL name in quotes. */
export const quoted = ({ schema, name }: StoredName): string =>
  [schema, name]
    .filter((part) => part !== undefined)
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join(".");

function tableOf(
  { schema, name }: StoredName,
  columns: readonly StoredColumn[],
  properties: readonly string[],
): Table {
  const declared = Object.fromEntries(columns.map((column, index) => [properties[index], asStored(column)]));
  // Unlike this class, the function `pgSchema` refuses the schema `public`.
  return schema === undefined ? pgTable(name, declared) : new PgSchema(schema).table(name, declared);
}

/** A column whose values are those of the driver. */
const asStored = ({ name, type }: StoredColumn) =>
  customType<{ data: unknown }>({ dataType: () => type })(name);

/** Reads the columns and expressions of a unique key from PostgreSQL's catalog. */
export async function storedKeyParts(orm: Orm, { table }: SqlTable, key: string): Promise<string[]> {
  const { schema, name } = getTableConfig(table as PgTable);
  const parts = await orm
    .select({ part: sql<string>`pg_get_indexdef(indexrelid, place, true)`.as("part") })
    .from(sql`pg_index JOIN pg_class ON oid = indexrelid, generate_series(1, indnkeyatts) AS place`)
    .where(sql`indrelid = to_regclass(${quoted({ schema, name })}) AND relname = ${key}`)
    .orderBy(sql`place`);
  return parts.map(({ part }) => part);
}

/**
 * Reads what only PostgreSQL's catalog knows about a table. A key of a table from which others inherit says
 * nothing about their rows.
 */
export async function storedTraits(orm: Orm, { table }: SqlTable): Promise<StoredTraits | undefined> {
  const { schema, name } = getTableConfig(table as PgTable);
  const relation = sql`to_regclass(${quoted({ schema, name })})`;
  const [traits] = await orm
    .select({
      isTable: sql<boolean>`relkind IN ('r', 'p')`.as("is_table"),
      hasPolicies: sql<boolean>`relrowsecurity`.as("has_policies"),
    })
    .from(sql`pg_class`)
    .where(sql`oid = ${relation}`);
  if (traits === undefined) return undefined;
  const keyParts = await orm
    .select({
      key: sql<string>`indexrelid::text`.as("key"),
      column: sql<string>`attname::text`.as("name"),
      isDeferrable: sql<boolean>`NOT indimmediate`.as("is_deferrable"),
    })
    .from(
      sql`pg_index JOIN pg_attribute
        ON attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])`,
    )
    .where(
      sql`indrelid = ${relation} AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL
        AND NOT EXISTS (SELECT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhparent
          WHERE inhparent = indrelid AND relkind = 'r')`,
    );
  const type = sql<string>`CASE typtype WHEN 'd' THEN format_type(typbasetype, typtypmod)
    ELSE format_type(atttypid, atttypmod) END`;
  const columns = await orm
    .select({ name: sql<string>`attname::text`.as("name"), type: type.as("type") })
    .from(sql`pg_attribute JOIN pg_type ON pg_type.oid = atttypid`)
    .where(sql`attrelid = ${relation} AND attnum > 0 AND (${type} LIKE 'character(%' OR ${type} = 'bytea')`);
  return {
    ...traits,
    uniqueKeys: keysOf(keyParts),
    hasDeferrableKey: keyParts.some(({ isDeferrable }) => isDeferrable),
    columnsOfBytes: columns.filter(hasBytes),
    paddedColumns: columns.filter((column) => !hasBytes(column)),
  };
}

const hasBytes = ({ type }: StoredColumn): boolean => type === "bytea";

/** The letters of `pg_constraint`. */
const actions: Readonly<Record<string, Action>> = {
  a: "no action",
  r: "restrict",
  c: "cascade",
  n: "set null",
  d: "set default",
};

const columnNames = (relation: SQL, numbers: SQL): SQL<string> =>
  sql<string>`(SELECT json_agg(attname ORDER BY place)::text
    FROM unnest(${numbers}) WITH ORDINALITY AS key (number, place)
    JOIN pg_attribute ON attrelid = ${relation} AND attnum = key.number)`;

/** Reads the foreign keys of claimable tables from PostgreSQL's catalog. */
export const postgresForeignKeys =
  <Tx>(connection: Connection<Tx, Orm>, tables: StoredTables<Tx>): StoredForeignKeys =>
  async (claimables) => {
    const relations = sql.join(
      claimables.map(
        (each, place) => sql`(${sql.raw(String(place))}, to_regclass(${quoted(tables.nameOf(each))}))`,
      ),
      sql`, `,
    );
    const found = await connection
      .orm()
      .select({
        child: sql<number>`child.place`.as("child"),
        parent: sql<number>`parent.place`.as("parent"),
        columns: columnNames(sql`conrelid`, sql`conkey`).as("columns"),
        parentColumns: columnNames(sql`confrelid`, sql`confkey`).as("parent_columns"),
        onDelete: sql<string>`confdeltype::text`.as("on_delete"),
        onUpdate: sql<string>`confupdtype::text`.as("on_update"),
      })
      .from(
        sql`pg_constraint
          JOIN (VALUES ${relations}) AS child (place, relation) ON child.relation = conrelid
          JOIN (VALUES ${relations}) AS parent (place, relation) ON parent.relation = confrelid`,
      )
      .where(sql`contype = 'f'`);
    const keys = found.map(async (key) => {
      const [child, parent] = [claimables[key.child], claimables[key.parent]];
      if (child === undefined || parent === undefined) return [];
      return {
        child,
        parent,
        columns: await tables.propertiesOf(child, JSON.parse(key.columns) as string[]),
        parentColumns: await tables.propertiesOf(parent, JSON.parse(key.parentColumns) as string[]),
        onDelete: actions[key.onDelete],
        onUpdate: actions[key.onUpdate],
      };
    });
    return (await Promise.all(keys)).flat();
  };
