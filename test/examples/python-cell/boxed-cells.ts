import { drizzle } from "drizzle-orm/node-postgres";
import { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { postgresDialect as dialect } from "../../users/cell/scenarios/postgres-dialect.ts";
import type { Values } from "../../../src/users/cell/conformance/target.ts";
import { TestedCell, type TestedCoordinator } from "../../users/cell/scenarios/drizzle.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import type { BlackBox, BoxedCell } from "./black-box.ts";
import { PythonBox } from "./python-box.ts";
import { SdkBox } from "./sdk-box.ts";
import type { BoxWorld } from "./suite.ts";

type Boxed = (id: string, coordinator: TestedCoordinator, url: string, seen: TestedCell) => Promise<BlackBox>;

export const withPython: Boxed = async (id, coordinator, url) => {
  const box = await PythonBox.start(id, coordinator, url);
  // The example makes its own tables. The SDK then finds them.
  await box.install();
  return box;
};
export const withSdk: Boxed = async (_, __, ___, seen) => new SdkBox(seen);

/** Starts PostgreSQL for a suite. Returns what starts two cells with databases of their own. */
export function useBoxes(startCoordinator: () => Promise<TestedCoordinator>) {
  const stops: (() => Promise<unknown>)[] = [];
  let server: DatabaseServer;

  beforeAll(async () => {
    server = await startPostgres();
    stops.push(() => server.stop());
  });

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  /** Makes a cell with an empty database, and the SDK's view of both. */
  async function boxed(id: string, coordinator: TestedCoordinator, make: Boxed): Promise<BoxedCell> {
    const url = server.url(await server.createDatabase());
    const pool = new Pool({ connectionString: url, max: 10 });
    stops.push(() => pool.end());
    const database = {
      orm: drizzle(pool),
      isConcurrent: true,
      query: async (statement: string) => (await pool.query<Values>(statement)).rows,
      stop: () => pool.end(),
    };
    const seen = new TestedCell(id, dialect, coordinator, database);
    const box = await make(id, coordinator, url, seen);
    stops.push(() => box.close());
    await seen.prepare();
    return { box, seen };
  }

  return (make: Boxed) => async (): Promise<BoxWorld> => {
    const coordinator = await startCoordinator();
    stops.push(() => coordinator.stop());
    return { one: await boxed("1", coordinator, make), two: await boxed("2", coordinator, make) };
  };
}
