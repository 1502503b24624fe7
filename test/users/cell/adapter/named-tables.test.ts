/** Tables without a schema: their columns, unique keys and foreign keys are read from the database. */
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { createPool } from "mysql2/promise";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { condition, table } from "../../../../src/users/cell/adapter/index.ts";
import { createCell, type Cell, type CellOptions } from "../../../../src/users/cell/cell.ts";
import { patientCell, patientClient } from "../../../../src/users/cell/conformance/target.ts";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";
import { toValidationErrors } from "../../../../src/users/cell/validation.ts";
import { createClient } from "../../../../src/users/client/client.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { mysql2 } from "../../../../src/users/cell/mysql2/index.ts";
import { clientOf } from "../../../support/client-of.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startMariadb } from "../../../support/databases/mariadb.ts";
import { drivers, type Driver, type DriverKind, type Tx } from "./drivers.ts";

interface Person {
  id: number;
  name: string;
  bio: string | null;
  notes: unknown;
}

const people = table<Person>("people");
const pets = table<{ id: number; name: string; owner: number }>("pets");
const subject = { type: "USER", id: "id" } as const;
const attributes = { name: "USERNAMES" } as const;
const claimablePeople: Claimable = claimable(people, { source: "RAILS_TABLE_USERS", subject, attributes });
const claimablePets: Claimable = claimable(pets, {
  source: "RAILS_TABLE_EMAILS",
  subject,
  attributes: { name: "EMAILS" },
});

let count = 0;
const fresh = (name: string): string => `${name}-${(count += 1)}`;

test("rows, conditions and options are checked at compile time", () => {
  const options = { source: "RAILS_TABLE_USERS", subject } as const;
  // @ts-expect-error There is no such column.
  claimable(people, { ...options, attributes: { title: "USERNAMES" } });
  // @ts-expect-error The values of this column cannot be names.
  claimable(people, { ...options, attributes: { notes: "USERNAMES" } });
  const writes = async (cell: Cell<Tx>): Promise<void> => {
    await cell.transaction(async (tx) => {
      // @ts-expect-error There is no such column.
      await tx.insert(people, { title: "countess" });
      // @ts-expect-error A name is text.
      await tx.update(people, { name: 7 }, { bio: null });
      // @ts-expect-error There is no such column.
      await tx.delete(people, { title: "countess" });
      const ada = await tx.insert(people, { name: "ada" });
      // @ts-expect-error The row has no such column.
      return String(ada.title);
    });
  };
  expect(writes).toBeTypeOf("function");
});

for (const kind of drivers) describe.skipIf(isSkipped(kind.server))(kind.name, () => suite(kind));

test.skipIf(isSkipped("MariaDB"))("a server that ignores the case of tables finds cascades", async () => {
  const server = await startMariadb(["--lower-case-table-names=1"]);
  const pool = createPool({ uri: server.url(await server.createDatabase()) });
  await pool.query("CREATE TABLE People (id int PRIMARY KEY, name varchar(80) NOT NULL)");
  await pool.query(
    `CREATE TABLE Pets (id int PRIMARY KEY, name varchar(80) NOT NULL, owner int,
      FOREIGN KEY (owner) REFERENCES People (id) ON DELETE CASCADE)`,
  );
  const tables = [
    claimable(table("People"), { source: "RAILS_TABLE_USERS", subject, attributes }),
    claimable(table("Pets"), { source: "RAILS_TABLE_EMAILS", subject, attributes }),
  ];
  const database = mysql2(pool);
  expect(await database.storedCascades(tables)).toEqual([
    expect.stringContaining("Pets.owner → People deletes rows by ON DELETE CASCADE"),
  ]);
  await pool.end();
  await server.stop();
});

test.skipIf(isSkipped("MariaDB"))("a server that fills up char(n) with spaces has it refused", async () => {
  const server = await startMariadb(["--sql-mode=PAD_CHAR_TO_FULL_LENGTH"]);
  const pool = createPool({ uri: server.url(await server.createDatabase()) });
  await pool.query("CREATE TABLE people (id int PRIMARY KEY, name char(80) NOT NULL, bio char(10))");
  expect(await mysql2(pool).storedFaults([claimablePeople])).toEqual([
    "has people, whose name is a char(80), which the database fills up with spaces: convert it to " +
      "varchar(80) or text",
  ]);
  await pool.end();
  await server.stop();
});

