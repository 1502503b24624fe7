import { sql, type SQL } from "drizzle-orm";
import type { StoredTables } from "../adapter/stored-tables.ts";
import type { Action, StoredForeignKeys } from "../cascades.ts";
import type { Connection } from "../sql/connection.ts";
import type { Orm } from "./orm.ts";
import { quoted } from "./read-table.ts";

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
