/** The conformance suite with drizzle's databases. */
import { and, eq, getTableColumns, inArray, sql, type Table } from "drizzle-orm";
import type { CellOptions } from "../../../../src/users/cell/cell.ts";
import type { Dialect, Orm, Tx } from "./dialect.ts";
import type {
  ConformanceCoordinator,
  ConformanceDatabase,
  ConformanceTarget,
  Values,
} from "../../../../src/users/cell/conformance/target.ts";
import { ConformanceCell } from "../../../../src/users/cell/conformance/world.ts";

/** A running coordinator with cells 1 and 2. */
export interface TestedCoordinator extends ConformanceCoordinator {
  keys: { cell(id: string): string; router: string };
}

/** An empty database of one cell. */
export interface TestedDatabase {
  orm: Orm;
  /** Whether transactions can run at the same time. An embedded database has one connection. */
  isConcurrent: boolean;
  query: (statement: string) => Promise<Values[]>;
  stop: () => Promise<void>;
}

type Facts = Pick<ConformanceTarget<Tx>, "name" | "isConcurrent">;

/** A target of the conformance suite. */
export const drizzleTarget = (
  facts: Facts,
  dialect: Dialect,
  start: () => Promise<TestedDatabase>,
): ConformanceTarget<unknown> => ({
  ...facts,
  dialect: dialect.name,
  open: async () => opened(dialect, await start()),
});

function opened(dialect: Dialect, { orm, query, stop }: TestedDatabase): ConformanceDatabase<Tx> {
  return {
    tables: dialect.tables,
    database: () => dialect.database(orm),
    where: (table, values) => {
      const columns = getTableColumns(table as Table);
      const conditions = Object.entries(values).map(([name, value]) => {
        const column = columns[name];
        if (column === undefined) throw new Error(`there is no column ${name}`);
        return Array.isArray(value) ? inArray(column, value) : eq(column, value);
      });
      return and(...conditions);
    },
    query,
    write: (db, statement) => db.execute(sql.raw(statement)),
    stop,
  };
}

/** A cell whose database tests also reach with drizzle. */
export class TestedCell extends ConformanceCell<Tx> {
  readonly dialect: Dialect;
  readonly orm: Orm;
  readonly #tested: TestedDatabase;

  constructor(
    id: string,
    dialect: Dialect,
    coordinator: ConformanceCoordinator,
    tested: TestedDatabase,
    options: Partial<CellOptions<Tx>> = {},
  ) {
    const facts = { name: "", isConcurrent: tested.isConcurrent };
    const target = drizzleTarget(facts, dialect, async () => tested);
    super(id, target as ConformanceTarget<Tx>, coordinator, opened(dialect, tested), options);
    this.dialect = dialect;
    this.orm = tested.orm;
    this.#tested = tested;
  }

  override sibling(coordinator: ConformanceCoordinator, options: Partial<CellOptions<Tx>> = {}): TestedCell {
    return new TestedCell(this.id, this.dialect, coordinator, this.#tested, options);
  }
}
