/**
 * Tests what transactions need from a cell's database in addition to its leases. One suite for every dialect
 * and driver.
 */
import { v7 as uuidv7 } from "uuid";
import type { Claimable } from "../claimable.ts";
import { NotInstalledError } from "../errors.ts";
import type { CellDatabase, TransactionResult } from "../local.ts";
import type { AnyRow } from "../table.ts";
import { claimablesOf } from "./schema.ts";
import type { ConformanceCoordinator, ConformanceDatabase, ConformanceTarget, Suites } from "./target.ts";
import { ConformanceCell, createTables, fresh } from "./world.ts";

export function cellDatabaseSuite(
  { describe, test, expect, beforeAll, beforeEach, afterAll }: Suites,
  target: ConformanceTarget<unknown>,
): void {
  describe("rows, leases and points in the database", () => {
    let opened: ConformanceDatabase<unknown>;
    let database: CellDatabase<unknown>;
    let all: Claimable[];
    let claimableUsers: Claimable;

    beforeAll(async () => {
      opened = await target.open();
      database = opened.database();
      all = claimablesOf(opened.tables);
      [claimableUsers] = all as [Claimable];
      await createTables(target, opened);
      // Several processes of a cell may start at the same time.
      await Promise.all(Array.from({ length: 5 }, () => opened.database().install()));
    });
    beforeEach(async () => {
      await opened.query("DELETE FROM users");
      for (const { uuid } of await database.listDeferred({ afterUuid: "", limit: 1_000 }))
        await database.remove(uuid);
    });
    afterAll(() => opened.stop());

    const done = async <T>(body: (tx: unknown) => Promise<T>): Promise<T> =>
      valueOf(await database.run(body));
    const sources = [{ type: "RAILS_TABLE_USERS", id: "1" }];
    const batch = { destroys: [{ bucket: { type: "USERNAMES" as const, value: "ada" } }] };
    const defer = async (): Promise<string> => {
      const uuid = uuidv7();
      await done((tx) => database.insertLease(tx, { uuid, sources, deferred: batch }));
      return uuid;
    };
    const listed = async (afterUuid: string, limit: number): Promise<string[]> =>
      (await database.listDeferred({ afterUuid, limit })).map(({ uuid }) => uuid);
    const namesOf = (rows: readonly AnyRow[]): unknown[] => rows.map((row) => row["username"]);

    test("several installations at the same time, and a repeated one, succeed", async () => {
      await database.install();
      expect(await database.list({ afterUuid: "", limit: 1 })).toEqual([]);
    });

    test("deferred leases are listed page by page and marked as deferred", async () => {
      const uuids = [await defer(), await defer(), await defer()];
      const begun = uuidv7();
      await done((tx) => database.insertLease(tx, { uuid: begun, sources }));
      expect(await listed("", 2)).toEqual(uuids.slice(0, 2));
      expect(await listed(uuids[1] ?? "", 2)).toEqual(uuids.slice(2));
      expect(await listed(uuids[2] ?? "", 2)).toEqual([]);
      const known = await database.has([uuids[0] ?? "", begun]);
      expect(new Map(known.map(({ uuid, isDeferred }) => [uuid, isDeferred]))).toEqual(
        new Map([
          [uuids[0], true],
          [begun, false],
        ]),
      );
      expect((await database.list({ afterUuid: "", limit: 9 })).map(({ uuid }) => uuid)).toEqual([begun]);
      await database.remove(begun);
    });

    test("of two calls that replace a deferred lease, one succeeds", async () => {
      const uuid = await defer();
      const next = { uuid: uuidv7(), batch };
      expect(await database.replaceDeferred(uuid, next)).toBe(true);
      expect(await database.replaceDeferred(uuid, { uuid: uuidv7(), batch })).toBe(false);
      expect(await database.replaceDeferred(uuid, undefined)).toBe(false);
      expect(await database.listDeferred({ afterUuid: "", limit: 9 })).toEqual([next]);
      expect(await database.replaceDeferred(next.uuid, undefined)).toBe(true);
      expect(await listed("", 9)).toEqual([]);
    });

    test("a transaction can remove the lease row that it wrote", async () => {
      const uuid = uuidv7();
      await done(async (tx) => {
        await database.insertLease(tx, { uuid, sources });
        await database.removeLease(tx, uuid);
      });
      expect(await database.has([uuid])).toEqual([]);
      expect(await database.fence(uuid)).toBe("fenced");
    });

    test("a statement of the SDK fails with the same error as the application's own", async () => {
      const uuid = uuidv7();
      const twice = async (write: (tx: unknown) => Promise<unknown>): Promise<unknown> => {
        const ran = await database.run(async (tx) => {
          await database.insertLease(tx, { uuid, sources });
          await write(tx);
        });
        return ran.kind === "rolled_back" ? shownError(ran.error) : ran;
      };
      const table = "leasehold_outstanding_leases";
      const statement = `INSERT INTO ${table} (uuid, state, sources) VALUES ('${uuid}', 'saved', '[]')`;
      const own = await twice((tx) => opened.write(tx, statement));
      expect(own).toHaveProperty("name");
      expect(await twice((tx) => database.insertLease(tx, { uuid, sources }))).toEqual(own);
    });

    test("the table and the columns of a refused duplicate are found", async () => {
      const rows = [{ username: "ada" }];
      await done((tx) => database.insert(tx, claimableUsers, rows));
      const ran = await database.run((tx) => database.insert(tx, claimableUsers, rows));
      const error = ran.kind === "rolled_back" ? ran.error : undefined;
      expect(await database.problemOf(error, all)).toEqual({
        kind: "duplicate",
        table: claimableUsers,
        columns: ["username"],
      });
      expect(database.writeOf(error)).toEqual({ claimable: claimableUsers, id: undefined });
      for (const other of [undefined, "text", new Error("another"), new Error("wrapped", { cause: 7 })])
        expect([await database.problemOf(other, all), database.writeOf(other)]).toEqual([
          undefined,
          undefined,
        ]);
    });

    test("rows are read in their current state, and deleted ones are counted", async () => {
      const [ids, seen, deleted] = await done(async (tx) => {
        const rows = await database.insert(tx, claimableUsers, [
          { username: "ada" },
          { username: "bob" },
          { username: "eve" },
        ]);
        const made = rows.map((row) => row["id"]);
        await opened.write(tx, "UPDATE users SET username = 'grace' WHERE username = 'bob'");
        await opened.write(tx, "DELETE FROM users WHERE username = 'eve'");
        return [
          made,
          await database.read(tx, claimableUsers, made),
          await database.delete(tx, claimableUsers, made),
        ];
      });
      expect(ids).toHaveLength(3);
      expect(namesOf(seen)).toEqual(["ada", "grace"]);
      expect(deleted).toBe(2);
      expect(await done((tx) => database.read(tx, claimableUsers, []))).toEqual([]);
    });

    test("statements can have 1,000 rows or ids", async () => {
      const added = Array.from({ length: 1_000 }, (_, index) => ({ username: `user-${index}` }));
      const counts = await done(async (tx) => {
        const stored = await database.insert(tx, claimableUsers, added);
        const ids = stored.map((row) => row["id"]);
        const locked = await database.lock(tx, claimableUsers, { ids });
        const updated = await database.update(tx, claimableUsers, ids, { bio: "many" });
        const read = await database.read(tx, claimableUsers, ids);
        expect(namesOf(read)).toEqual(namesOf(added));
        return [stored.length, locked.length, updated.length, await database.delete(tx, claimableUsers, ids)];
      });
      expect(counts).toEqual([1_000, 1_000, 1_000, 1_000]);
    });

    test("[L7] points of the ledger only move forward, whichever process writes them", async () => {
      const { ledgerHistory } = database;
      const at = (incarnation: number, position: number) => ({ incarnation, position });
      const stored = async (cell: string) =>
        (await ledgerHistory.load(cell)).toSorted((a, b) => a.incarnation - b.incarnation);
      const large = at(9_007_199_254_740_991, 9_007_199_254_740_991);
      await ledgerHistory.save("7", [at(1, 5), large]);
      await ledgerHistory.save("8", [at(1, 9)]);
      const writes = [at(1, 4), at(1, 7), at(1, 6)].map((point) => ledgerHistory.save("7", [point, large]));
      await Promise.all(writes);
      expect(await stored("7")).toEqual([at(1, 7), large]);
      // Another process has seen more than the one that removes it.
      await ledgerHistory.remove("7", [at(1, 6)]);
      expect(await stored("7")).toEqual([at(1, 7), large]);
      await ledgerHistory.remove("7", [at(1, 7), at(3, 1)]);
      expect(await stored("7")).toEqual([large]);
      expect(await stored("8")).toEqual([at(1, 9)]);
    });

    if (target.isConcurrent)
      test("[L7] an open local transaction does not hold up the points of the ledger", async () => {
        const { ledgerHistory } = database;
        await done(async (tx) => {
          await database.insertLease(tx, { uuid: uuidv7(), sources });
          await ledgerHistory.save("9", [{ incarnation: 1, position: 1 }]);
          await ledgerHistory.save("9", [{ incarnation: 1, position: 2 }]);
        });
        expect(await ledgerHistory.load("9")).toEqual([{ incarnation: 1, position: 2 }]);
      });

    test("concurrent transactions do not mix, and a failed one saves nothing", async () => {
      let second = (): void => {};
      const bothWrote = new Promise<void>((resolve) => {
        second = resolve;
      });
      let writes = 0;
      const write = (username: string) => async (tx: unknown) => {
        await database.insert(tx, claimableUsers, [{ username }]);
        if ((writes += 1) === 2) second();
        // Two transactions are open at the same time, if that is possible.
        if (target.isConcurrent) await bothWrote;
        if (username.startsWith("bad")) throw new RangeError(username);
        return username;
      };
      const ran = await Promise.all(
        ["a", "bad-1", "b", "bad-2", "c"].map((username) => database.run(write(username))),
      );
      expect(ran.map(({ kind }) => kind)).toEqual([
        "committed",
        "rolled_back",
        "committed",
        "rolled_back",
        "committed",
      ]);
      expect(namesOf(await opened.query("SELECT username FROM users ORDER BY username"))).toEqual([
        "a",
        "b",
        "c",
      ]);
    });
  });
}

