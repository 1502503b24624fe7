import { sql } from "drizzle-orm";
import type { StoredTables } from "../adapter/stored-tables.ts";
import type { Action, StoredForeignKeys } from "../cascades.ts";
import type { Connection } from "../sql/connection.ts";
import type { Orm } from "./orm.ts";
import { databaseOf } from "./read-table.ts";

/** Reads the foreign keys of claimable tables from MySQL's information schema. */
export const mysqlForeignKeys =
  <Tx>(connection: Connection<Tx, Orm>, tables: StoredTables<Tx>): StoredForeignKeys =>
  async (child, parent) => {
    const [from, to] = [tables.nameOf(child), tables.nameOf(parent)];
    const parts = await connection
      .orm()
      .select({
        key: sql<string>`k.constraint_name`.as("key_name"),
        column: sql<string>`k.column_name`.as("name"),
        parentColumn: sql<string>`k.referenced_column_name`.as("parent_name"),
        onDelete: sql<string>`r.delete_rule`.as("on_delete"),
        onUpdate: sql<string>`r.update_rule`.as("on_update"),
      })
      .from(
        sql`information_schema.key_column_usage k JOIN information_schema.referential_constraints r
          ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name
          AND r.table_name = k.table_name`,
      )
      .where(
        sql`k.table_schema = ${databaseOf(from)} AND k.table_name = ${from.name}
          AND k.referenced_table_schema = ${databaseOf(to)} AND k.referenced_table_name = ${to.name}`,
      )
      .orderBy(sql`k.constraint_name`, sql`k.ordinal_position`);
    return [...new Set(parts.map(({ key }) => key))].map((key) => {
      const its = parts.filter((part) => part.key === key);
      const [columns, parentColumns] = [
        its.map(({ column }) => column),
        its.map(({ parentColumn }) => parentColumn),
      ];
      return {
        columns: tables.propertiesOf(child, columns),
        parentColumns: tables.propertiesOf(parent, parentColumns),
        onDelete: its[0]?.onDelete.toLowerCase() as Action | undefined,
        onUpdate: its[0]?.onUpdate.toLowerCase() as Action | undefined,
      };
    });
  };
