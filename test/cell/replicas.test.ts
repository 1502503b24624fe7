import { drizzle as drizzleMysql2 } from "drizzle-orm/mysql2";
import { withReplicas as withMysqlReplicas } from "drizzle-orm/mysql-core";
import { drizzle as drizzleNodePostgres } from "drizzle-orm/node-postgres";
import { withReplicas } from "drizzle-orm/pg-core";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { expect, test } from "vitest";
import { mysql } from "../../src/cell/mysql/index.ts";
import { postgres } from "../../src/cell/postgres/index.ts";

test("a drizzle database that reads from replicas is refused, and its primary is not", async () => {
  const pool = new Pool();
  const db = drizzleNodePostgres(pool);
  const both = withReplicas(db, [drizzleNodePostgres(pool)]);
  expect(() => postgres(both)).toThrow("`db` must be the primary: pass `db.$primary`");
  expect(() => postgres(both.$primary)).not.toThrow();
  await pool.end();

  const mysqlPool = createPool({});
  const mysqlDb = drizzleMysql2(mysqlPool);
  const mysqlBoth = withMysqlReplicas(mysqlDb, [drizzleMysql2(mysqlPool)]);
  expect(() => mysql(mysqlBoth as unknown as typeof mysqlDb)).toThrow("pass `db.$primary`");
  await mysqlPool.end();
});
