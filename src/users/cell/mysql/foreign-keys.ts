import { sql } from "drizzle-orm";
import type { StoredTables } from "../adapter/stored-tables.ts";
import type { Action, StoredForeignKeys } from "../cascades.ts";
import type { Claimable } from "../claimable.ts";
import type { Connection } from "../sql/connection.ts";
import type { Orm } from "./orm.ts";

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
