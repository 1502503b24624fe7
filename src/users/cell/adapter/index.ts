/** For authors of adapters: the port, and the databases that are made from it. */
export { condition, table, type ColumnValues, type Condition, type PlainTable } from "./condition.ts";
export { mysqlDatabase } from "./mysql.ts";
export type { AdapterNames, SqlAdapter, SqlResult } from "./port.ts";
export { postgresDatabase } from "./postgres.ts";
export type { MysqlDatabaseOptions } from "../mysql/database.ts";
export type { PostgresDatabaseOptions } from "../postgres/database.ts";
export type { RowMethods, SelectOptions, TransactionConfig } from "../sql/connection.ts";
export { NamedTable } from "../table.ts";
