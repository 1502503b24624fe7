import type { NodePgDatabase } from "drizzle-orm/node-postgres";

export type Orm = NodePgDatabase;
export type Tx = Parameters<Parameters<Orm["transaction"]>[0]>[0];
