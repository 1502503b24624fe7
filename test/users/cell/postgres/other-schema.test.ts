/** Tables that the search path finds in another schema: rows of both may have the same id. */
import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { Kysely, PostgresDialect, sql as kyselySql, type Generated } from "kysely";
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCell, type Cell } from "../../../../src/users/cell/cell.ts";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";
import type { ClaimTransaction } from "../../../../src/users/cell/claim-transaction.ts";
import { patientCell } from "../../../../src/users/cell/conformance/target.ts";
import { fresh } from "../../../../src/users/cell/conformance/world.ts";
import { kyselyPostgres, kyselyTables } from "../../../../src/users/cell/kysely/index.ts";
import type { CellDatabase } from "../../../../src/users/cell/local.ts";
import { pg, table } from "../../../../src/users/cell/pg/index.ts";
import { postgres } from "../../../../src/users/cell/postgres/index.ts";
import type { AnyTable } from "../../../../src/users/cell/table.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { clientOf } from "../../../support/client-of.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";

interface Row {
  id: number;
  username: string;
}
interface Database {
  users: { id: Generated<number>; username: string };
}
/** How an adapter is used, whatever the types of its tables. */
interface Adapter {
  name: string;
  table: AnyTable;
  database: (pool: Pool) => CellDatabase<never>;
  run: (db: never, statement: string) => Promise<unknown>;
  named: (username: string) => unknown;
}

const users = pgTable("users", { id: serial().primaryKey(), username: text().notNull() });
const connected = (pool: Pool) => drizzle(pool);
type DrizzleTx = Parameters<Parameters<ReturnType<typeof connected>["transaction"]>[0]>[0];

const adapters: readonly Adapter[] = [
  {
    name: "drizzle",
    table: users,
    database: (pool) => postgres<DrizzleTx>(connected(pool)) as CellDatabase<never>,
    run: (db: DrizzleTx, statement) => db.execute(sql.raw(statement)),
    named: (username) => eq(users.username, username),
  },
  {
    name: "pg",
    table: table<Row>("users"),
    database: (pool) => pg(pool) as CellDatabase<never>,
    run: (db: { query: (statement: string) => Promise<unknown> }, statement) => db.query(statement),
    named: (username) => ({ username }),
  },
  {
    name: "Kysely",
    table: kyselyTables<Database>()("users") as AnyTable,
    database: (pool) =>
      kyselyPostgres(new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })) as CellDatabase<never>,
    run: (db: Kysely<Database>, statement) => kyselySql.raw(statement).execute(db),
    named: (username) => ({ username }),
  },
];

