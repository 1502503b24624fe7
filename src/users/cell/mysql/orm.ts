import type { MySqlDatabase, MySqlQueryResultHKT, PreparedQueryHKTBase } from "drizzle-orm/mysql-core";

export type Orm = MySqlDatabase<MySqlQueryResultHKT, PreparedQueryHKTBase>;
