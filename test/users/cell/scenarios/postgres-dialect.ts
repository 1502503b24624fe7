import { postgres } from "../../../../src/users/cell/postgres/index.ts";
import type { Dialect } from "./dialect.ts";
import { tables } from "./postgres-tables.ts";

export const postgresDialect: Dialect = {
  name: "postgres",
  tables,
  database: (orm) => postgres(orm as never, { fenceWaitMs: 300 }),
};
