import { counts } from "./counts.ts";

const databases = new WeakMap<D1Database, D1Database>();

/**
 * Wraps a D1 database with counters. Returns the same wrapper for the same database, because the application
 * caches its state by environment.
 */
export function countedD1(real: D1Database): D1Database {
  const known = databases.get(real);
  if (known !== undefined) return known;
  const made = {
    prepare: (sql: string) => new CountedStatement(real.prepare(sql)),
    batch: (statements: CountedStatement[]) =>
      counted(() => real.batch(statements.map(({ real: statement }) => statement))),
  } as unknown as D1Database;
  databases.set(real, made);
  return made;
}

/** `raw` and `first` do not return their cost, so both are implemented with `all`. */
class CountedStatement {
  readonly real: D1PreparedStatement;

  constructor(real: D1PreparedStatement) {
    this.real = real;
  }

  bind(...values: unknown[]): CountedStatement {
    return new CountedStatement(this.real.bind(...values));
  }

  async all(): Promise<D1Result> {
    const [result] = await counted(async () => [await this.real.all()] as const);
    return result;
  }

  run(): Promise<D1Result> {
    return this.all();
  }

  async raw(): Promise<unknown[][]> {
    return (await this.all()).results.map((row) => Object.values(row as object));
  }

  async first(): Promise<unknown> {
    return (await this.all()).results[0] ?? null;
  }
}

/** A failed call is counted too, but D1 does not return the rows that it read or wrote. */
async function counted<Results extends readonly D1Result[]>(call: () => Promise<Results>): Promise<Results> {
  const { d1 } = counts.current;
  d1.calls += 1;
  const results = await call();
  for (const { meta } of results) {
    d1.rowsRead += meta.rows_read;
    d1.rowsWritten += meta.rows_written;
  }
  return results;
}
