/** Ids above 2^53, of which JavaScript numbers cannot hold each, with the settings that round them. */
import { eq, type SQL } from "drizzle-orm";
import { bigint as mysqlBigint, mysqlTable, varchar } from "drizzle-orm/mysql-core";
import { drizzle as drizzleMysql } from "drizzle-orm/mysql2";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";
import { Kysely, MysqlDialect } from "kysely";
import { createPool as createCallbackPool } from "mysql2";
import { createPool } from "mysql2/promise";
import { Pool, types } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCell, type Cell } from "../../../../src/users/cell/cell.ts";
import { claimable } from "../../../../src/users/cell/claimable.ts";
import { patientCell } from "../../../../src/users/cell/conformance/target.ts";
import { kyselyMysql, kyselyTables } from "../../../../src/users/cell/kysely/index.ts";
import type { CellDatabase } from "../../../../src/users/cell/local.ts";
import { mysql } from "../../../../src/users/cell/mysql/index.ts";
import { mysql2, table as mysql2Table } from "../../../../src/users/cell/mysql2/index.ts";
import { pg, table as pgTableOf } from "../../../../src/users/cell/pg/index.ts";
import { postgres } from "../../../../src/users/cell/postgres/index.ts";
import type { AnyTable } from "../../../../src/users/cell/table.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { clientOf } from "../../../support/client-of.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startMariadb } from "../../../support/databases/mariadb.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";

/** The larger one is rounded to the smaller one. */
const [EVEN, ODD] = ["9007199254740992", "9007199254740993"];

/** A driver or ORM that reads the ids as numbers. */
interface Opened {
  database: CellDatabase<unknown>;
  people: AnyTable;
  named: (name: string) => SQL | object;
  stop: () => Promise<unknown>;
}

interface Kind {
  name: string;
  server: "PostgreSQL" | "MariaDB";
  open: (url: string) => Opened;
}

const opened = <Tx>(its: Omit<Opened, "database"> & { database: CellDatabase<Tx> }): Opened => its;

const getTypeParser: typeof types.getTypeParser = (type, format) =>
  type === types.builtins.INT8 ? Number : types.getTypeParser(type, format);

const kinds: readonly Kind[] = [
  {
    name: "pg with parseInt for int8",
    server: "PostgreSQL",
    open: (url) => {
      const pool = new Pool({ connectionString: url, types: { getTypeParser } });
      const named = (name: string): object => ({ name });
      return opened({ database: pg(pool), people: pgTableOf("people"), named, stop: () => pool.end() });
    },
  },
  {
    name: "drizzle with node-postgres and numbers",
    server: "PostgreSQL",
    open: (url) => {
      const pool = new Pool({ connectionString: url });
      const people = pgTable("people", {
        id: bigint({ mode: "number" }).primaryKey(),
        name: text().notNull(),
      });
      const named = (name: string): SQL => eq(people.name, name);
      return opened({ database: postgres(drizzlePg(pool)), people, named, stop: () => pool.end() });
    },
  },
  {
    name: "mysql2 with its defaults",
    server: "MariaDB",
    open: (url) => {
      const pool = createPool({ uri: url });
      const named = (name: string): object => ({ name });
      return opened({ database: mysql2(pool), people: mysql2Table("people"), named, stop: () => pool.end() });
    },
  },
  {
    name: "drizzle with mysql2 and numbers",
    server: "MariaDB",
    open: (url) => {
      const pool = createPool({ uri: url });
      const people = mysqlTable("people", {
        id: mysqlBigint({ mode: "number" }).primaryKey().autoincrement(),
        name: varchar({ length: 80 }).notNull(),
      });
      const named = (name: string): SQL => eq(people.name, name);
      return opened({ database: mysql(drizzleMysql(pool)), people, named, stop: () => pool.end() });
    },
  },
  {
    name: "drizzle with the defaults of mysql2 and bigint",
    server: "MariaDB",
    open: (url) => {
      const pool = createPool({ uri: url });
      const people = mysqlTable("people", {
        id: mysqlBigint({ mode: "bigint" }).primaryKey().autoincrement(),
        name: varchar({ length: 80 }).notNull(),
      });
      const named = (name: string): SQL => eq(people.name, name);
      return opened({ database: mysql(drizzleMysql(pool)), people, named, stop: () => pool.end() });
    },
  },
  {
    name: "Kysely with the defaults of mysql2",
    server: "MariaDB",
    open: (url) => {
      const db = new Kysely<{ people: { id: number; name: string } }>({
        dialect: new MysqlDialect({ pool: createCallbackPool({ uri: url }) }),
      });
      const named = (name: string): object => ({ name });
      return opened({
        database: kyselyMysql(db),
        people: kyselyTables<{ people: { id: number; name: string } }>()("people"),
        named,
        stop: () => db.destroy(),
      });
    },
  },
];

