/** Local transactions on MariaDB, and errors that can separate a transaction from its lease. */
import { sql } from "drizzle-orm";
import { getTableConfig, int, mysqlTable } from "drizzle-orm/mysql-core";
import { drizzle } from "drizzle-orm/mysql2";
import { createConnection, createPool } from "mysql2/promise";
import { setTimeout } from "node:timers/promises";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { claimable, type Claimable } from "../../../../src/users/cell/claimable.ts";
import { mysql, outstandingLeases, verificationQueue } from "../../../../src/users/cell/mysql/index.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { Installed, type MysqlDb, type Tx } from "./server.ts";

const things = mysqlTable("things", { id: int().primaryKey(), value: int().notNull() });

describe.skipIf(isSkipped("MariaDB"))("local transactions on MariaDB", () => {
  let installed: Installed;

  beforeAll(async () => {
    installed = await Installed.start({ fenceWaitMs: 300 });
    await installed.run("CREATE TABLE things (id int PRIMARY KEY, value int NOT NULL)");
  });
  beforeEach(() =>
    installed.run(
      "TRUNCATE things",
      "INSERT INTO things VALUES (1, 0), (2, 0)",
      "DELETE FROM leasehold_outstanding_leases",
    ),
  );
  afterAll(() => installed.stop());

  const leaseOf = (uuid: string) => ({ uuid, sources: [{ type: "RAILS_TABLE_USERS", id: "1" }] });
  const saved = () => installed.rows("SELECT uuid FROM leasehold_outstanding_leases WHERE state = 'saved'");
  const values = async () =>
    (await installed.rows("SELECT value FROM things ORDER BY id")).map((row) => row["value"]);
  const set = (tx: Tx, id: number, value: number) =>
    tx.execute(sql`UPDATE things SET value = ${value} WHERE id = ${id}`);
  /** Opens a transaction that keeps its locks until the test ends it. */
  const open = async (statements: string[]) => {
    const connection = await createConnection(installed.url);
    await connection.query("BEGIN");
    for (const statement of statements) await connection.query(statement);
    return {
      connection,
      end: async (how: "COMMIT" | "ROLLBACK") => {
        await connection.query(how);
        await connection.end();
      },
    };
  };
  const rowOf = (uuid: string): string =>
    `INSERT INTO leasehold_outstanding_leases (uuid, sources) VALUES ('${uuid}', '[]')`;
  /** Runs `work` on a pool of one connection. */
  const onOne = async <T>(work: (db: MysqlDb) => Promise<T>): Promise<T> => {
    const pool = createPool({ uri: installed.url, connectionLimit: 1 });
    try {
      return await work(drizzle(pool));
    } finally {
      await pool.end();
    }
  };

  test("install can run twice", async () => {
    await installed.cell.install();
    await installed.cell.install();
    expect(await saved()).toEqual([]);
  });

  test.each([outstandingLeases, verificationQueue])(
    "the table for drizzle is the one of the migration",
    async (table) => {
      const { name, columns, primaryKeys } = getTableConfig(table);
      const stored = await installed.rows(`SHOW FULL COLUMNS FROM ${name}`);
      const keys = new Set(primaryKeys.flatMap((key) => key.columns.map((column) => column.name)));
      const declared = columns.map((column) => ({
        Field: column.name,
        // MariaDB's spelling of the type.
        Type: column
          .getSQLType()
          .replace(/ CHARACTER SET .*/, "")
          .replace("json", "longtext"),
        Null: column.notNull ? "NO" : "YES",
        isKey: column.primary || keys.has(column.name),
      }));
      expect(
        stored.map(({ Field, Type, Null, Key }) => ({ Field, Type, Null, isKey: Key === "PRI" })),
      ).toEqual(declared);
    },
  );

  test("a transaction of the database is refused, and so is a single connection", async () => {
    await installed.db.transaction(async (tx) => {
      expect(() => mysql(tx)).toThrow("must be the database");
    });
    const connection = await createConnection(installed.url);
    expect(() => mysql(drizzle(connection) as unknown as MysqlDb)).toThrow("`db` must have a pool");
    await connection.end();
    const pooled = await installed.pool.getConnection();
    expect(() => mysql(drizzle(pooled) as unknown as MysqlDb)).toThrow("`db` must have a pool");
    pooled.release();
  });

  test("ages do not depend on the time zone of a session", async () => {
    const uuid = uuidv7();
    await installed.save(uuid);
    await onOne(async (db) => {
      await db.execute(sql`SET time_zone = '-07:00'`);
      const [lease] = await mysql(db).has([uuid]);
      expect(lease?.ageMs).toBeGreaterThanOrEqual(0);
      expect(lease?.ageMs).toBeLessThan(60_000);
    });
    expect(await installed.cell.has([uuid.toUpperCase()])).toHaveLength(1);
  });

  describe("look", () => {
    test("reports an open transaction, and does not affect it", async () => {
      const uuid = uuidv7();
      await onOne(async (db) => {
        await db.execute(sql`BEGIN`);
        await db.execute(sql.raw(rowOf(uuid)));
        expect(await mysql(db).look(uuid)).toEqual({ isSaved: false, isInTransaction: true });
        await db.execute(sql`ROLLBACK`);
        expect(await mysql(db).look(uuid)).toEqual({ isSaved: false, isInTransaction: false });
      });
    });

    test("on a connection with an old snapshot, reports an open transaction", async () => {
      const uuid = uuidv7();
      await onOne(async (db) => {
        await db.execute(sql`START TRANSACTION WITH CONSISTENT SNAPSHOT`);
        await installed.save(uuid);
        expect(await mysql(db).look(uuid)).toMatchObject({ isInTransaction: true });
        await db.execute(sql`COMMIT`);
        expect(await mysql(db).look(uuid)).toEqual({ isSaved: true, isInTransaction: false });
      });
    });

    test("leaves the connection unchanged", async () => {
      await onOne(async (db) => {
        await db.execute(sql`SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE`);
        await mysql(db).look(uuidv7());
        await db.transaction(async (tx) => set(tx, 1, 5));
        const [[row]] = (await db.execute(
          sql`SELECT @@tx_isolation AS level, @@tx_read_only AS readOnly`,
        )) as unknown as [Record<string, unknown>[]];
        expect(row).toEqual({ level: "SERIALIZABLE", readOnly: 0 });
      });
    });
  });

  describe("fence", () => {
    test("waits for an open transaction, times out, and restores the session's lock timeout", async () => {
      const uuid = uuidv7();
      const holder = await open([rowOf(uuid)]);
      await onOne(async (db) => {
        // 1,700 s is longer than a test may take.
        await db.execute(sql`SET SESSION innodb_lock_wait_timeout = 1700`);
        expect(await mysql(db, { fenceWaitMs: 300 }).fence(uuid)).toBe("in_flight");
        const [[row]] = (await db.execute(sql`SELECT @@innodb_lock_wait_timeout AS wait`)) as unknown as [
          Record<string, unknown>[],
        ];
        expect(row).toEqual({ wait: 1_700 });
      });
      await holder.end("COMMIT");
      expect(await installed.cell.fence(uuid)).toBe("saved");
    });

    test.each([
      ["COMMIT", "saved"],
      ["ROLLBACK", "fenced"],
    ] as const)(
      "if the transaction ends with %s while the fence waits, the result is %s",
      async (how, outcome) => {
        const uuid = uuidv7();
        const holder = await open([rowOf(uuid)]);
        const patient = mysql<Tx>(installed.db, { fenceWaitMs: 60_000 });
        const fencing = patient.fence(uuid);
        await waiting(1);
        await holder.end(how);
        expect(await fencing).toBe(outcome);
      },
    );

    test("if several wait for a transaction that is rolled back, at least one is written", async () => {
      const uuid = uuidv7();
      const holder = await open([rowOf(uuid)]);
      const patient = mysql<Tx>(installed.db, { fenceWaitMs: 60_000 });
      const fencing = Promise.all([1, 2, 3].map(() => patient.fence(uuid)));
      await waiting(3);
      await holder.end("ROLLBACK");
      const ends = await fencing;
      expect(ends).toContain("fenced");
      expect(ends).not.toContain("saved");
      expect(await installed.cell.fence(uuid)).toBe("fenced");
      await expect(installed.save(uuid)).rejects.toThrow();
    });

    test("of a fence and a competing local transaction, exactly one succeeds", async () => {
      const uuids = Array.from({ length: 60 }, () => uuidv7());
      const ends = await Promise.all(
        uuids.map(async (uuid) => {
          const [lease, fence] = await Promise.allSettled([installed.save(uuid), installed.cell.fence(uuid)]);
          return {
            isSaved: lease.status === "fulfilled",
            fence: fence.status === "fulfilled" ? fence.value : String(fence.reason),
          };
        }),
      );
      const rows = new Map(
        (await installed.rows("SELECT uuid, state FROM leasehold_outstanding_leases")).map((row) => [
          row["uuid"],
          row["state"],
        ]),
      );
      for (const [index, { isSaved, fence }] of ends.entries()) {
        expect(["saved", "fenced", "in_flight"]).toContain(fence);
        if (fence !== "in_flight") expect({ isSaved, fence }).toEqual({ isSaved: fence === "saved", fence });
        expect(rows.get(uuids[index])).toBe(isSaved ? "saved" : "fenced");
      }
    });

    /**
     * Waits until InnoDB has `count` lock waits. The server refreshes the table only if nobody has read it
     * for 100 ms.
     */
    const waiting = async (count: number): Promise<void> => {
      for (;;) {
        await setTimeout(150);
        const [row] = await installed.rows(
          "SELECT COUNT(*) AS waits FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
        );
        if (Number(row?.["waits"]) >= count) return;
      }
    };
  });

  describe("a transaction that ends early saves no lease", () => {
    /** Causes a deadlock and catches its error, which an application should not do. */
    const deadlock = async (tx: Tx, wait: () => Promise<unknown> = () => set(tx, 2, 7)): Promise<void> => {
      await set(tx, 1, 7);
      const rows = Array.from({ length: 50 }, (_, index) => `(${100 + index}, 0)`).join();
      // InnoDB rolls back the transaction that has written less.
      const other = await open([
        "UPDATE things SET value = 8 WHERE id = 2",
        `INSERT INTO things VALUES ${rows}`,
      ]);
      const blocked = other.connection.query("UPDATE things SET value = 8 WHERE id = 1");
      const error = await wait().catch((thrown: unknown) => thrown);
      expect((error as Error).cause).toMatchObject({ errno: 1213 });
      await blocked;
      await other.end("ROLLBACK");
    };

    const claimed = claimable(things, {
      source: "RAILS_TABLE_USERS",
      subject: { type: "USER", id: "id" },
      attributes: { value: "USERNAMES" },
    }) as unknown as Claimable;

    test("a deadlock before the insert of the lease, whose error is caught", async () => {
      const uuid = uuidv7();
      const ran = await installed.cell.run(async (tx) => {
        await deadlock(tx);
        await installed.cell.insertLease(tx, leaseOf(uuid));
      });
      expect(ran).toMatchObject({ kind: "ended", error: { code: "TRANSACTION_ENDED" } });
      expect(await saved()).toEqual([]);
      expect(await values()).toEqual([0, 0]);
    });

    test("after a deadlock whose error is caught, the cell writes no row", async () => {
      const errors: unknown[] = [];
      const note = (error: unknown): void => void errors.push(error);
      const ran = await installed.cell.run(async (tx) => {
        await deadlock(tx);
        await installed.cell.insert(tx, claimed, [{ id: 3, value: 9 }]).catch(note);
        await installed.cell
          .insert(
            tx,
            claimed,
            [4, 5].map((id) => ({ id, value: 9 })),
          )
          .catch(note);
        await installed.cell.update(tx, claimed, [1], { value: 9 }).catch(note);
        await installed.cell.delete(tx, claimed, [2]).catch(note);
      });
      expect(errors).toMatchObject(Array.from({ length: 4 }, () => ({ code: "TRANSACTION_ENDED" })));
      expect(ran).toMatchObject({ kind: "ended", error: { code: "TRANSACTION_ENDED" } });
      expect(await values()).toEqual([0, 0]);
    });

    test("the application's own error stays after a deadlock of the cell's statement", async () => {
      const error = new RangeError("please try again");
      const ran = await installed.cell.run(async (tx) => {
        await deadlock(tx, () => installed.cell.lock(tx, claimed, { ids: [2] }));
        throw error;
      });
      expect(ran).toEqual({ kind: "rolled_back", error });
      expect(await values()).toEqual([0, 0]);
      const later = await installed.cell.run(async (tx) => {
        await tx.execute(sql`COMMIT`);
        throw error;
      });
      expect(later).toMatchObject({ kind: "ended", error: { cause: error } });
    });

    test("a deadlock after the insert of the lease, whose error is caught", async () => {
      const ran = await installed.cell.run(async (tx) => {
        await installed.cell.insertLease(tx, leaseOf(uuidv7()));
        await deadlock(tx);
      });
      expect(ran).toMatchObject({ kind: "ended", error: { code: "TRANSACTION_ENDED" } });
      expect(await saved()).toEqual([]);
      expect(await values()).toEqual([0, 0]);
    });

    test("DDL in the body", async () => {
      const ran = await installed.cell.run(async (tx) => {
        await tx.execute(sql`CREATE TABLE IF NOT EXISTS others (id int)`);
        await installed.cell.insertLease(tx, leaseOf(uuidv7()));
      });
      expect(ran).toMatchObject({ kind: "ended", error: { code: "TRANSACTION_ENDED" } });
      expect(await saved()).toEqual([]);
    });

    test("a body may catch an error of one statement, and roll back to a savepoint", async () => {
      const uuid = uuidv7();
      const ran = await installed.cell.run(async (tx) => {
        await set(tx, 1, 3);
        await tx.execute(sql`INSERT INTO things VALUES (2, 9)`).catch(() => {});
        await tx
          .transaction(async (nested) => {
            await set(nested, 2, 9);
            throw new RangeError("changed my mind");
          })
          .catch(() => {});
        await installed.cell.insertLease(tx, leaseOf(uuid));
      });
      expect(ran.kind).toBe("committed");
      expect(await saved()).toEqual([{ uuid }]);
      expect(await values()).toEqual([3, 0]);
    });
  });

  describe("COMMIT", () => {
    test("is a certain rollback if the database refuses it", async () => {
      const backup = await createConnection(installed.url);
      const ran = await installed.cell.run(async (tx) => {
        await tx.execute(sql`SET SESSION lock_wait_timeout = 1`);
        await set(tx, 1, 4);
        await installed.cell.insertLease(tx, leaseOf(uuidv7()));
        await backup.query("FLUSH TABLES WITH READ LOCK");
      });
      await backup.end();
      expect(ran).toMatchObject({ kind: "rolled_back", error: { cause: { errno: 1205 } } });
      expect(await saved()).toEqual([]);
      expect(await values()).toEqual([0, 0]);
    });

    test("has an unknown outcome if the connection is lost", async () => {
      const { pool } = installed;
      const ran = await installed.cell.run(async (tx) => {
        const [[row]] = (await tx.execute(sql`SELECT CONNECTION_ID() AS id`)) as unknown as [
          { id: number }[],
        ];
        const execute = tx.execute.bind(tx);
        tx.execute = async (query) => {
          if (isCommit(query)) await pool.query(`KILL ${row?.id}`);
          return execute(query);
        };
      });
      expect(ran.kind).toBe("unknown");
    });

    const isCommit = (query: unknown): boolean => JSON.stringify(query).includes("commit");
  });
});
