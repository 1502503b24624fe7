/**
 * Details of PostgreSQL: schemas, triggers that leave out rows, and the limit on parameters of a statement.
 */
import { PGlite } from "@electric-sql/pglite";
import { sql } from "drizzle-orm";
import { drizzle as drizzleNodePostgres } from "drizzle-orm/node-postgres";
import { integer, pgTable, serial, text } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import { Client, Pool } from "pg";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";
import { migration, postgres } from "../../../../src/users/cell/postgres/index.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import type { Orm, Tx } from "../scenarios/dialect.ts";
import { pglite, PostgresServer } from "../scenarios/starts.ts";
import type { TestedDatabase } from "../scenarios/drizzle.ts";

const WIDE = 80;
const things = pgTable("things", { id: serial().primaryKey(), name: text().notNull() });
const wide = pgTable("wide", {
  id: serial().primaryKey(),
  name: text().notNull(),
  ...Object.fromEntries(Array.from({ length: WIDE - 2 }, (_, index) => [`c${index}`, integer()])),
});
const subject = { type: "USER", id: "id" } as const;
const claimableThings: Claimable = claimable(things, {
  source: "RAILS_TABLE_USERS",
  subject,
  attributes: { name: "USERNAMES" },
});
const claimableWide: Claimable = claimable(wide, {
  source: "RAILS_TABLE_USERS",
  subject,
  attributes: { name: "USERNAMES" },
});

suite("PGlite", pglite);
describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  suite("node-postgres", new PostgresServer().nodePostgres);
  suite("postgres-js", new PostgresServer().postgresJs);
});

function suite(name: string, start: () => Promise<TestedDatabase>): void {
  describe(name, () => {
    let tested: TestedDatabase;
    let orm: Orm;
    const run = (statement: string) => orm.execute(sql.raw(statement));

    beforeAll(async () => {
      tested = await start();
      orm = tested.orm;
      await postgres(orm).install();
      await run("CREATE TABLE things (id serial PRIMARY KEY, name text NOT NULL)");
      await run(
        `CREATE TABLE wide (id serial PRIMARY KEY, name text NOT NULL,
          ${Array.from({ length: WIDE - 2 }, (_, at) => `c${at} int`).join()})`,
      );
      await run("CREATE SCHEMA tenant");
      await orm.transaction(async (tx) => {
        await tx.execute(sql`SET LOCAL search_path = tenant`);
        for (const statement of migration) await tx.execute(sql.raw(statement));
      });
    });
    beforeEach(async () => {
      await run("DELETE FROM things");
      await run("DELETE FROM leasehold_outstanding_leases");
    });
    afterAll(() => tested.stop());

    const leaseOf = (uuid: string) => ({ uuid, sources: [{ type: "RAILS_TABLE_USERS", id: "1" }] });
    const saveThing = (cell: ReturnType<typeof postgres<Tx>>, uuid: string, searchPath?: string) =>
      cell.run(async (tx) => {
        if (searchPath !== undefined) await tx.execute(sql.raw(`SET LOCAL search_path = ${searchPath}`));
        await cell.insertLease(tx, leaseOf(uuid));
      });

    test("a lease is not saved if search_path names another schema with such a table", async () => {
      const cell = postgres<Tx>(orm);
      const uuid = uuidv7();
      const ran = await saveThing(cell, uuid, "tenant, public");
      expect(ran).toMatchObject({
        kind: "rolled_back",
        error: { code: "WRONG_TABLE", message: expect.stringContaining("search_path") },
      });
      expect(await cell.has([uuid])).toEqual([]);
      expect((await saveThing(cell, uuid, "public, tenant")).kind).toBe("committed");
      expect(await cell.has([uuid])).toHaveLength(1);
    });

    test("a concurrent transaction is not affected", async () => {
      if (!tested.isConcurrent) return;
      const cell = postgres<Tx>(orm);
      const ran = await cell.run(async (tx) => {
        expect(await saveThing(cell, uuidv7(), "tenant, public")).toMatchObject({
          error: { code: "WRONG_TABLE" },
        });
        await cell.insertLease(tx, leaseOf(uuidv7()));
      });
      expect(ran.kind).toBe("committed");
    });

    test("a lease table that was dropped and created again is found", async () => {
      const cell = postgres<Tx>(orm);
      expect((await saveThing(cell, uuidv7())).kind).toBe("committed");
      await run("DROP TABLE leasehold_outstanding_leases");
      await cell.install();
      await saveThing(cell, uuidv7());
      expect((await saveThing(cell, uuidv7())).kind).toBe("committed");
    });

    test("an insert that stores fewer rows than it was given fails", async () => {
      const cell = postgres<Tx>(orm);
      await run(`CREATE OR REPLACE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.name = 'ghost' THEN RETURN NULL; END IF; RETURN NEW; END $$`);
      await run(
        `CREATE OR REPLACE TRIGGER leave_out BEFORE INSERT ON things
          FOR EACH ROW EXECUTE FUNCTION leave_out()`,
      );
      const rows = [{ name: "ada" }, { name: "ghost" }];
      expect(await cell.run((tx) => cell.insert(tx, claimableThings, rows))).toMatchObject({
        kind: "rolled_back",
        error: { code: "NOT_STORED", message: expect.stringContaining("1 of the rows for things") },
      });
    });

    test("an insert of many rows with many columns is split into statements", async () => {
      const cell = postgres<Tx>(orm);
      const columns = Object.fromEntries(
        Array.from({ length: WIDE - 2 }, (_, index) => [`c${index}`, index]),
      );
      const rows = Array.from({ length: 1_000 }, (_, index) => ({
        id: index + 1,
        name: `n${index}`,
        ...columns,
      }));
      const ran = await cell.run((tx) => cell.insert(tx, claimableWide, rows));
      expect(ran).toMatchObject({ kind: "committed", value: { length: 1_000 } });
      const [stored] = await orm.select({ count: sql<string>`count(*)` }).from(wide);
      expect(Number(stored?.count)).toBe(1_000);
    });
  });
}

describe("a database", () => {
  test("of one connection of node-postgres is refused", async () => {
    expect(() => postgres(drizzleNodePostgres(new Client()))).toThrow("`db` must have a pool");
    expect(() => postgres(drizzleNodePostgres({ client: new Client() }))).toThrow("`db` must have a pool");
    const pool = new Pool();
    expect(() => postgres(drizzleNodePostgres(pool))).not.toThrow();
    await pool.end();
  });

  test("of another package's pool, or of PGlite, is accepted", async () => {
    class OtherPool extends Client {}
    expect(() => postgres(drizzleNodePostgres(new OtherPool()))).not.toThrow();
    const embedded = new PGlite();
    expect(() => postgres(drizzle(embedded))).not.toThrow();
    await embedded.close();
  });
});
