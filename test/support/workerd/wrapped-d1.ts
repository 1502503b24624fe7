/** Carries out one execution, or lets it fail. `sql`: its statements. */
type Execute = (sql: string[], work: () => Promise<unknown>) => Promise<unknown>;

/** A D1 whose every execution goes through `execute`: a statement's own, or that of a batch. */
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
