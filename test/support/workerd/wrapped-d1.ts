/** Carries out one execution, or lets it fail. `sql` lists its statements. */
type Execute = (sql: string[], work: () => Promise<unknown>) => Promise<unknown>;

/** Returns a D1 that passes every execution, of a statement or of a batch, to `execute`. */
export function wrappedD1(real: D1Database, execute: Execute): D1Database {
  const originals = new WeakMap<object, { statement: D1PreparedStatement; sql: string }>();
  const wrap = (statement: D1PreparedStatement, sql: string): object => {
    const wrapped = {
      bind: (...values: unknown[]) => wrap(statement.bind(...values), sql),
      run: () => execute([sql], () => statement.run()),
      all: () => execute([sql], () => statement.all()),
      raw: () => execute([sql], () => statement.raw()),
    };
    originals.set(wrapped, { statement, sql });
    return wrapped;
  };
  const database = {
    prepare: (sql: string) => wrap(real.prepare(sql), sql),
    batch: (statements: object[]) => {
      const batched = statements.flatMap((statement) => originals.get(statement) ?? []);
      return execute(
        batched.map(({ sql }) => sql),
        () => real.batch(batched.map(({ statement }) => statement)),
      );
    },
  };
  return database as unknown as D1Database;
}