const servers = {
  PostgreSQL: {
    start: startPostgres,
    id: "bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY (START 9007199254740993)",
    end: "",
  },
  MariaDB: {
    start: startMariadb,
    id: "bigint PRIMARY KEY AUTO_INCREMENT",
    end: " AUTO_INCREMENT = 9007199254740993",
  },
};

for (const kind of kinds) describe.skipIf(isSkipped(kind.server))(kind.name, () => suite(kind));

function suite({ server: kind, open }: Kind): void {
  const { start, id, end } = servers[kind];
  let server: DatabaseServer;
  let its: Opened;
  let coordinator: TestCoordinator;
  let newCell: () => Cell<unknown>;
  let cell: Cell<unknown>;
  let run: (statement: string) => Promise<string[]>;
  let stopAll: () => Promise<void>;

  beforeAll(async () => {
    server = await start();
    const url = server.url(await server.createDatabase());
    its = open(url);
    const direct: { query: (statement: string) => Promise<unknown>; end: () => Promise<void> } =
      kind === "PostgreSQL" ? new Pool({ connectionString: url }) : createPool({ uri: url });
    run = async (statement) => {
      const result = await direct.query(statement);
      const rows = Array.isArray(result) ? (result[0] as unknown) : (result as { rows: unknown }).rows;
      return Array.isArray(rows) ? rows.map((each: { row: string }) => each.row) : [];
    };
    coordinator = await startTestCoordinator({ cells: ["1"] });
    const claimablePeople = claimable(its.people, {
      id: "id",
      source: "RAILS_TABLE_USERS",
      subject: { type: "USER", id: "id" },
      attributes: { name: "USERNAMES" },
    } as never);
    newCell = () =>
      createCell({
        client: clientOf(coordinator),
        database: its.database,
        tables: [claimablePeople],
        ...patientCell,
      });
    await newCell().install();
    stopAll = async () => {
      await its.stop();
      await direct.end();
      await coordinator.close();
      await server.stop();
    };
  });
  beforeEach(async () => {
    await run("DROP TABLE IF EXISTS people");
    await run(`CREATE TABLE people (id ${id}, name varchar(80) NOT NULL)${end}`);
    cell = newCell();
  });
  afterAll(() => stopAll());

  const stored = (): Promise<string[]> =>
    run(`SELECT concat(${kind === "PostgreSQL" ? "id" : "CAST(id AS char)"}, ' ', name) AS row FROM people`);
  const refusal = { name: "InvalidArgumentError", field: "id" };
  const refused = async (work: Promise<unknown>): Promise<void> => {
    await expect(work).rejects.toMatchObject(refusal);
    await expect(work).rejects.toThrow("read the column as text or bigint");
  };

  test("an insert whose id is rounded saves nothing, even if the body catches the error", async () => {
    await refused(cell.transaction((tx) => tx.insert(its.people, { name: "ada" })));
    await refused(
      cell.transaction(async (tx) => {
        await expect(tx.insert(its.people, { name: "ada" })).rejects.toMatchObject(refusal);
      }),
    );
    await refused(cell.transaction((tx) => tx.insert(its.people, { id: Number(ODD), name: "ada" })));
    await expect(cell.bulkInsert(its.people, [{ name: "ada" }])).rejects.toThrow("`id`");
    expect(await stored()).toEqual([]);
  });

  test("no write changes or deletes a row whose id is rounded", async () => {
    await run(`INSERT INTO people (id, name) VALUES (${EVEN}, 'even'), (${ODD}, 'odd')`);
    const odd = its.named("odd") as never;
    await refused(cell.transaction((tx) => tx.update(its.people, odd, { name: "ada" })));
    await refused(cell.transaction((tx) => tx.delete(its.people, odd)));
    await refused(cell.transaction((tx) => tx.deleteLater(its.people, odd)));
    await refused(cell.transaction(async (tx) => tx.inserted(its.people, { id: Number(ODD), name: "odd" })));
    await expect(cell.bulkDelete(its.people, odd)).rejects.toThrow("text or bigint");
    await expect(cell.verify({ apply: true })).rejects.toThrow("text or bigint");
    expect((await stored()).toSorted()).toEqual([`${EVEN} even`, `${ODD} odd`]);
  });
}
