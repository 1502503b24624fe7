import { dropTables } from "./schema.ts";
import type { ConformanceDatabase, ConformanceTarget } from "./target.ts";

/**
 * Opens a target's database only if all opened ones are in use. A suite that stops its database leaves it
 * empty for the next suite.
 */
export class ReusedDatabases {
  readonly target: ConformanceTarget<unknown>;
  readonly #free: ConformanceDatabase<unknown>[] = [];
  readonly #opened: ConformanceDatabase<unknown>[] = [];

  constructor(target: ConformanceTarget<unknown>) {
    const open = async (): Promise<ConformanceDatabase<unknown>> => {
      const database = this.#free.pop() ?? (await target.open());
      if (!this.#opened.includes(database)) this.#opened.push(database);
      const stop = async (): Promise<void> => {
        await database.query(dropTables);
        this.#free.push(database);
      };
      return {
        tables: database.tables,
        database: () => database.database(),
        where: (table, values) => database.where(table, values),
        query: (statement) => database.query(statement),
        write: (db, statement) => database.write(db, statement),
        stop,
      };
    };
    this.target = { ...target, open };
  }

  async stop(): Promise<void> {
    for (const database of this.#opened) await database.stop();
  }
}
