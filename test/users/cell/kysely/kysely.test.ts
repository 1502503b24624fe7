/** What only Kysely has: plugins, expressions as values and conditions, and its transactions. */
import { CamelCasePlugin, sql, type Generated, type Kysely, type Transaction } from "kysely";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCell, type Cell, type CellOptions } from "../../../../src/users/cell/cell.ts";
import { patientCell, patientClient } from "../../../../src/users/cell/conformance/target.ts";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";
import { kyselyMysql, kyselyPostgres, kyselyTables } from "../../../../src/users/cell/kysely/index.ts";
import type { Where } from "../../../../src/users/cell/table.ts";
import { toValidationErrors } from "../../../../src/users/cell/validation.ts";
import { createClient } from "../../../../src/users/client/client.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { clientOf } from "../../../support/client-of.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";
import { kinds, run, type ServerKind } from "./servers.ts";

interface Database {
  userAccounts: {
    id: Generated<number>;
    userName: string;
    shortBio: string | null;
    updatedAt: Generated<Date>;
  };
  petNames: { id: Generated<number>; petName: string; ownerId: number };
  settings: { id: Generated<number>; someKey: Generated<string> };
}

const table = kyselyTables<Database>();
const users = table("userAccounts");
const settings = table("settings");
const claimableUsers = claimable(users, {
  source: "RAILS_TABLE_USERS",
  subject: { type: "USER", id: "id" },
  changedAt: "updatedAt",
  attributes: { userName: "USERNAMES" },
});
const claimablePets = claimable(table("petNames"), {
  source: "RAILS_TABLE_EMAILS",
  subject: { type: "USER", id: "ownerId" },
  attributes: { petName: "EMAILS" },
});
const claimableSettings = claimable(settings, {
  source: "RAILS_TABLE_PROJECTS",
  subject: { type: "PROJECT", id: "id" },
  attributes: { someKey: "ROUTES" },
});

let serial = 0;
const fresh = (name: string): string => `${name}-${(serial += 1)}`;

for (const kind of kinds) describe.skipIf(isSkipped(kind.name))(kind.name, () => suite(kind));

