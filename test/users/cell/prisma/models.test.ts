/** What Prisma adds to rows: its own names, defaults, types, conditions, omitted fields and errors. */
import { PrismaPg } from "@prisma/adapter-pg";
import { setImmediate } from "node:timers/promises";
import { v7 as uuidv7 } from "uuid";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCell, type Cell, type CellOptions } from "../../../../src/users/cell/cell.ts";
import { patientCell, patientClient } from "../../../../src/users/cell/conformance/target.ts";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";
import {
  prismaPostgres,
  prismaTables,
  type PrismaPostgresOptions,
} from "../../../../src/users/cell/prisma/index.ts";
import { toValidationErrors } from "../../../../src/users/cell/validation.ts";
import { createClient } from "../../../../src/users/client/client.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { clientOf } from "../../../support/client-of.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";
import { PrismaClient, type Prisma } from "./generated/client.ts";
import { prismaDatabase, type PrismaDatabase } from "./start.ts";

type Tx = Prisma.TransactionClient;

const createTables = [
  `CREATE TABLE people (id text PRIMARY KEY, user_name text NOT NULL UNIQUE,
    score bigint NOT NULL DEFAULT 0, balance numeric, settings jsonb,
    created_at timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamptz(3) NOT NULL)`,
  `CREATE TABLE "Handles" (id uuid PRIMARY KEY,
    person_id text REFERENCES people (id) ON DELETE CASCADE, text text NOT NULL)`,
  `CREATE UNIQUE INDEX one_text ON "Handles" (lower(text))`,
  `CREATE TABLE "Audit" (id serial PRIMARY KEY, note text NOT NULL)`,
];

let serial = 0;
const fresh = (name: string): string => `${name}-${(serial += 1)}`;

const attributes = { userName: "USERNAMES" } as const;
const claimablesOf = (prisma: PrismaClient): Claimable[] => {
  const { person, handle } = prismaTables(prisma);
  return [
    claimable(person, {
      source: "RAILS_TABLE_USERS",
      subject: { type: "USER", id: "id" },
      changedAt: "updatedAt",
      attributes,
    }),
    claimable(handle, {
      source: "RAILS_TABLE_EMAILS",
      subject: { type: "USER", id: "personId" },
      attributes: { text: "EMAILS" },
    }),
  ];
};