/** What an application tells errors apart by. Messages have the statement. */
function shownError(error: unknown): object {
  const { name, code, errno, constraint } = error as Record<string, unknown>;
  return { name, code, errno, constraint };
}

function valueOf<T>(ran: TransactionResult<T>): T {
  if (ran.kind === "committed") return ran.value;
  throw ran.error;
}

export function notInstalledSuite(
  { describe, test, expect, beforeAll, afterAll }: Suites,
  target: ConformanceTarget<unknown>,
  startCoordinator: () => Promise<ConformanceCoordinator>,
): void {
  describe("without the cell's own tables", () => {
    let coordinator: ConformanceCoordinator;
    let opened: ConformanceDatabase<unknown>;
    let cell: ConformanceCell;
    const stops: (() => Promise<void>)[] = [];

    beforeAll(async () => {
      coordinator = await startCoordinator();
      stops.push(() => coordinator.stop());
      opened = await target.open();
      stops.push(() => opened.stop());
      await createTables(target, opened);
    });
    afterAll(async () => {
      for (const stop of stops.toReversed()) await stop();
    });

    const newCell = (): ConformanceCell => {
      const made = new ConformanceCell("1", target, coordinator, opened);
      stops.push(() => made.cell.flush());
      return made;
    };
    const insert = () => cell.transaction((tx) => tx.insert("organizations", { path: fresh("path") }));
    const calls: [name: string, call: () => Promise<unknown>][] = [
      ["transaction", insert],
      ["preflight", () => cell.preflight((plan) => plan.insert("projects", { id: "7", path: "seven" }))],
      ["bulkInsert", () => cell.bulkInsert("organizations", [{ path: fresh("path") }])],
      ["bulkDelete", () => cell.bulkDelete("organizations")],
      ["reconcile", () => cell.cell.reconcile({ full: true })],
      ["verify", () => cell.cell.verify()],
    ];

    for (const [name, call] of calls)
      test(`${name} says how to create them`, async () => {
        cell = newCell();
        const error = await call().then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        expect(error).toBeInstanceOf(NotInstalledError);
        expect(error).toMatchObject({ code: "NOT_INSTALLED", retryable: false });
        expect(String(error)).toMatch(/^NotInstalledError: the cell's table leasehold_\w+ does not exist/);
        expect(String(error)).toContain("call `await cell.install()`");
        expect((error as Error).cause).toBeInstanceOf(Error);
      });

    test("one missing table is named, and `install` creates it", async () => {
      cell = newCell();
      await cell.cell.install();
      await opened.query("DROP TABLE leasehold_outstanding_leases");
      await expect(insert()).rejects.toThrow("table leasehold_outstanding_leases does not exist");
      await cell.cell.install();
      await insert();
      // A missing table of the application is its own error.
      const failed = cell.transaction((tx) => opened.write(tx.db, "SELECT * FROM leaseholders"));
      await expect(failed).rejects.not.toBeInstanceOf(NotInstalledError);
    });
  });
}