function suite(kind: ServerKind): void {
  let server: DatabaseServer;
  let db: Kysely<Database>;
  let coordinator: TestCoordinator;
  let cell: Cell<Transaction<Database>>;

  const cellOf = (
    options: Partial<CellOptions<Transaction<Database>>> = {},
    tables: readonly Claimable[] = [claimableUsers, claimableSettings] as never,
  ): Cell<Transaction<Database>> => {
    const client = clientOf(coordinator);
    const database = kind.database(db);
    return createCell({
      client,
      database,
      tables,
      ...patientCell,
      ...options,
    });
  };
  const isClaimed = async (name: string): Promise<boolean | undefined> => {
    const client = createClient({
      url: coordinator.url,
      key: coordinator.keys.router,
      fetch: (to, init) => coordinator.fetch(to, init),
      ...patientClient,
    });
    const [found] = await client.records.lookup([{ type: "USERNAMES", value: name }]);
    return found?.found;
  };
  const insert = (...names: string[]) =>
    cell.transaction((tx) =>
      tx.insertMany(
        users,
        names.map((userName) => ({ userName })),
      ),
    );
  const leases = () => run(db, "SELECT uuid FROM leasehold_outstanding_leases WHERE state = 'saved'");
  const stored = async () =>
    (await run(db, "SELECT user_name FROM user_accounts ORDER BY id")).map((row) => row["user_name"]);

  beforeAll(async () => {
    server = await kind.start();
    const url = server.url(await server.createDatabase());
    db = kind.connect<Database>(url, { plugins: [new CamelCasePlugin()] });
    coordinator = await startTestCoordinator();
    cell = cellOf();
    await cell.install();
    await run(
      db,
      `CREATE TABLE user_accounts (id ${kind.serial}, user_name ${kind.text} NOT NULL,
        short_bio ${kind.text}, updated_at ${kind.time} NOT NULL DEFAULT CURRENT_TIMESTAMP,
        CONSTRAINT one_name UNIQUE (user_name))`,
    );
    await run(db, `CREATE TABLE settings (id ${kind.serial}, some_key ${kind.text} NOT NULL DEFAULT 'made')`);
  });
  beforeEach(async () => {
    await run(db, "DROP TABLE IF EXISTS pet_names");
    await run(db, "DELETE FROM user_accounts");
  });
  afterAll(async () => {
    await coordinator.close();
    await db.destroy();
    await server.stop();
  });

  describe("CamelCasePlugin", () => {
    test("names the columns of rows, and of the fields of an error", async () => {
      const userName = fresh("ada");
      const [ada] = await insert(userName);
      expect(ada).toMatchObject({ userName, shortBio: null });
      expect(await isClaimed(userName)).toBe(true);
      const taken = await insert(userName).catch((thrown: unknown) => thrown);
      expect(toValidationErrors(taken)).toEqual([
        { table: "userAccounts", field: "userName", id: undefined, problem: "taken" },
      ]);
      const behind = cell.transaction((tx) =>
        tx.db.insertInto("userAccounts").values({ userName }).execute(),
      );
      expect(toValidationErrors(await behind.catch((thrown: unknown) => thrown))).toMatchObject([
        { table: "userAccounts", field: "userName", problem: "taken" },
      ]);
    });

    test("names the columns of a foreign key that deletes claimed rows", async () => {
      await run(
        db,
        `CREATE TABLE pet_names (id ${kind.serial}, pet_name ${kind.text} NOT NULL, owner_id int,
          FOREIGN KEY (owner_id) REFERENCES user_accounts (id) ON DELETE CASCADE)`,
      );
      const both = cellOf({}, [claimableUsers, claimablePets] as never);
      await expect(both.transaction((tx) => tx.insert(users, { userName: fresh("a") }))).rejects.toThrow(
        "petNames.ownerId → userAccounts deletes rows by ON DELETE CASCADE",
      );
    });

    test("verification knows when a row has changed", async () => {
      const [old, young] = [fresh("old"), fresh("young")];
      await run(db, `INSERT INTO user_accounts (user_name, updated_at) VALUES ('${old}', '2020-01-01')`);
      await run(db, `INSERT INTO user_accounts (user_name) VALUES ('${young}')`);
      const { counts } = await cell.verify({ apply: true });
      expect(counts).toMatchObject({ created: 1 });
      expect([await isClaimed(old), await isClaimed(young)]).toEqual([true, false]);
    });
  });

  test("values may be expressions", async () => {
    const userName = fresh("ada");
    const ada = await cell.transaction((tx) =>
      tx.insert(users, {
        userName: sql<string>`lower(${userName.toUpperCase()})`,
        updatedAt: sql<Date>`CURRENT_TIMESTAMP`,
      }),
    );
    expect(ada).toMatchObject({ userName, updatedAt: expect.any(Date) });
    const [renamed] = await cell.transaction((tx) =>
      tx.update(
        users,
        { id: ada.id },
        { userName: (eb) => eb.fn<string>("concat", ["userName", sql.lit("x")]) },
      ),
    );
    expect(renamed?.userName).toBe(`${userName}x`);
    expect([await isClaimed(userName), await isClaimed(`${userName}x`)]).toEqual([false, true]);
  });

  test("rows may have different columns, or none", async () => {
    const [ada, bob] = [fresh("ada"), fresh("bob")];
    const rows = await cell.transaction((tx) =>
      tx.insertMany(users, [{ userName: ada, shortBio: "countess" }, { userName: bob }]),
    );
    expect(rows).toMatchObject([
      { userName: ada, shortBio: "countess" },
      { userName: bob, shortBio: null },
    ]);
    expect(await cell.transaction((tx) => tx.insert(settings, {}))).toMatchObject({ someKey: "made" });
  });

  test("a bulk insert leaves out existing rows", async () => {
    const [ada, bob] = [fresh("ada"), fresh("bob")];
    await insert(ada);
    await cell.bulkInsert(users, [{ userName: ada }, { userName: bob }], { skipRefused: true });
    expect(await stored()).toEqual([ada, bob]);
    expect(await isClaimed(bob)).toBe(true);
  });

  test("conditions are expressions, functions, or objects of columns", async () => {
    const [ada, bob, eve] = [fresh("ada"), fresh("bob"), fresh("eve")];
    await cell.transaction((tx) =>
      tx.insertMany(users, [
        { userName: ada, shortBio: "a" },
        { userName: bob },
        { userName: eve, shortBio: "e" },
      ]),
    );
    const namesOf = async (where: Where<typeof users>) => {
      const matched = await cell.transaction((tx) => tx.update(users, where, { updatedAt: new Date() }));
      return matched.map(({ userName }) => userName);
    };
    expect(await namesOf((eb) => eb.or([eb("userName", "=", ada), eb("shortBio", "is", null)]))).toEqual([
      ada,
      bob,
    ]);
    expect(await namesOf(sql<boolean>`short_bio = ${"e"}`)).toEqual([eve]);
    expect(await namesOf({ userName: [ada, eve] })).toEqual([ada, eve]);
    expect(await namesOf({ shortBio: null })).toEqual([bob]);
    expect(await namesOf({ userName: eve, shortBio: "e" })).toEqual([eve]);
    expect(await namesOf({ userName: [] })).toEqual([]);
    for (const all of [undefined, {}]) expect(await namesOf(all)).toEqual([ada, bob, eve]);
    await expect(namesOf({ userName: undefined } as never)).rejects.toThrow(
      "`where` has no value for userName",
    );
    for (const odd of ["user_name = 'ada'", 7, null, [ada], new Map(), Promise.resolve()])
      await expect(namesOf(odd as never)).rejects.toThrow("`where` must be an object of columns");
    await expect(namesOf((() => undefined) as never)).rejects.toThrow("`where` must return an expression");
  });

  test("tx.db is Kysely's transaction, at the isolation level of the options", async () => {
    const strict = cellOf({
      database: kind.database(db, { transaction: { isolationLevel: "serializable" } }),
    });
    const names = [fresh("ada"), fresh("bob")];
    const failed = strict.transaction(async (tx) => {
      await tx.db.insertInto("settings").values({ someKey: "other" }).execute();
      await tx.insertMany(
        users,
        names.map((userName) => ({ userName })),
      );
      const [level] = await run(
        tx.db,
        kind.dialect === "postgres"
          ? "SHOW transaction_isolation"
          : "SELECT trx_isolation_level AS level FROM information_schema.innodb_trx LIMIT 1",
      );
      throw new RangeError(Object.values(level ?? {}).join());
    });
    await expect(failed).rejects.toThrow(/^serializable$/i);
    expect(await run(db, "SELECT id FROM settings WHERE some_key = 'other'")).toEqual([]);
    expect([await isClaimed(names[0] ?? ""), await leases()]).toEqual([false, []]);
  });

  test("a body that catches the error of a statement saves all or nothing", async () => {
    const [ada, bob] = [fresh("ada"), fresh("bob")];
    await insert(ada);
    const isSaved = await cell
      .transaction(async (tx) => {
        await tx.insert(users, { userName: bob });
        await tx.insert(users, { userName: ada }).catch(() => {});
      })
      .then(
        () => true,
        () => false,
      );
    expect(isSaved).toBe(kind.dialect === "mysql");
    expect(await stored()).toEqual(isSaved ? [ada, bob] : [ada]);
    expect([await isClaimed(bob), await leases()]).toEqual([isSaved, []]);
  });

  test("a body without claims that catches the error of a statement saves all or nothing", async () => {
    const isSaved = await cell
      .transaction(async (tx) => {
        await tx.db.insertInto("settings").values({ someKey: "kept" }).execute();
        await sql`SELECT nothing FROM nowhere`.execute(tx.db).catch(() => {});
      })
      .then(
        () => true,
        () => false,
      );
    const found = await run(db, "SELECT id FROM settings WHERE some_key = 'kept'");
    expect([isSaved, found.length]).toEqual(kind.dialect === "mysql" ? [true, 1] : [false, 0]);
  });

  describe("a connection that is lost", () => {
    /** Ends the connection of a transaction, as a lost network does. */
    const cut = async (tx: Transaction<Database>): Promise<void> => {
      const [own] = await run(tx, kind.kill.ownId);
      await run(db, kind.kill.statement(Number(own?.["id"])));
    };

    test("in the body is a certain rollback", async () => {
      const database = kind.database(db);
      const uuid = uuidv7();
      const ran = await database.run(async (tx) => {
        await database.insertLease(tx, { uuid, sources: [] });
        await cut(tx);
        await run(tx, "SELECT 1");
      });
      expect(ran.kind).toBe("rolled_back");
      expect(await database.has([uuid])).toEqual([]);
    });

    test("at COMMIT is an unknown outcome", async () => {
      const database = kind.database(db);
      const uuid = uuidv7();
      const ran = await database.run(async (tx) => {
        await database.insertLease(tx, { uuid, sources: [] });
        cutAtCommit(tx);
      });
      expect(ran.kind).toBe("unknown");
      expect(await database.has([uuid])).toEqual([]);
    });

    test("at COMMIT in a cell saves neither rows nor claims", async () => {
      const userName = fresh("ada");
      const lost = cell.transaction(async (tx) => {
        await tx.insert(users, { userName });
        cutAtCommit(tx.db);
      });
      await expect(lost).rejects.toThrow();
      await cell.reconcile({ staleMs: 0, commitGraceMs: 0 });
      expect([await stored(), await isClaimed(userName), await leases()]).toEqual([[], false, []]);
      await insert(userName);
      expect(await isClaimed(userName)).toBe(true);
    });

    /** Ends the connection right before its COMMIT is sent. */
    function cutAtCommit(tx: Transaction<Database>): void {
      void tx.getExecutor().provideConnection(async (connection) => {
        const execute = connection.executeQuery.bind(connection);
        connection.executeQuery = async (query, ...rest) => {
          if (query.sql !== "commit") return execute(query, ...rest);
          connection.executeQuery = execute;
          const { rows } = await execute<{ id: number }>({ ...query, sql: kind.kill.ownId });
          await run(db, kind.kill.statement(rows[0]?.id ?? 0));
          return execute(query, ...rest);
        };
      });
    }
  });

  test("a transaction, and the database of another dialect, are refused", async () => {
    await db.transaction().execute(async (tx) => {
      expect(() => kind.database(tx)).toThrow("`db` must be the database, not a transaction");
    });
    const other = kind.dialect === "postgres" ? kyselyMysql : kyselyPostgres;
    expect(() => other(db)).toThrow("`db` must have a dialect of");
  });

  test("withSchema names the schema of the claimable tables", async () => {
    const schema = fresh("crm").replace("-", "_");
    await run(db, `CREATE SCHEMA ${schema}`);
    await run(
      db,
      `CREATE TABLE ${schema}.user_accounts (id ${kind.serial}, user_name ${kind.text} NOT NULL,
        updated_at ${kind.time} NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (user_name))`,
    );
    const tenant = cellOf({ database: kind.database(db.withSchema(schema)) }, [claimableUsers] as never);
    const userName = fresh("ada");
    await tenant.transaction((tx) => tx.insert(users, { userName }));
    expect(await run(db, `SELECT user_name FROM ${schema}.user_accounts`)).toEqual([{ user_name: userName }]);
    const error = await tenant
      .transaction((tx) => tx.insert(users, { userName }))
      .catch((thrown: unknown) => thrown);
    expect(toValidationErrors(error)).toMatchObject([{ field: "userName", problem: "taken" }]);
    expect(await stored()).toEqual([]);
  });
}
