/** Deletions of rows that row-level security hides at the end, with every adapter for PostgreSQL. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ConformanceCell,
  fresh,
  quoted,
  type TestedTransaction,
} from "../../../../src/users/cell/conformance/world.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";
import type { TestedCoordinator } from "../scenarios/drizzle.ts";
import { testCoordinator } from "../scenarios/starts.ts";
import { onPostgres } from "./targets.ts";

/** A member sees no row without a tenant. */
const setUp = [
  "ALTER TABLE organizations ENABLE ROW LEVEL SECURITY",
  "CREATE POLICY own ON organizations USING (current_setting('app.tenant', true) <> '')",
  "GRANT ALL ON ALL TABLES IN SCHEMA public TO member",
  "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO member",
];

describe.skipIf(isSkipped("PostgreSQL"))("deletions under row-level security", () => {
  let server: DatabaseServer;
  let coordinator: TestedCoordinator;
  beforeAll(async () => {
    [server, coordinator] = await Promise.all([startPostgres(), testCoordinator()]);
  });
  afterAll(async () => {
    await server.stop();
    await coordinator.stop();
  });

  const createDatabase = async (): Promise<string> => server.url(await server.createDatabase());
  describe.each(onPostgres(createDatabase))("$name", (target) => {
    let one: ConformanceCell;
    beforeAll(async () => {
      one = await new ConformanceCell("1", target, coordinator, await target.open()).prepare();
      await one.opened.query(
        `DO $$ BEGIN CREATE ROLE member; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
      );
      for (const statement of setUp) await one.opened.query(statement);
    });
    afterAll(async () => {
      await one.cell.flush();
      await one.opened.stop();
    });

    /** Runs the body as a member with a tenant, then leaves the tenant, so that all rows are hidden. */
    const asMember = (
      body: (tx: TestedTransaction, run: (statement: string) => Promise<void>) => Promise<unknown>,
      cell = one,
    ): Promise<void> =>
      cell.transaction(async (tx) => {
        const run = (statement: string): Promise<void> => one.write(tx.db, statement);
        await run("SET LOCAL ROLE member");
        await run("SET LOCAL app.tenant = 'acme'");
        await body(tx, run);
        await run("SET LOCAL app.tenant = ''");
      });
    const insert = async (): Promise<string> => {
      const path = fresh("path");
      await one.transaction((tx) => tx.insert("organizations", { path }));
      return path;
    };
    const stateOf = async (path: string): Promise<string[]> => [
      ...(await one.rows("organizations", "path", path)).map(() => "stored"),
      ...(await one.owners("ORGANIZATION_PATH", path)),
    ];
    const kept = (path: string): string[] => ["stored", `${path}: ACTIVE of 1`];
    const gone = (path: string): string[] => [`${path}: free`];
    const unseen = {
      name: "InvalidArgumentError",
      message: expect.stringMatching(/does not see rows of organizations .* `tx\.delete`/s) as string,
    };

    test("a deletion that a savepoint has undone releases nothing", async () => {
      const path = await insert();
      const undone = asMember(async (tx, run) => {
        await run("SAVEPOINT before");
        await tx.delete("organizations", { path });
        await run("ROLLBACK TO SAVEPOINT before");
      });
      await expect(undone).rejects.toMatchObject(unseen);
      expect(await stateOf(path)).toEqual(kept(path));
    });

    test("neither does one of a row that was deleted, and inserted again, before", async () => {
      const path = await insert();
      const undone = asMember(async (tx, run) => {
        const [row] = await tx.delete("organizations", { path });
        await tx.insert("organizations", { ...row, path });
        await run("SAVEPOINT before");
        await tx.delete("organizations", { path });
        await run("ROLLBACK TO SAVEPOINT before");
      });
      await expect(undone).rejects.toMatchObject(unseen);
      expect(await stateOf(path)).toEqual(kept(path));
    });

    test("a deletion that stays releases its name, also beside one that was undone", async () => {
      const [path, twice, later] = [await insert(), await insert(), await insert()];
      await asMember(async (tx, run) => {
        await run("SAVEPOINT before");
        await tx.delete("organizations", { path: twice });
        await run("ROLLBACK TO SAVEPOINT before");
        await tx.delete("organizations", { path });
        await tx.delete("organizations", { path: twice });
        await run("RELEASE SAVEPOINT before");
        await tx.deleteLater("organizations", { path: later });
      });
      for (const each of [path, twice, later]) expect(await stateOf(each)).toEqual(gone(each));
    });

    test("a deletion without tx.delete is refused, and the error says what to do", async () => {
      const path = await insert();
      const unnoticed = asMember(async (tx, run) => {
        await tx.lock("organizations", { path });
        await run(`DELETE FROM organizations WHERE path = ${quoted(path)}`);
      });
      await expect(unnoticed).rejects.toMatchObject(unseen);
      expect(await stateOf(path)).toEqual(kept(path));
    });

    test("once a deletion has found row-level security enabled, the next one works", async () => {
      const path = await insert();
      const other = one.sibling(coordinator);
      await one.opened.query("ALTER TABLE organizations DISABLE ROW LEVEL SECURITY");
      await other.transaction((tx) => tx.update("organizations", { path }, { path }));
      await one.opened.query("ALTER TABLE organizations ENABLE ROW LEVEL SECURITY");
      const remove = (): Promise<void> => asMember((tx) => tx.delete("organizations", { path }), other);
      await expect(remove()).rejects.toMatchObject(unseen);
      expect(await stateOf(path)).toEqual(kept(path));
      await remove();
      expect(await stateOf(path)).toEqual(gone(path));
      await other.cell.flush();
    });
  });
});
