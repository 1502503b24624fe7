import { Cache } from "drizzle-orm/cache/core";
import { drizzle as drizzleMysql2 } from "drizzle-orm/mysql2";
import { withReplicas as withMysqlReplicas } from "drizzle-orm/mysql-core";
import { drizzle as drizzleNodePostgres } from "drizzle-orm/node-postgres";
import { withReplicas } from "drizzle-orm/pg-core";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { expect, test } from "vitest";
import { mysql } from "../../../src/users/cell/mysql/index.ts";
import { postgres } from "../../../src/users/cell/postgres/index.ts";

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

class AnyCache extends Cache {
  readonly #strategy: "all" | "explicit";

  constructor(strategy: "all" | "explicit") {
    super();
    this.#strategy = strategy;
  }

  override strategy = () => this.#strategy;
  override get = async (): Promise<undefined> => undefined;
  override put = async (): Promise<void> => {};
  override onMutate = async (): Promise<void> => {};
}

test("a drizzle database that answers every query from a cache is refused", async () => {
  const pool = new Pool();
  const mysqlPool = createPool({});
  const cached = new AnyCache("all");
  for (const open of [
    () => postgres(drizzleNodePostgres(pool, { cache: cached })),
    () => mysql(drizzleMysql2(mysqlPool, { cache: cached })),
  ])
    expect(open).toThrow("`db` must not answer every query from a cache: pass a drizzle database without");
  const cache = new AnyCache("explicit");
  expect(() => postgres(drizzleNodePostgres(pool, { cache }))).not.toThrow();
  expect(() => mysql(drizzleMysql2(mysqlPool, { cache }))).not.toThrow();
  await pool.end();
  await mysqlPool.end();
});
