/** postgres-js rejects a transaction as soon as its connection is lost, while the body still runs. */
import { sql } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgres } from "../../../../src/users/cell/postgres/index.ts";
import { requireOpen } from "../../../../src/users/cell/run-transaction.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import type { Tx } from "../scenarios/dialect.ts";
import { PostgresServer } from "../scenarios/starts.ts";
import type { TestedDatabase } from "../scenarios/drizzle.ts";

describe.skipIf(isSkipped("PostgreSQL"))("postgres-js loses its connection while the body runs", () => {
  let tested: TestedDatabase;

  beforeAll(async () => {
    tested = await new PostgresServer().postgresJs();
  });
  afterAll(() => tested.stop());

  test("the transaction waits for the body, which can no longer write a lease", async () => {
    const cell = postgres<Tx>(tested.orm);
    await cell.install();
    const [before, after] = [uuidv7(), uuidv7()];
    let late: unknown;
    const ran = await cell.run(async (tx) => {
      await cell.insertLease(tx, { uuid: before, sources: [] });
      const [own] = await tx.select({ pid: sql<number>`pg_backend_pid()` }).from(sql`(VALUES (1)) AS one`);
      await tested.orm.execute(sql`SELECT pg_terminate_backend(${own?.pid})`);
      // The body goes on until the driver has rejected the transaction, as in a slow call.
      await expect.poll(() => Promise.try(requireOpen, tx).catch(String)).toContain("has ended");
      late = await cell.insertLease(tx, { uuid: after, sources: [] }).catch(String);
    });
    expect(ran.kind).toBe("rolled_back");
    expect(late).toContain("has ended");
    expect(await cell.has([before, after])).toEqual([]);
    // Other transactions are not affected.
    expect((await cell.run((tx) => cell.insertLease(tx, { uuid: after, sources: [] }))).kind).toBe(
      "committed",
    );
  });
});
