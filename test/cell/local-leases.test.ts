import { sql } from "drizzle-orm";
import { describe } from "vitest";
import { postgres } from "../../src/cell/postgres/index.ts";
import { localLeasesSuite, type LocalWorld } from "../suites/local-leases.ts";
import { isSkipped } from "../support/databases/available.ts";
import { MemoryLocal } from "./memory-leases.ts";
import { pglite, PostgresServer } from "./scenarios/starts.ts";
import type { TestedDatabase } from "./scenarios/world.ts";

localLeasesSuite("the in-memory twin", async () => {
  const local = new MemoryLocal(Date.now);
  return {
    local,
    save: async (uuid) => {
      if (local.fences.has(uuid)) throw new Error("there is a fence");
      local.rows.set(uuid, { uuid, createdAtMs: Date.now() });
    },
    age: async (uuid, ms) => {
      const row = local.rows.get(uuid);
      if (row !== undefined) row.createdAtMs -= ms;
      const writtenMs = local.fences.get(uuid);
      if (writtenMs !== undefined) local.fences.set(uuid, writtenMs - ms);
    },
    queued: async () => local.queued,
    clear: async () => {
      local.rows.clear();
      local.fences.clear();
    },
    stop: async () => {},
  };
});

localLeasesSuite("PGlite", () => onPostgres(pglite));

describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  localLeasesSuite("node-postgres", () => onPostgres(new PostgresServer().nodePostgres));
  localLeasesSuite("postgres-js", () => onPostgres(new PostgresServer().postgresJs));
});

async function onPostgres(start: () => Promise<TestedDatabase>): Promise<LocalWorld> {
  const database = await start();
  const { orm } = database;
  const local = postgres(orm);
  await local.install();
  return {
    local,
    save: async (uuid) => {
      const ran = await local.run((tx) =>
        local.insertLease(tx, { uuid, sources: [{ type: "RAILS_TABLE_USERS", id: uuid }] }),
      );
      if (ran.kind !== "committed") throw ran.error;
    },
    age: async (uuid, ms) => {
      await orm.execute(
        sql`UPDATE leasehold_outstanding_leases
            SET created_at = created_at - make_interval(secs => ${ms / 1_000}) WHERE uuid = ${uuid}`,
      );
    },
    queued: async () =>
      (await orm.select({ uuid: sql<string>`lease_uuid` }).from(sql`leasehold_verification_queue`)).map(
        ({ uuid }) => uuid,
      ),
    clear: async () => {
      await orm.execute(sql`TRUNCATE leasehold_outstanding_leases, leasehold_verification_queue`);
    },
    stop: () => database.stop(),
  };
}