test.skipIf(isSkipped("MariaDB"))("connections that save late or hide rows are refused", async () => {
  const server = await startMariadb();
  const uri = server.url(await server.createDatabase());
  const admin = createPool({ uri });
  await admin.query("CREATE TABLE people (id int PRIMARY KEY, name varchar(80) NOT NULL)");
  for (const [setting, usable] of [
    ["autocommit = OFF", "autocommit = ON"],
    ["completion_type = CHAIN", "completion_type = NO_CHAIN"],
    ["sql_select_limit = 1000", "sql_select_limit = 18446744073709551615"],
  ]) {
    const pool = createPool({ uri });
    pool.pool.on("connection", (connection) => connection.query(`SET ${setting}`));
    expect(await mysql2(pool).storedFaults([claimablePeople])).toEqual([
      `cannot be claimed by connections with ${setting}: let the pool use ${usable}`,
    ]);
    await pool.end();
  }
  expect(await mysql2(admin).storedFaults([claimablePeople])).toEqual([]);
  await admin.end();
  await server.stop();
});

function suite(kind: DriverKind): void {
  let driver: Driver;
  let coordinator: TestCoordinator;
  let cell: Cell<Tx>;

  const cellOf = (tables: readonly Claimable[], options: Partial<CellOptions<Tx>> = {}): Cell<Tx> => {
    const client = clientOf(coordinator);
    return createCell<Tx>({
      client,
      database: driver.database,
      tables,
      ...patientCell,
      ...options,
    });
  };
  const createPeople = (): Promise<unknown> =>
    driver.run(
      `CREATE TABLE people (id ${kind.serial}, name varchar(80) NOT NULL UNIQUE, bio text,
        notes ${kind.json})`,
    );
  const insert = (row: Partial<Person>): Promise<Person> => cell.transaction((tx) => tx.insert(people, row));
  const leases = (): Promise<unknown[]> => driver.rows("SELECT uuid FROM leasehold_outstanding_leases");

  beforeAll(async () => {
    driver = await kind.start();
    coordinator = await startTestCoordinator();
    await cellOf([claimablePeople]).install();
  });
  beforeEach(async () => {
    await driver.run("DROP TABLE IF EXISTS pets");
    await driver.run("DROP TABLE IF EXISTS people");
    await createPeople();
    cell = cellOf([claimablePeople]);
  });
  afterAll(async () => {
    await coordinator.close();
    await driver.stop();
  });

  test("a stored row is answered with all its columns", async () => {
    const name = fresh("ada");
    const ada = await insert({ name, notes: { born: 1815 } });
    expect(ada).toMatchObject({ name, bio: null });
    expect(JSON.stringify(ada.notes)).toContain("1815");
    const [changed] = await cell.transaction((tx) =>
      tx.update(people, { id: ada.id }, { notes: { a: [1, 2] } }),
    );
    expect(JSON.stringify(changed?.notes)).toMatch(/\[1, ?2\]/);
  });

  test.each([
    ["attributes.title", { attributes: { title: "USERNAMES" } }],
    ["id", { id: "number" }],
    ["subject.id", { subject: { type: "USER", id: "number" } }],
    ["changedAt", { changedAt: "bio" }],
    ["changedAt", { changedAt: "updated" }],
  ])("`%s` that the table does not have is refused at the first use", async (option, wrong) => {
    const given = { source: "RAILS_TABLE_USERS", subject, attributes, ...wrong };
    const odd = cellOf([claimable(people, given as never)]);
    await expect(odd.transaction((tx) => tx.insert(people, { name: fresh("a") }))).rejects.toThrow(
      `\`${option}\` names`,
    );
  });

  test("a table that the database does not have is refused", async () => {
    const ghosts = table("ghosts");
    const odd = cellOf([
      claimable(ghosts, { source: "RAILS_TABLE_USERS", subject: { type: "USER", id: "id" }, attributes }),
    ] as never);
    await expect(odd.transaction((tx) => tx.insert(ghosts, { name: "a" }))).rejects.toThrow(
      "has ghosts, and the database has no such table",
    );
  });

  test("a table in which several rows may have the same id is refused at the first use", async () => {
    const insertInto = async (name: string, keys: string): Promise<unknown> => {
      const its = table<{ id: number; tenant: number; name: string }>(name);
      await driver.run(
        `CREATE TABLE ${name} (id int NOT NULL, tenant int NOT NULL, name varchar(80)${keys})`,
      );
      const given = { source: "RAILS_TABLE_USERS", subject, attributes } as const;
      const row = { id: 1, tenant: 1, name: fresh("ada") };
      return cellOf([claimable(its, given)]).transaction((tx) => tx.insert(its, row));
    };
    const refused = ["", ", PRIMARY KEY (id, tenant)", ", UNIQUE (tenant), UNIQUE (tenant, id)"];
    for (const [index, keys] of refused.entries()) {
      await expect(insertInto(`shared_${index}`, keys)).rejects.toThrow("several rows may have the same id");
      expect(await driver.rows(`SELECT name FROM shared_${index}`)).toEqual([]);
    }
    const right = [", PRIMARY KEY (id)", ", PRIMARY KEY (tenant, id), UNIQUE (id)"];
    for (const [index, keys] of right.entries())
      expect(await insertInto(`own_${index}`, keys)).toMatchObject({ id: 1 });
  });

  test("a view is refused", async () => {
    await driver.run("CREATE VIEW short AS SELECT * FROM people WHERE name LIKE '__'");
    const view = table<{ id: number; name: string }>("short");
    const given = { source: "RAILS_TABLE_USERS", subject, attributes } as const;
    const inserted = cellOf([claimable(view, given)]).transaction((tx) =>
      tx.insert(view, { id: 1, name: fresh("ada") }),
    );
    await expect(inserted).rejects.toThrow("has short, which is a view or a foreign table");
    await driver.run("DROP VIEW short");
    expect(await driver.rows("SELECT name FROM people")).toEqual([]);
  });

  const codes = table<{ id: number; code: string; team: string; owner: string }>("codes");
  const codeOptions = { source: "RAILS_TABLE_USERS", subject, attributes: { code: "USERNAMES" } } as const;
  const code = { code: "ada", team: "red", owner: "7" };

  if (kind.server === "PostgreSQL")
    test("columns that PostgreSQL pads with spaces are refused", async () => {
      await driver.run("CREATE DOMAIN team_code AS char(9)");
      await driver.run(
        "CREATE TABLE codes (id serial PRIMARY KEY, code char(8), team team_code, owner bpchar)",
      );
      const insertCode = (given: Claimable) => cellOf([given]).transaction((tx) => tx.insert(codes, code));
      await expect(insertCode(claimable(codes, codeOptions))).rejects.toThrow(
        "`tables` has codes, whose code is a character(8), which the database fills up with spaces: " +
          "convert it to varchar(8) or text",
      );
      await driver.run("ALTER TABLE codes ALTER code TYPE varchar(8)");
      await expect(insertCode(claimable(codes, { ...codeOptions, scope: "team" }))).rejects.toThrow(
        "whose team is a character(9)",
      );
      await driver.run("ALTER TABLE codes ALTER team TYPE text");
      const owned = { ...codeOptions, scope: "team", subject: { type: "USER", id: "owner" } } as const;
      expect(await insertCode(claimable(codes, owned))).toMatchObject(code);
    });
  else
    test("values of char(n) are names without their spaces", async () => {
      await driver.run(`CREATE TABLE codes (id ${kind.serial}, code char(8), team char(9), owner char(9))`);
      const owned = { ...codeOptions, scope: "team", subject: { type: "USER", id: "owner" } } as const;
      const insertCode = cellOf([claimable(codes, owned)]).transaction((tx) => tx.insert(codes, code));
      expect(await insertCode).toMatchObject(code);
      const found = await clientOf(coordinator).records.find({ type: "USERNAMES", value: code.code });
      expect(found?.record).toMatchObject({ scope: code.team, subject: { id: code.owner } });
    });

  test("a table whose ids are bytes is refused", async () => {
    const bytes = kind.server === "PostgreSQL" ? "bytea" : "varbinary(16)";
    await driver.run(`CREATE TABLE tokens (id ${bytes} PRIMARY KEY, code varchar(80))`);
    const tokens = table<{ id: string; code: string }>("tokens");
    await expect(cellOf([claimable(tokens, codeOptions)]).verify()).rejects.toThrow(
      `\`tables\` has tokens, whose id is ${bytes}, so verification could not find the rows of its claims`,
    );
  });

  if (kind.server === "MariaDB")
    test("a table whose name differs from that of another one only in case is read by itself", async () => {
      await driver.run("CREATE TABLE PEOPLE (ID int PRIMARY KEY, other text) ENGINE = MyISAM");
      expect(await insert({ name: fresh("ada") })).toEqual({
        id: 1,
        name: expect.any(String),
        bio: null,
        notes: null,
      });
      const other = claimable(table("PEOPLE"), {
        source: "RAILS_TABLE_EMAILS",
        id: "ID",
        subject: { type: "USER", id: "ID" },
        attributes: { other: "EMAILS" },
      });
      await expect(cellOf([claimablePeople, other]).verify()).rejects.toThrow(
        "has PEOPLE, which MyISAM stores",
      );
    });

  if (kind.server === "MariaDB")
    test("a table without transactions is refused", async () => {
      await driver.run("ALTER TABLE people ENGINE = MyISAM");
      await expect(insert({ name: fresh("ada") })).rejects.toThrow(
        "has people, which MyISAM stores without transactions",
      );
      await expect(cell.verify()).rejects.toThrow("MyISAM");
      expect(await driver.rows("SELECT name FROM people")).toEqual([]);
      await driver.run("ALTER TABLE people ENGINE = InnoDB");
      expect(await insert({ name: fresh("ada") })).toMatchObject({ id: 1 });
    });

  test("a table of drizzle is refused, because its own names and defaults would be ignored", async () => {
    const drizzled = pgTable("people", { id: serial().primaryKey(), name: text().notNull() });
    const odd = cellOf([claimable(drizzled, { source: "RAILS_TABLE_USERS", subject, attributes })] as never);
    await expect(odd.transaction((tx) => tx.insert(drizzled, { name: fresh("ada") }))).rejects.toThrow(
      "`tables` has people as a table of drizzle",
    );
    await expect(odd.verify()).rejects.toThrow("`tables` has people as a table of drizzle");
  });

  test("a value for a column that the table does not have is refused, not dropped", async () => {
    const row = { name: fresh("ada"), nickname: "countess" } as never;
    await expect(insert(row)).rejects.toThrow("`nickname` is not a column of people");
    const ada = await insert({ name: fresh("ada") });
    const set = { nickname: "countess" } as never;
    await expect(cell.transaction((tx) => tx.update(people, { id: ada.id }, set))).rejects.toThrow(
      "`nickname`",
    );
    expect(await driver.rows("SELECT name FROM people")).toHaveLength(1);
  });

  test("columns that a migration adds or drops are noticed", async () => {
    await insert({ name: fresh("before") });
    await driver.run("ALTER TABLE people ADD COLUMN nickname text");
    const name = fresh("ada");
    expect(await insert({ name, nickname: "countess" } as never)).toMatchObject({
      name,
      nickname: "countess",
    });
    await driver.run("ALTER TABLE people DROP COLUMN nickname");
    // The statement that notices it fails, and its rows and lease are undone.
    await expect(insert({ name: fresh("eve") })).rejects.toThrow("nickname");
    const eve = fresh("eve");
    expect(await insert({ name: eve })).not.toHaveProperty("nickname");
    expect(await leases()).toEqual([]);
  });

  test("conditions are objects of columns, or SQL with bound values", async () => {
    const [ada, bob, eve] = [fresh("ada"), fresh("bob"), fresh("eve")];
    await cell.transaction((tx) =>
      tx.insertMany(people, [{ name: ada, bio: "$1" }, { name: bob }, { name: eve, bio: "it's" }]),
    );
    const namesOf = async (where: Parameters<typeof matched>[0]) =>
      (await matched(where)).map(({ name }) => name).toSorted();
    const matched = (
      where: Partial<Record<keyof Person, unknown>> | ReturnType<typeof condition> | undefined,
    ) => cell.transaction((tx) => tx.update(people, where as never, { notes: null }));
    expect(await namesOf({ name: [ada, eve] })).toEqual([ada, eve]);
    expect(await namesOf({ bio: null })).toEqual([bob]);
    expect(await namesOf({ name: eve, bio: "it's" })).toEqual([eve]);
    expect(await namesOf({ name: [] })).toEqual([]);
    expect(await namesOf({ bio: ["$1", null] })).toEqual([ada, bob]);
    expect(await namesOf({ bio: [null] })).toEqual([bob]);
    expect(await namesOf(undefined)).toEqual([ada, bob, eve]);
    expect(await namesOf(condition("bio = '$1' AND name = $1 OR name = $2", [ada, bob]))).toEqual([ada, bob]);
    // A value is never a part of the statement.
    expect(await namesOf(condition("name = $1", ["x' OR 'a' = 'a"]))).toEqual([]);
    await expect(namesOf({ name: undefined })).rejects.toThrow("`where` has no value for name");
    await expect(namesOf({ nick: 1 } as never)).rejects.toThrow("`where` names nick");
    await expect(namesOf(condition("name = $1", [undefined]))).rejects.toThrow("`where` has no value for $1");
    await expect(namesOf(condition("name = $2", [ada]))).rejects.toThrow("`where` uses $2, and has 1 values");
    for (const odd of [
      "1 = 1 -- $1",
      "1 = 1 /* $1 */",
      "name = $$ada$$",
      "name = 'it\\'s $1'",
      "name = 'ada",
    ])
      await expect(namesOf(condition(odd, [ada]))).rejects.toThrow("`where` must not contain comments");
    if (kind.name === "mysql2")
      await expect(namesOf(condition("bio = 'why?' AND name = $1", [ada]))).rejects.toThrow(
        "`where` must not contain a question mark",
      );
    for (const odd of ["name = 'ada'", 7, null, [ada], new Map(), Promise.resolve()])
      await expect(namesOf(odd as never)).rejects.toThrow("`where` must be an object of columns");
  });

  test("a local duplicate is `taken`, whoever wrote the statement", async () => {
    const name = fresh("ada");
    await insert({ name });
    const taken = [{ table: "people", field: "name", id: undefined, problem: "taken" }];
    const error = await insert({ name }).catch((thrown: unknown) => thrown);
    expect(toValidationErrors(error)).toEqual(taken);
    // The driver's own error, because the application may not know drizzle.
    expect(error).toHaveProperty("code");
    const behind = cell.transaction((tx) => tx.db.query(`INSERT INTO people (name) VALUES ('${name}')`));
    expect(toValidationErrors(await behind.catch((thrown: unknown) => thrown))).toEqual(taken);
  });

  test("a foreign key that deletes claimed rows is refused, unless it is accepted", async () => {
    await driver.run(
      `CREATE TABLE pets (id ${kind.serial}, name varchar(80) NOT NULL, owner int,
        FOREIGN KEY (owner) REFERENCES people (id) ON DELETE CASCADE)`,
    );
    const tables = [claimablePeople, claimablePets];
    const work = (its: Cell<Tx>) => its.transaction((tx) => tx.insert(people, { name: fresh("ada") }));
    const strict = cellOf(tables);
    await expect(work(strict)).rejects.toThrow("pets.owner → people deletes rows by ON DELETE CASCADE");
    await expect(strict.verify()).rejects.toThrow("ON DELETE CASCADE");
    expect(await work(cellOf(tables, { cascades: "accept" }))).toHaveProperty("id");
    await driver.run("DROP TABLE pets");
    await driver.run(
      `CREATE TABLE pets (id ${kind.serial}, name varchar(80) NOT NULL, owner int,
        FOREIGN KEY (owner) REFERENCES people (id))`,
    );
    expect(await work(strict)).toHaveProperty("id");
  });

  test("a foreign key that changes a subject or scope is refused", async () => {
    await driver.run(
      `CREATE TABLE pets (id ${kind.serial}, name varchar(80) NOT NULL, owner varchar(80), home int,
        FOREIGN KEY (owner) REFERENCES people (name) ON UPDATE CASCADE,
        FOREIGN KEY (home) REFERENCES people (id) ON DELETE SET NULL)`,
    );
    const options = { source: "RAILS_TABLE_EMAILS", attributes: { name: "EMAILS" } } as const;
    const owned = table<{ id: number; name: string; owner: string; home: number | null }>("pets");
    const insertWith = (its: Claimable) =>
      cellOf([claimablePeople, its]).transaction((tx) => tx.insert(people, { name: fresh("ada") }));
    const ownSubject = claimable(owned, { ...options, subject: { type: "USER", id: "owner" } });
    await expect(insertWith(ownSubject)).rejects.toThrow(
      "changes the subject of claims by ON UPDATE CASCADE",
    );
    const scoped = claimable(owned, { ...options, subject, scope: "home" });
    await expect(insertWith(scoped)).rejects.toThrow("changes the scope of claims by ON DELETE SET NULL");
    expect(await insertWith(claimable(owned, { ...options, subject }))).toHaveProperty("id");
  });

  test("a write that nobody awaits is never saved without its lease", async () => {
    const names = [fresh("ada"), fresh("bob"), fresh("eve")];
    const rows = names.map((name) => ({ name }));
    // The first use of a table reads its description between the call and the insert.
    const forgotten = cellOf([claimablePeople]).transaction(async (tx) => {
      void tx.insertMany(people, rows).catch(() => {});
      return Promise.resolve();
    });
    await expect(forgotten).rejects.toThrow("await every call of tx");
    const failed = cellOf([claimablePeople]).transaction(async (tx) => {
      void tx.insertMany(people, rows).catch(() => {});
      await Promise.resolve();
      throw new Error("the body fails");
    });
    await expect(failed).rejects.toThrow("the body fails");
    await driver.run("SELECT 1");
    expect(await driver.rows("SELECT name FROM people")).toEqual([]);
    expect(await leases()).toEqual([]);
  });

  // On PostgreSQL, the failed one ends the whole transaction.
  if (kind.name === "mysql2")
    test("two inserts of several rows at the same time undo only their own rows", async () => {
      const [taken, kept, undone] = [fresh("ada"), fresh("bob"), fresh("eve")];
      await insert({ name: taken });
      await cell.transaction((tx) =>
        Promise.allSettled([
          tx.insertMany(people, [{ name: kept }, { name: fresh("kim") }]),
          tx.insertMany(people, [{ name: undone }, { name: taken }]),
        ]),
      );
      expect(await coordinatorOwns(kept)).toEqual([true]);
      expect(await coordinatorOwns(undone)).toEqual([false]);
      expect(await driver.rows(`SELECT name FROM people WHERE name = '${undone}'`)).toEqual([]);
    });

  test("rows of a refused insert are not saved if the body catches the error", async () => {
    const rows = Array.from({ length: 1_500 }, () => ({ name: fresh("many") }));
    Object.assign(rows[1_200] as object, { nickname: "countess" });
    const caught = cell.transaction(async (tx) => {
      await tx.insertMany(people, rows).catch(() => {});
    });
    await expect(caught).rejects.toThrow("`nickname` is not a column of people");
    expect(await driver.rows("SELECT name FROM people")).toEqual([]);
  });

  test("a column with a number as its name is refused", async () => {
    await driver.run(`ALTER TABLE people ADD COLUMN ${kind.name === "pg" ? '"2024"' : "`2024`"} text`);
    const odd = cellOf([claimable(people, { source: "RAILS_TABLE_USERS", subject, attributes })]);
    await expect(odd.transaction((tx) => tx.insert(people, { name: fresh("ada") }))).rejects.toThrow(
      "whose column 2024 needs another name",
    );
  });

  test("a table that is named twice is one table", async () => {
    const name = fresh("ada");
    const again = table<Person>("people");
    expect(await cell.transaction((tx) => tx.insert(again, { name }))).toMatchObject({ name });
    await expect(cell.transaction((tx) => tx.insert(pets, { name }))).rejects.toThrow(
      "pets is not among the cell's tables",
    );
  });

  test("a transaction whose connection is lost in its body fails, and the next one works", async () => {
    const name = fresh("ada");
    const lost = cell.transaction(async (tx) => {
      await tx.insert(people, { name });
      await driver.cut(tx.db);
      // The driver notices it between two statements.
      await setImmediate();
      await tx.insert(people, { name: fresh("bob") });
    });
    await expect(lost).rejects.toThrow();
    expect(await driver.rows("SELECT name FROM people")).toEqual([]);
    expect(await insert({ name })).toMatchObject({ name });
  });

  test("a body that catches the error of a statement saves all or nothing", async () => {
    const [ada, bob] = [fresh("ada"), fresh("bob")];
    await insert({ name: ada });
    const caught = cell.transaction(async (tx) => {
      await tx.insert(people, { name: bob });
      await tx.insert(people, { name: ada }).catch(() => {});
    });
    const isSaved = await caught.then(
      () => true,
      () => false,
    );
    const [found] = await coordinatorOwns(bob);
    expect(await driver.rows(`SELECT name FROM people WHERE name = '${bob}'`)).toHaveLength(isSaved ? 1 : 0);
    expect(found).toBe(isSaved);
    expect(await leases()).toEqual([]);
  });

  async function coordinatorOwns(name: string): Promise<boolean[]> {
    const client = createClient({
      url: coordinator.url,
      key: coordinator.keys.router,
      fetch: (to, init) => coordinator.fetch(to, init),
      ...patientClient,
    });
    return (await client.records.lookup([{ type: "USERNAMES", value: name }])).map(({ found }) => found);
  }
}