describe.skipIf(isSkipped("PostgreSQL"))("Prisma on PostgreSQL", () => {
  let server: DatabaseServer;
  let opened: PrismaDatabase;
  let prisma: PrismaClient;
  let coordinator: TestCoordinator;
  let cell: Cell<Tx>;

  const cellOf = (
    database = prismaPostgres(prisma),
    tables = claimablesOf(prisma),
    options: Partial<CellOptions<Tx>> = {},
  ): Cell<Tx> => {
    const client = clientOf(coordinator);
    return createCell<Tx>({
      client,
      database,
      tables,
      cascades: "accept",
      ...patientCell,
      ...options,
    });
  };
  const tables = () => prismaTables(prisma);
  const owns = async (type: "USERNAMES" | "EMAILS", value: string): Promise<boolean> => {
    const client = createClient({
      url: coordinator.url,
      key: coordinator.keys.router,
      fetch: (to, init) => coordinator.fetch(to, init),
      ...patientClient,
    });
    const [result] = await client.records.lookup([{ type, value }]);
    return result?.found ?? false;
  };
  const insert = (userName: string) => cell.transaction((tx) => tx.insert(tables().person, { userName }));
  const leases = () => opened.query("SELECT uuid FROM leasehold_outstanding_leases");

  beforeAll(async () => {
    server = await startPostgres();
    opened = prismaDatabase(server.url(await server.createDatabase()));
    ({ prisma } = opened);
    coordinator = await startTestCoordinator();
    for (const statement of createTables) await opened.query(statement);
    await cellOf().install();
  });
  beforeEach(async () => {
    cell = cellOf();
    await opened.query("DELETE FROM people");
    await opened.query('DELETE FROM "Handles"');
  });
  afterAll(async () => {
    await coordinator.close();
    await opened.stop();
    await server.stop();
  });

  test("rows have Prisma's names, defaults and types", async () => {
    const { person } = tables();
    const userName = fresh("ada");
    const ada = await cell.transaction((tx) =>
      tx.insert(person, { userName, score: 2n ** 62n, balance: "1.50", settings: { a: [1] } }),
    );
    expect(ada).toMatchObject({ userName, score: 2n ** 62n, settings: { a: [1] } });
    expect(ada.id).toMatch(/^c[a-z\d]{20,}$/);
    expect(String(ada.balance)).toBe("1.5");
    expect(Math.abs(ada.updatedAt.getTime() - Date.now())).toBeLessThan(3_600_000);
    expect(await prisma.person.findUnique({ where: { userName } })).toEqual(ada);
    expect(await owns("USERNAMES", userName)).toBe(true);

    await opened.query("UPDATE people SET updated_at = '2001-01-01'");
    const next = fresh("grace");
    const [grace] = await cell.transaction((tx) => tx.update(person, { userName }, { userName: next }));
    expect(grace).toMatchObject({ id: ada.id, userName: next, score: 2n ** 62n });
    expect(grace?.updatedAt.getFullYear()).toBeGreaterThan(2001);
    expect([await owns("USERNAMES", userName), await owns("USERNAMES", next)]).toEqual([false, true]);

    const deleted = await cell.transaction((tx) => tx.delete(person, { userName: next }));
    expect(deleted).toEqual([grace]);
    expect(await owns("USERNAMES", next)).toBe(false);
    expect(await leases()).toEqual([]);
  });

  test("a row that an extension hides keeps its name", async () => {
    const visible = { score: { gte: 0 } };
    const extended = prisma.$extends({
      query: {
        person: {
          findMany: ({ args, query }) => query({ ...args, where: { AND: [args.where ?? {}, visible] } }),
        },
      },
    }) as unknown as PrismaClient;
    const hiding = cellOf(prismaPostgres(extended), claimablesOf(extended));
    const { person } = prismaTables(extended);
    const userName = fresh("ada");
    await hiding.transaction((tx) => tx.insert(person, { userName }));
    const hide = hiding.transaction((tx) => tx.update(person, { userName }, { score: -1n }));
    await expect(hide).rejects.toMatchObject({ name: "InvalidArgumentError", field: "transaction" });
    expect(await prisma.person.findUnique({ where: { userName } })).toMatchObject({ score: 0n });
    await opened.query("UPDATE people SET score = -1");
    await expect(hiding.verify({ apply: true, recentMs: 0 })).rejects.toThrow("does not read the row");
    expect(await owns("USERNAMES", userName)).toBe(true);
  });

  test("an update takes Prisma's operations, such as increment", async () => {
    const { person } = tables();
    const userName = fresh("ada");
    await insert(userName);
    const [ada] = await cell.transaction((tx) =>
      tx.update(person, { userName }, { score: { increment: 2 } }),
    );
    expect(ada).toMatchObject({ userName, score: 2n });
    await expect(
      // @ts-expect-error the model has no such field
      cell.transaction((tx) => tx.update(person, { userName }, { nickname: "countess" })),
    ).rejects.toThrow("nickname");
  });

  test("rows with different fields are answered in the order in which they were given", async () => {
    const [a, b, c] = [fresh("a"), fresh("b"), fresh("c")];
    const stored = await cell.transaction((tx) =>
      tx.insertMany(tables().person, [
        { userName: c, score: 3n },
        { userName: a },
        { id: fresh("own"), userName: b, settings: [] },
      ]),
    );
    expect(stored.map(({ userName }) => userName)).toEqual([c, a, b]);
  });

  test("tx.db is Prisma's client of the same transaction", async () => {
    const { person } = tables();
    const [note, userName] = [fresh("note"), fresh("ada")];
    const failed = cell.transaction(async (tx) => {
      await tx.db.audit.create({ data: { note } });
      await tx.insert(person, { userName });
      throw new RangeError("no");
    });
    await expect(failed).rejects.toThrow(RangeError);
    expect(await prisma.audit.findMany({ where: { note } })).toEqual([]);
    await cell.transaction(async (tx) => {
      await tx.db.audit.create({ data: { note } });
      await tx.insert(person, { userName });
    });
    expect(await prisma.audit.count({ where: { note } })).toBe(1);
  });

  test("a uuid id and a condition on a relation work", async () => {
    const { person, handle } = tables();
    const [userName, another] = [fresh("ada"), fresh("bob")];
    const [ada, ours, other] = await cell.transaction(async (tx) => {
      const owner = await tx.insert(person, { userName });
      const { id: personId } = await tx.insert(person, { userName: another });
      return [
        owner,
        await tx.insert(handle, { personId: owner.id, text: fresh("ours") }),
        await tx.insert(handle, { personId, text: fresh("other") }),
      ];
    });
    const next = fresh("next");
    const changed = await cell.transaction((tx) =>
      tx.update(handle, { person: { userName }, id: { in: [ours.id, other.id] } }, { text: next }),
    );
    expect(changed).toEqual([{ id: ours.id, personId: ada.id, text: next }]);
    expect(await cell.transaction((tx) => tx.delete(handle, undefined))).toHaveLength(2);
  });

  test("a condition with an undefined value is refused, because Prisma would ignore it", async () => {
    const { person, handle } = tables();
    await insert(fresh("ada"));
    const missing = undefined as unknown as string;
    for (const where of [{ userName: missing }, { OR: [{ userName: { equals: missing } }] }])
      await expect(cell.transaction((tx) => tx.delete(person, where))).rejects.toThrow(
        "`where` has no value",
      );
    for (const odd of [null, "userName = 'ada'", [{ userName: "ada" }]])
      await expect(cell.transaction((tx) => tx.delete(person, odd as never))).rejects.toThrow(
        "`where` must be",
      );
    await expect(cell.transaction((tx) => tx.delete(handle, { texts: "a" } as never))).rejects.toThrow(
      "texts",
    );
    expect(await prisma.person.count()).toBe(1);
  });

  test("misspelled fields and models don't compile, and are refused", async () => {
    const { person, ...others } = tables();
    const userName = fresh("ada");
    const odd = { userName, nickname: "countess" };
    await expect(
      cell.transaction((tx) =>
        tx.insert(person, {
          userName,
          // @ts-expect-error the model has no such field
          nickname: "countess",
        }),
      ),
    ).rejects.toThrow("nickname");
    await expect(cell.transaction((tx) => tx.insert(person, odd))).rejects.toThrow("nickname");
    // @ts-expect-error the model has no such field
    await expect(cell.transaction((tx) => tx.update(person, { user: "a" }, {}))).rejects.toThrow();
    // @ts-expect-error a required field is missing
    await expect(cell.transaction((tx) => tx.insert(person, {}))).rejects.toThrow("userName");
    // @ts-expect-error the client has no such model
    expect(others.people).toBeUndefined();
    const options = { source: "RAILS_TABLE_USERS", subject: { type: "USER", id: "id" } } as const;
    // @ts-expect-error the model has no such field
    claimable(person, { ...options, attributes: { name: "USERNAMES" } });
    // @ts-expect-error a relation cannot be claimed
    claimable(person, { ...options, attributes: { handles: "EMAILS" } });
    expect(await prisma.person.count()).toBe(0);
  });

  test("a local duplicate is `taken`, also of a key that only the database knows", async () => {
    const { handle } = tables();
    const [userName, text] = [fresh("ada"), fresh("text")];
    const { id: personId } = await insert(userName);
    await cell.transaction((tx) => tx.insert(handle, { personId, text }));
    const problem = async (failing: Promise<unknown>) =>
      toValidationErrors(await failing.catch((error: unknown) => error));
    const taken = [{ table: "person", field: "userName", id: undefined, problem: "taken" }];
    expect(await problem(insert(userName))).toEqual(taken);
    const behind = cell.transaction((tx) => tx.db.person.create({ data: { userName } }));
    expect(await problem(behind)).toEqual(taken);
    const raw = cell.transaction(
      (tx) =>
        tx.db.$executeRaw`INSERT INTO people (id, user_name, updated_at) VALUES ('x', ${userName}, now())`,
    );
    expect(await problem(raw)).toEqual(taken);
    const upper = cell.transaction((tx) => tx.insert(handle, { personId, text: text.toUpperCase() }));
    expect(await problem(upper)).toMatchObject([{ table: "handle", field: "text", problem: "taken" }]);
  });

  test("rows that exist are skipped in a bulk insert", async () => {
    const { person } = tables();
    const [ada, bob] = [fresh("ada"), fresh("bob")];
    await insert(ada);
    await cell.bulkInsert(person, [{ userName: ada }, { userName: bob }], { skipRefused: true });
    expect(await prisma.person.count()).toBe(2);
    expect(await owns("USERNAMES", bob)).toBe(true);
  });

  test("a row that another transaction changes meanwhile is read again before it is changed", async () => {
    const { person } = tables();
    const [ada, grace] = [fresh("ada"), fresh("grace")];
    const { id } = await insert(ada);
    await insert(fresh("bob"));
    let locked!: () => void;
    let proceed!: () => void;
    const isLocked = new Promise<void>((resolve) => (locked = resolve));
    const mayProceed = new Promise<void>((resolve) => (proceed = resolve));
    const first = cell.transaction(async (tx) => {
      await tx.update(person, { id }, { userName: grace });
      locked();
      await mayProceed;
    });
    await isLocked;
    // It finds the row under its old name, and waits for the lock.
    const second = cell.transaction((tx) => tx.delete(person, { userName: ada }));
    const waits =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    await expect.poll(() => opened.query(waits)).toHaveLength(1);
    proceed();
    await first;
    expect(await second).toEqual([]);
    expect(await owns("USERNAMES", grace)).toBe(true);
    expect(await prisma.person.count()).toBe(2);
  });

  test("a bulk deletion goes on if others delete its first rows before they are locked", async () => {
    const { person } = tables();
    const [ada, bob, eve] = [fresh("ada"), fresh("bob"), fresh("eve")];
    for (const name of [ada, bob, eve]) await insert(name);
    const [first] = await prisma.person.findMany({ orderBy: { id: "asc" }, take: 1 });
    const small = cellOf(undefined, undefined, { chunk: { records: 1 } });
    const other = new Client({ connectionString: opened.connectionString });
    await other.connect();
    await other.query("BEGIN");
    await other.query("DELETE FROM people WHERE id = $1", [first?.id]);
    const deletion = small.bulkDelete(person, undefined);
    const waits =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    await expect.poll(() => opened.query(waits)).toHaveLength(1);
    await other.query("COMMIT");
    await other.end();
    await deletion;
    expect(await prisma.person.count()).toBe(0);
  });

  test("verification repairs rows that were changed behind the SDK, and skips recent ones", async () => {
    const [ada, ghost, young] = [fresh("ada"), fresh("ghost"), fresh("young")];
    await insert(ada);
    await prisma.person.create({ data: { userName: ghost } });
    await opened.query("UPDATE people SET updated_at = now() - interval '2 days'");
    await prisma.person.create({ data: { userName: young } });
    await cell.verify({ apply: true });
    expect([await owns("USERNAMES", ghost), await owns("USERNAMES", young)]).toEqual([true, false]);
  });

  test("a cascade that the database makes is refused, unless it is accepted", async () => {
    const strict = cellOf(undefined, undefined, { cascades: "refuse" } as never);
    await expect(
      strict.transaction((tx) => tx.insert(tables().person, { userName: fresh("a") })),
    ).rejects.toThrow("handle.personId → person deletes rows by ON DELETE CASCADE");
  });

  test("the default of the client's option `omit` does not hide claimed fields", async () => {
    const { connectionString } = opened;
    const hiding = new PrismaClient({
      adapter: new PrismaPg({ connectionString }),
      omit: { person: { userName: true } },
    });
    const { person } = prismaTables(hiding);
    const its = cellOf(prismaPostgres(hiding) as never, [
      claimable(person, { source: "RAILS_TABLE_USERS", subject: { type: "USER", id: "id" }, attributes }),
    ]);
    const userName = fresh("ada");
    expect(await its.transaction((tx) => tx.insert(person, { userName }))).toMatchObject({ userName });
    await its.transaction((tx) => tx.delete(person, { userName }));
    expect(await owns("USERNAMES", userName)).toBe(false);
    await hiding.$disconnect();
  });

  test("an extended client works, and its tx.db has the extension", async () => {
    const extended = prisma.$extends({
      model: { person: { named: (userName: string) => ({ userName }) } },
      query: { person: { createManyAndReturn: ({ args, query }) => query(args) } },
    });
    const { person } = prismaTables(extended);
    const database = prismaPostgres(extended);
    const ran = await database.run(async (tx) => tx.person.named("ada"));
    expect(ran).toEqual({ kind: "committed", value: { userName: "ada" } });
    const its = cellOf(database as never, [
      claimable(person, { source: "RAILS_TABLE_USERS", subject: { type: "USER", id: "id" }, attributes }),
    ]);
    const userName = fresh("ada");
    await its.transaction((tx) => tx.insert(person, { userName }));
    expect(await owns("USERNAMES", userName)).toBe(true);
  });

  test("models are in the schema that Prisma's adapter has", async () => {
    await opened.query("CREATE SCHEMA crm");
    await opened.query("CREATE TABLE crm.people (LIKE public.people INCLUDING ALL)");
    const adapter = new PrismaPg({ connectionString: opened.connectionString }, { schema: "crm" });
    const crm = new PrismaClient({ adapter });
    const { person } = prismaTables(crm);
    const its = cellOf(prismaPostgres(crm, { schema: "crm" }), claimablesOf(crm).slice(0, 1));
    const userName = fresh("ada");
    await its.transaction((tx) => tx.insert(person, { userName }));
    await its.transaction((tx) => tx.update(person, { userName }, { score: 1n }));
    await opened.query("UPDATE crm.people SET updated_at = now() - interval '2 days'");
    expect(await its.verify()).toMatchObject({ counts: { rows: 1, claims: 1, missing: 0 } });
    const again = its.transaction((tx) => tx.insert(person, { userName }));
    expect(toValidationErrors(await again.catch((error: unknown) => error))).toMatchObject([
      { field: "userName", problem: "taken" },
    ]);
    expect(await opened.query("SELECT user_name, score FROM crm.people")).toEqual([
      { user_name: userName, score: "1" },
    ]);
    await crm.$disconnect();
  });

  test("the client of a transaction, of replicas and of nothing is refused", async () => {
    await prisma.$transaction(async (tx) => {
      // @ts-expect-error it cannot begin a transaction
      expect(() => prismaPostgres(tx)).toThrow("not the client of a transaction");
    });
    const replicated = prisma.$extends({ client: { $replica: () => prisma } });
    expect(() => prismaPostgres(replicated)).toThrow("without the extension for read replicas");
    expect(() => prismaPostgres({} as never)).toThrow("`prisma` must be");
  });

  describe("the end of a transaction", () => {
    const leaseOf = (uuid: string) => ({ uuid, sources: [] });
    const isStored = async (uuid: string) =>
      (await opened.query(`SELECT 1 FROM leasehold_outstanding_leases WHERE uuid = '${uuid}'`)).length > 0;
    const run = (body: (tx: Tx) => Promise<unknown>, options?: PrismaPostgresOptions) => {
      const database = prismaPostgres(prisma, options);
      const uuid = uuidv7();
      const ran = database.run(async (tx) => {
        await database.insertLease(tx, leaseOf(uuid));
        await body(tx);
      });
      return ran.then(async (result) => ({ result, isSaved: await isStored(uuid) }));
    };
    const atCommit = (name: string, statement: string) =>
      opened.query(`CREATE TABLE ${name} (id int);
        CREATE FUNCTION ${name}_end() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN ${statement}; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER ${name}_end AFTER INSERT ON ${name}
          DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ${name}_end()`);

    test("a connection that is lost at COMMIT leaves the outcome unknown", async () => {
      await atCommit("lost", "PERFORM pg_terminate_backend(pg_backend_pid())");
      const { result, isSaved } = await run((tx) => tx.$executeRaw`INSERT INTO lost VALUES (1)`);
      expect(result.kind).toBe("unknown");
      expect(isSaved).toBe(false);
      // Prisma returns the lost connection to the pool, so the next statement may fail.
      await expect.poll(async () => (await run(async () => {})).isSaved).toBe(true);
    });

    test("an error that the database answers to COMMIT is a certain rollback", async () => {
      await atCommit("refused", "RAISE EXCEPTION USING ERRCODE = '23505'");
      const { result, isSaved } = await run((tx) => tx.$executeRaw`INSERT INTO refused VALUES (1)`);
      expect(result.kind).toBe("rolled_back");
      expect(isSaved).toBe(false);
    });

    test("a transaction whose body caught the error of a statement is a certain rollback", async () => {
      const { result, isSaved } = await run((tx) => tx.$queryRaw`SELECT 1 / 0`.catch(() => {}));
      expect(result.kind).toBe("rolled_back");
      expect(isSaved).toBe(false);
    });

    test("a transaction that conflicts at COMMIT is a certain rollback", async () => {
      await opened.query("CREATE TABLE counted (id int)");
      const other = prismaPostgres(prisma, { transaction: { isolationLevel: "serializable" } });
      const { result, isSaved } = await run(
        async (tx) => {
          await tx.$queryRaw`SELECT count(*) FROM counted`;
          await tx.$executeRaw`INSERT INTO counted VALUES (2)`;
          await other.run(async (its) => {
            await its.$queryRaw`SELECT count(*) FROM counted`;
            await its.$executeRaw`INSERT INTO counted VALUES (1)`;
          });
        },
        { transaction: { isolationLevel: "serializable" } },
      );
      expect(result.kind).toBe("rolled_back");
      expect(isSaved).toBe(false);
    });

    test("a connection that is lost in the body is a certain rollback, and the process goes on", async () => {
      const { result, isSaved } = await run(async (tx) => {
        const [own] = await tx.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
        await opened.query(`SELECT pg_terminate_backend(${own?.pid}, 60000)`);
        await setImmediate();
        await tx.audit.create({ data: { note: "late" } });
      });
      expect(result.kind).toBe("rolled_back");
      expect(isSaved).toBe(false);
      expect(await prisma.audit.count({ where: { note: "late" } })).toBe(0);
    });

    test("Prisma's timeout does not end a transaction, and the rest of a nested write", async () => {
      await opened.query(`CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$`);
      await opened.query("CREATE TRIGGER nap BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION nap()");
      const adapter = new PrismaPg({ connectionString: opened.connectionString });
      const strict = new PrismaClient({ adapter, transactionOptions: { timeout: 100 } });
      const [userName, text] = [fresh("ada"), fresh("text")];
      const nested = { data: { userName, handles: { create: [{ text }] } } };
      // Prisma alone sends the second statement outside the transaction, where only a foreign key refuses it.
      await expect(strict.$transaction((tx) => tx.person.create(nested))).rejects.toThrow();
      const ran = await prismaPostgres(strict).run((tx) => tx.person.create(nested));
      await opened.query("DROP TRIGGER nap ON people");
      expect(ran.kind).toBe("committed");
      expect(await prisma.handle.findMany({ where: { person: { userName } } })).toHaveLength(1);
      await strict.$disconnect();
    });

    test("a transaction that gets no connection in time is a certain rollback", async () => {
      const adapter = new PrismaPg({ connectionString: opened.connectionString, max: 1 });
      const narrow = new PrismaClient({ adapter });
      const patient = prismaPostgres(narrow);
      const hasty = prismaPostgres(narrow, { transaction: { maxWait: 50 } });
      // The first run of a database also reads the table of leases, outside of its transaction.
      await hasty.run(async () => {});
      const results = await patient.run(async () => hasty.run(async () => {}));
      expect(results).toMatchObject({
        kind: "committed",
        value: { kind: "rolled_back", error: { code: "P2028" } },
      });
      await narrow.$disconnect();
    });
  });
});
