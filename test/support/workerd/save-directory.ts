import { runInDurableObject } from "cloudflare:test";
import { env } from "./api.ts";
import { restartObjects } from "./restart.ts";
import { stubsOf } from "./stubs.ts";

const TABLES = ["cell", "minted_key", "incarnation", "meta"];

/** Copies the rows of the directory. The result brings them back, and restarts it and these cells. */
export async function saveDirectory(...cells: string[]): Promise<() => Promise<void>> {
  const stub = stubsOf(env).directory();
  const kept = await runInDurableObject(stub, (_, { storage: { sql } }) =>
    TABLES.map((table) => [table, sql.exec(`SELECT * FROM ${table}`).toArray()] as const),
  );
  return async () => {
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      for (const [table, rows] of kept) {
        sql.exec(`DELETE FROM ${table}`);
        for (const row of rows) {
          const columns = Object.keys(row);
          const places = columns.map(() => "?").join();
          sql.exec(`INSERT INTO ${table} (${columns.join()}) VALUES (${places})`, ...Object.values(row));
        }
      }
    });
    await restartObjects(env, ...cells);
  };
}
