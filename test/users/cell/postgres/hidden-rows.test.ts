/** Rows that row-level security hides: they are not gone, and keep their names. */
import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCell, type Cell } from "../../../../src/users/cell/cell.ts";
import { claimable } from "../../../../src/users/cell/claimable.ts";
import type { ClaimTransaction } from "../../../../src/users/cell/claim-transaction.ts";
import { patientCell } from "../../../../src/users/cell/conformance/target.ts";
import { fresh } from "../../../../src/users/cell/conformance/world.ts";
import { postgres } from "../../../../src/users/cell/postgres/index.ts";
import type { Client } from "../../../../src/users/client/client.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { clientOf } from "../../../support/client-of.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";

const users = pgTable("users", {
  id: serial().primaryKey(),
  tenant: text().notNull(),
  username: text().notNull(),
});
const claimableUsers = claimable(users, {
  source: "RAILS_TABLE_USERS",
  subject: { type: "USER", id: "id" },
  attributes: { username: "USERNAMES" },
});

const connected = (pool: Pool) => drizzle(pool);
type Db = ReturnType<typeof connected>;
type Tx = Parameters<Parameters<Db["transaction"]>[0]>[0];

describe.skipIf(isSkipped("PostgreSQL"))("rows that a policy hides", () => {
  let server: DatabaseServer;
  let coordinator: TestCoordinator;
  /** Sees everything. */
  let owner: { pool: Pool; client: Client; cell: Cell<Tx> };
  /** A role that sees only the rows of its tenant. */
  let member: { pool: Pool; client: Client; cell: Cell<Tx> };

  beforeAll(async () => {
    server = await startPostgres();
    coordinator = await startTestCoordinator({ cells: ["1"] });
    const url = server.url(await server.createDatabase());
    const connect = (options: string) => {
      const pool = new Pool({ connectionString: url, options });
      const client = clientOf(coordinator);
      const database = postgres<Tx>(connected(pool));
      const cell = createCell<Tx>({ client, database, tables: [claimableUsers], ...patientCell });
      return { pool, client, cell };
    };
    owner = connect("");
    await owner.cell.install();
    await owner.pool.query(
      `CREATE ROLE member;
      CREATE TABLE users (id serial PRIMARY KEY, tenant text NOT NULL, username text NOT NULL UNIQUE);
      ALTER TABLE users ENABLE ROW LEVEL SECURITY;
      CREATE POLICY own ON users USING (tenant = current_setting('app.tenant', true));
      GRANT ALL ON ALL TABLES IN SCHEMA public TO member;
      GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO member`,
    );
    member = connect("-c role=member");
  });
  beforeEach(() => owner.pool.query("TRUNCATE users"));
  afterAll(async () => {
    await owner.pool.end();
    await member.pool.end();
    await coordinator.close();
    await server.stop();
  });

  const become = (tx: ClaimTransaction<Tx>, tenant: string): Promise<unknown> =>
    tx.db.execute(sql`SELECT set_config('app.tenant', ${tenant}, true)`);
  const insert = (name: string, after?: string): Promise<unknown> =>
    member.cell.transaction(async (tx) => {
      await become(tx, "acme");
      await tx.insert(users, { tenant: "acme", username: name });
      if (after !== undefined) await become(tx, after);
    });
  const stored = async (): Promise<string[]> =>
    (await owner.pool.query<{ username: string }>("SELECT username FROM users")).rows.map(
      ({ username }) => username,
    );
  const isClaimed = async (name: string): Promise<boolean> =>
    (await owner.client.records.find({ type: "USERNAMES", value: name })) !== undefined;
  const unseen = { name: "InvalidArgumentError", field: "transaction" };

  test("a transaction that can no longer see what it wrote is rolled back", async () => {
    const [kept, other] = [fresh("kept"), fresh("other")];
    for (const after of ["", "initech"])
      await expect(insert(other, after)).rejects.toMatchObject({
        ...unseen,
        message: expect.stringContaining("does not see rows of users") as string,
      });
    await insert(kept);
    await expect(
      member.cell.transaction(async (tx) => {
        await become(tx, "acme");
        await tx.update(users, eq(users.username, kept), { username: other });
        await become(tx, "");
      }),
    ).rejects.toMatchObject(unseen);
    expect(await stored()).toEqual([kept]);
    expect([await isClaimed(kept), await isClaimed(other)]).toEqual([true, false]);
  });

  test("a transaction that sees its rows until its end works, and so does a deletion", async () => {
    const [first, second] = [fresh("first"), fresh("second")];
    await insert(first);
    await member.cell.transaction(async (tx) => {
      await become(tx, "acme");
      await tx.update(users, eq(users.username, first), { username: second });
    });
    expect([await isClaimed(first), await isClaimed(second)]).toEqual([false, true]);
    await member.cell.transaction(async (tx) => {
      await become(tx, "acme");
      await tx.delete(users, eq(users.username, second));
      await become(tx, "");
    });
    expect(await isClaimed(second)).toBe(false);
  });

  test("verification and digests refuse to run where rows are hidden, and release nothing", async () => {
    const name = fresh("name");
    await insert(name);
    await expect(member.cell.verify({ apply: true, recentMs: 0 })).rejects.toThrow(
      "row-level security hides rows",
    );
    await expect(member.cell.digestScope("acme")).rejects.toMatchObject({ field: "tables" });
    expect(await isClaimed(name)).toBe(true);
    await owner.cell.verify({ apply: true, recentMs: 0 });
    expect(await isClaimed(name)).toBe(true);
  });
});
