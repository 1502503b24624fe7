import { runInDurableObject } from "cloudflare:test";

/**
 * Copies all rows of an object. The result brings them back. The object keeps what it has in memory until it
 * is restarted.
 */
export async function saveObject(stub: unknown): Promise<() => Promise<void>> {
  const inObject = <T>(work: (sql: SqlStorage) => T): Promise<T> =>
    runInDurableObject(stub as DurableObjectStub, (_, { storage }) => work(storage.sql));
  const kept = await inObject((sql) => {
    const tables = sql.exec<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
    );
    return [...tables].map(({ name }) => [name, sql.exec(`SELECT * FROM ${name}`).toArray()] as const);
  });
  return () =>
    inObject((sql) => {
      for (const [table, rows] of kept) {
        sql.exec(`DELETE FROM ${table}`);
        for (const row of rows) {
          const columns = Object.keys(row);
          const places = columns.map(() => "?").join();
          sql.exec(`INSERT INTO ${table} (${columns.join()}) VALUES (${places})`, ...Object.values(row));
        }
      }
    });
}