describe.skipIf(isSkipped("PostgreSQL"))("a table in another schema", () => {
  let server: DatabaseServer;
  let coordinator: TestCoordinator;
  let pool: Pool;
  let acme: Pool;
  let globex: Pool;
  let connectionString: string;

  beforeAll(async () => {
    server = await startPostgres();
    coordinator = await startTestCoordinator({ cells: ["1"] });
    connectionString = server.url(await server.createDatabase());
    pool = new Pool({ connectionString });
    acme = new Pool({ connectionString, options: "-c search_path=acme,public" });
    globex = new Pool({ connectionString, options: "-c search_path=globex" });
    for (const schema of ["acme", "globex", "parts"])
      await pool.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    // Unlike acme, globex has tables of a cell.
    for (const each of [pool, globex]) await postgres(drizzle(each)).install();
    for (const schema of ["public", "acme", "globex"])
      await pool.query(`CREATE TABLE ${schema}.users (id serial PRIMARY KEY, username text NOT NULL UNIQUE)`);
  });
  beforeEach(() => pool.query("TRUNCATE public.users, acme.users, globex.users RESTART IDENTITY"));
  afterAll(async () => {
    await pool.end();
    await acme.end();
    await globex.end();
    await coordinator.close();
    await server.stop();
  });

  const owners = async (...names: string[]): Promise<boolean[]> => {
    const buckets = names.map((value) => ({ type: "USERNAMES" as const, value }));
    return (await clientOf(coordinator).records.lookup(buckets)).map(({ found }) => found);
  };
  const saved = async (): Promise<string[]> => {
    const all = ["public", "acme", "globex"].map((schema) => `SELECT username FROM ${schema}.users`);
    const { rows } = await pool.query<{ username: string }>(all.join(" UNION ALL "));
    return rows.map(({ username }) => username);
  };

  describe.each(adapters)("$name", ({ table: its, database, run, named }) => {
    const cellOf = (its_: Pool): Cell<never> =>
      createCell({
        client: clientOf(coordinator),
        database: database(its_),
        tables: [
          claimable(its as never, {
            source: "RAILS_TABLE_USERS",
            subject: { type: "USER", id: "id" },
            attributes: { username: "USERNAMES" } as never,
          }) as unknown as Claimable,
        ],
        ...patientCell,
      });
    const enter = (tx: ClaimTransaction<never>, path: string) =>
      run(tx.db, `SET LOCAL search_path = ${path}`);
    const insert = (tx: ClaimTransaction<never>, username: string) => tx.insert(its, { username });

    test("no write reaches it, whenever the path is set, and nothing is saved", async () => {
      const cell = cellOf(pool);
      const [one, two] = [fresh("one"), fresh("two")];
      const attempts: readonly ((tx: ClaimTransaction<never>) => Promise<unknown>)[] = [
        async (tx) => {
          await enter(tx, "acme, public");
          await insert(tx, one);
        },
        async (tx) => {
          await insert(tx, one);
          await enter(tx, "acme, public");
        },
        async (tx) => {
          await enter(tx, "acme, public");
          await insert(tx, one);
          await enter(tx, "public");
          await insert(tx, two);
        },
        ...["acme", "globex", "globex, public"].map((path) => async (tx: ClaimTransaction<never>) => {
          await enter(tx, path);
          await insert(tx, one);
          await enter(tx, "public");
        }),
      ];
      for (const attempt of attempts)
        await expect(cell.transaction(attempt)).rejects.toThrow("is now another table");
      expect(await saved()).toEqual([]);
      expect(await owners(one, two)).toEqual([false, false]);
    });

    test("no update, deletion or verification takes its rows for those of the other", async () => {
      const cell = cellOf(pool);
      const [mine, other] = [fresh("mine"), fresh("other")];
      await cell.transaction((tx) => insert(tx, mine));
      await pool.query("INSERT INTO acme.users (username) VALUES ($1)", [other]);
      const condition = named(other) as never;
      const set = { username: fresh("renamed") } as never;
      const writes: readonly ((tx: ClaimTransaction<never>) => Promise<unknown>)[] = [
        (tx) => tx.update(its, condition, set),
        (tx) => tx.delete(its, condition),
        (tx) => tx.deleteLater(its, condition),
        (tx) => tx.lock(its, condition),
        (tx) => tx.upsert(its, ["username" as never], { username: other }),
      ];
      for (const write of writes) {
        const written = cell.transaction(async (tx) => {
          await enter(tx, "acme, public");
          await write(tx);
        });
        await expect(written).rejects.toThrow("is now another table");
      }
      const verified = cellOf(acme).verify({ apply: true, recentMs: 0 });
      await expect(verified).rejects.toThrow("finds in another schema");
      expect(await saved()).toEqual([mine, other]);
      expect(await owners(mine, other)).toEqual([true, false]);
    });

    test("a path that stays with a connection changes nothing", async () => {
      const one = new Pool({ connectionString, max: 1 });
      const cell = cellOf(one);
      const mine = fresh("mine");
      await cell.transaction((tx) => insert(tx, mine));
      await one.query("SET search_path = globex");
      for (const other of [fresh("other"), fresh("another")]) {
        await expect(cell.verify({ apply: true, recentMs: 0 })).rejects.toThrow(/another (table|schema)/);
        const written = cell.transaction((tx) => insert(tx, other));
        await expect(written).rejects.toThrow(/another (table|schema)/);
      }
      await one.end();
      expect(await saved()).toEqual([mine]);
      expect(await owners(mine)).toEqual([true]);
    });

    test("after a migration has created the table again, it can be written", async () => {
      const cell = cellOf(pool);
      await cell.transaction((tx) => insert(tx, fresh("before")));
      await pool.query(
        `DROP TABLE public.users;
        CREATE TABLE public.users (id serial PRIMARY KEY, username text NOT NULL UNIQUE)`,
      );
      const noticing = cell.transaction((tx) => insert(tx, fresh("noticing")));
      await expect(noticing).rejects.toThrow("is now another table");
      const after = fresh("after");
      await cell.transaction((tx) => insert(tx, after));
      expect(await owners(after)).toEqual([true]);
    });
  });

  test("a table whose name has the schema public is written from every path", async () => {
    const named = table<Row, { username: string }>("public.users");
    const options = { subject: { type: "USER", id: "id" }, attributes: { username: "USERNAMES" } } as const;
    const cell = createCell({
      client: clientOf(coordinator),
      database: pg(globex),
      tables: [claimable(named, { ...options, source: "RAILS_TABLE_USERS" }) as Claimable],
    });
    const [one, two] = [fresh("one"), fresh("two")];
    await cell.transaction((tx) => tx.insert(named, { username: one }));
    await cell.transaction(async (tx) => {
      await tx.db.query("SET LOCAL search_path = acme, globex");
      await tx.insert(named, { username: two });
      await tx.update(named, { username: one }, { username: `${one}-renamed` });
    });
    expect((await pool.query("SELECT username FROM public.users ORDER BY id")).rows).toEqual([
      { username: `${one}-renamed` },
      { username: two },
    ]);
    expect(await owners(one, `${one}-renamed`, two)).toEqual([false, true, true]);
  });

  test("a column can have the name leasehold", async () => {
    await pool.query("CREATE TABLE houses (id serial PRIMARY KEY, leasehold text NOT NULL)");
    const houses = table<{ id: number; leasehold: string }, { leasehold: string }>("houses");
    const cell = createCell({
      client: clientOf(coordinator),
      database: pg(pool),
      tables: [
        claimable(houses, {
          source: "RAILS_TABLE_EMAILS",
          subject: { type: "USER", id: "id" },
          attributes: { leasehold: "USERNAMES" },
        }) as Claimable,
      ],
    });
    const leasehold = fresh("house");
    expect(await cell.transaction((tx) => tx.insert(houses, { leasehold }))).toEqual({ id: 1, leasehold });
    expect(await owners(leasehold)).toEqual([true]);
  });

  test("a table with a schema in its name, and partitions in another schema, are written", async () => {
    await pool.query(
      `CREATE TABLE acme.teams (id serial PRIMARY KEY, username text NOT NULL);
      CREATE TABLE crowds (id int PRIMARY KEY, username text NOT NULL) PARTITION BY RANGE (id);
      CREATE TABLE parts.crowds_1 PARTITION OF crowds FOR VALUES FROM (0) TO (1000)`,
    );
    const [teams, crowds] = [table<Row, { username: string }>("acme.teams"), table<Row>("crowds")];
    const options = { subject: { type: "USER", id: "id" }, attributes: { username: "USERNAMES" } } as const;
    const cell = createCell({
      client: clientOf(coordinator),
      database: pg(pool),
      tables: [
        claimable(teams, { ...options, source: "RAILS_TABLE_EMAILS" }) as Claimable,
        claimable(crowds, { ...options, source: "RAILS_TABLE_ROUTES" }) as Claimable,
      ],
    });
    const [team, crowd] = [fresh("team"), fresh("crowd")];
    await cell.transaction(async (tx) => {
      await tx.insert(teams, { username: team });
      await tx.insert(crowds, { id: 7, username: crowd });
    });
    expect(await owners(team, crowd)).toEqual([true, true]);
  });
});
