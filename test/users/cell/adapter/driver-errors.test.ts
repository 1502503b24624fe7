/** Statements of the SDK that fail: the application gets the error of its own driver, not that of drizzle. */
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CellDatabase } from "../../../../src/users/cell/local.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { drivers, type Driver, type Tx } from "./drivers.ts";

const uuid = uuidv7();
const point = { incarnation: 1, position: 1 };
const page = { afterUuid: "", limit: 1 };

type Database = CellDatabase<Tx>;

/** Methods that a transaction has. */
const inside: Record<string, (database: Database, tx: Tx) => Promise<unknown>> = {
  insertLease: (database, tx) => database.insertLease(tx, { uuid, sources: [] }),
  removeLease: (database, tx) => database.removeLease(tx, uuid),
};

/** Methods without a transaction of the application. */
const outside: Record<string, (database: Database) => Promise<unknown>> = {
  look: (database) => database.look(uuid),
  remove: (database) => database.remove(uuid),
  list: (database) => database.list(page),
  listDeferred: (database) => database.listDeferred(page),
  has: (database) => database.has([uuid]),
  fence: (database) => database.fence(uuid),
  removeFences: (database) => database.removeFences(0),
  queueForVerification: (database) => database.queueForVerification(uuid),
  replaceDeferred: (database) => database.replaceDeferred(uuid, undefined),
  "readCommitted.list": ({ readCommitted }) => readCommitted.list(page),
  "ledgerHistory.load": ({ ledgerHistory }) => ledgerHistory.load("1"),
  "ledgerHistory.save": ({ ledgerHistory }) => ledgerHistory.save("1", [point]),
  "ledgerHistory.remove": ({ ledgerHistory }) => ledgerHistory.remove("1", [point]),
  "verification.loadProgress": ({ verification }) => verification.loadProgress(),
  "verification.saveProgress": ({ verification }) => verification.saveProgress("{}"),
  "verification.listQueue": ({ verification }) => verification.listQueue({ after: undefined, limit: 1 }),
  "verification.removeFromQueue": ({ verification }) =>
    verification.removeFromQueue([{ type: "RAILS_TABLE_USERS", id: "1", leaseUuid: uuid }]),
};

/** What the drivers call a table that does not exist. */
const MISSING = { PostgreSQL: "42P01", MariaDB: "ER_NO_SUCH_TABLE" };

describe.each(drivers)("$name", (kind) => {
  describe.skipIf(isSkipped(kind.server))("without the cell's own tables", () => {
    let driver: Driver;

    beforeAll(async () => {
      driver = await kind.start();
      await driver.database.install();
      for (const name of ["outstanding_leases", "ledger_history"])
        await driver.run(`DROP TABLE leasehold_${name}`);
      for (const name of ["queue", "progress"]) await driver.run(`DROP TABLE leasehold_verification_${name}`);
    });
    afterAll(() => driver.stop());

    const missing = MISSING[kind.server];

    test.each(Object.keys(inside))("%s fails with the driver's error", async (name) => {
      const { database } = driver;
      const ran = await database.run((tx) => inside[name]?.(database, tx) ?? Promise.resolve());
      expect(ran).toMatchObject({ kind: "rolled_back", error: { code: missing } });
    });

    test.each(Object.keys(outside))("%s fails with the driver's error", async (name) => {
      await expect(outside[name]?.(driver.database)).rejects.toMatchObject({ code: missing });
    });
  });
});
