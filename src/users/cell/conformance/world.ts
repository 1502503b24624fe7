import type { BulkInsertOptions, BulkProgress } from "../bulk-changes.ts";
import type { Cell, CellEvent, CellOptions } from "../cell.ts";
import { createCell } from "../cell.ts";
import type { ClaimTransaction } from "../claim-transaction.ts";
import type { CellDatabase } from "../local.ts";
import type { PlannedWrites } from "../planned-writes.ts";
import type { Bucket, LookupResult } from "../../client/api-types.ts";
import { createClient, type Client } from "../../client/client.ts";
import { FaultyFetch } from "./faulty-fetch.ts";
import {
  patientCell,
  patientClient,
  type ConformanceCoordinator,
  type ConformanceDatabase,
  type ConformanceRows,
  type ConformanceTarget,
  type Suites,
  type TableName,
  type Values,
} from "./target.ts";
import { claimablesOf, dialects, switches } from "./schema.ts";

export interface World<Coordinator extends ConformanceCoordinator = ConformanceCoordinator> {
  target: ConformanceTarget<unknown>;
  coordinator: Coordinator;
  one: ConformanceCell;
  two: ConformanceCell;
}

let serial = 0;
/** A name that no other test uses, because all tests of a file share a coordinator. */
export const fresh = (name: string): string => `${name}-${(serial += 1)}`;

/** Columns and their values. An array means any of its values. */
export type Match<Name extends TableName> = {
  [Column in keyof ConformanceRows[Name]]?:
    | ConformanceRows[Name][Column]
    | readonly ConformanceRows[Name][Column][];
};

type Row<Name extends TableName> = ConformanceRows[Name];
type NewRow<Name extends TableName> = Partial<Row<Name>>;

/** What the adapter under test knows of the tables. */
class Tables {
  readonly #opened: ConformanceDatabase<unknown>;

  constructor(opened: ConformanceDatabase<unknown>) {
    this.#opened = opened;
  }

  of(name: TableName): never {
    return this.#opened.tables[name] as never;
  }

  where(name: TableName, match: Values | undefined): never {
    const where = match === undefined ? undefined : this.#opened.where(this.of(name), match);
    return where as never;
  }
}

/** A transaction of the cell under test, with the tables' names. */
export class TestedTransaction {
  readonly db: unknown;
  readonly #tx: ClaimTransaction<unknown>;
  readonly #tables: Tables;

  constructor(tx: ClaimTransaction<unknown>, tables: Tables) {
    this.db = tx.db;
    this.#tx = tx;
    this.#tables = tables;
  }

  insert<N extends TableName>(name: N, row: NewRow<N>): Promise<Row<N>> {
    return this.#tx.insert(this.#tables.of(name), row as never);
  }

  insertMany<N extends TableName>(name: N, rows: readonly NewRow<N>[]): Promise<Row<N>[]> {
    return this.#tx.insertMany(this.#tables.of(name), rows as never);
  }

  update<N extends TableName>(name: N, match: Match<N>, set: NewRow<N>): Promise<Row<N>[]> {
    return this.#tx.update(this.#tables.of(name), this.#tables.where(name, match), set as never);
  }

  delete<N extends TableName>(name: N, match: Match<N>): Promise<Row<N>[]> {
    return this.#tx.delete(this.#tables.of(name), this.#tables.where(name, match));
  }

  deleteLater<N extends TableName>(name: N, match: Match<N>): Promise<number> {
    return this.#tx.deleteLater(this.#tables.of(name), this.#tables.where(name, match));
  }

  upsert<N extends TableName>(name: N, key: readonly (keyof Row<N>)[], row: NewRow<N>): Promise<Row<N>> {
    return this.#tx.upsert(this.#tables.of(name), key as never, row as never);
  }

  lock<N extends TableName>(name: N, match: Match<N>): Promise<Row<N>[]> {
    return this.#tx.lock(this.#tables.of(name), this.#tables.where(name, match));
  }

  inserted<N extends TableName>(name: N, row: Row<N>): void {
    this.#tx.inserted(this.#tables.of(name), row as never);
  }
}

/** A preflight's plan, with the tables' names. */
class TestedPlan {
  readonly #plan: PlannedWrites<unknown>;
  readonly #tables: Tables;

  constructor(plan: PlannedWrites<unknown>, tables: Tables) {
    this.#plan = plan;
    this.#tables = tables;
  }

  insert<N extends TableName>(name: N, row: NewRow<N>): void {
    this.#plan.insert(this.#tables.of(name), row as never);
  }

  update<N extends TableName>(name: N, before: Row<N>, set: NewRow<N>): void {
    this.#plan.update(this.#tables.of(name), before as never, set as never);
  }

  delete<N extends TableName>(name: N, row: Row<N>): void {
    this.#plan.delete(this.#tables.of(name), row as never);
  }
}

/** One cell with its database, its network and its events. */
export class ConformanceCell<Tx = unknown> {
  readonly id: string;
  readonly target: ConformanceTarget<Tx>;
  readonly opened: ConformanceDatabase<Tx>;
  readonly network: FaultyFetch;
  readonly client: Client;
  readonly database: CellDatabase<Tx>;
  readonly cell: Cell<Tx>;
  readonly events: CellEvent[] = [];
  readonly #tables: Tables;

  constructor(
    id: string,
    target: ConformanceTarget<Tx>,
    coordinator: ConformanceCoordinator,
    opened: ConformanceDatabase<Tx>,
    options: Partial<CellOptions<Tx>> = {},
  ) {
    this.id = id;
    this.target = target;
    this.opened = opened;
    this.#tables = new Tables(opened);
    this.network = new FaultyFetch(coordinator.fetch);
    // Short pauses keep the tests fast.
    this.client = createClient({
      url: coordinator.url,
      key: coordinator.keys.cell(id),
      cell: id,
      fetch: this.network.fetch,
      retries: 1,
      backoffMs: 1,
      breaker: false,
      ...patientClient,
    });
    this.database = opened.database();
    this.cell = createCell({
      client: this.client,
      database: this.database,
      tables: claimablesOf(opened.tables),
      ...patientCell,
      onEvent: (event) => this.events.push(event),
      ...options,
    });
  }

  /** Another process of the same cell, with the same database. */
  sibling(coordinator: ConformanceCoordinator, options: Partial<CellOptions<Tx>> = {}): ConformanceCell<Tx> {
    return new ConformanceCell(this.id, this.target, coordinator, this.opened, options);
  }

  async prepare(): Promise<this> {
    await createTables(this.target, this.opened);
    await this.cell.install();
    return this;
  }

  transaction<T>(body: (tx: TestedTransaction) => Promise<T>): Promise<T> {
    return this.cell.transaction((tx) => body(this.#named(tx)));
  }

  preflight<T = void>(
    plan: (writes: TestedPlan) => void,
    body?: (tx: TestedTransaction) => Promise<T>,
  ): Promise<T> {
    return this.cell.preflight(
      (writes) => plan(new TestedPlan(writes as PlannedWrites<unknown>, this.#tables)),
      body && ((tx) => body(this.#named(tx))),
    );
  }

  bulkInsert<N extends TableName>(
    name: N,
    rows: readonly NewRow<N>[],
    options?: BulkInsertOptions,
  ): Promise<BulkProgress> {
    return this.cell.bulkInsert(this.#tables.of(name), rows as never, options);
  }

  bulkDelete<N extends TableName>(name: N, match?: Match<N>): Promise<BulkProgress> {
    return this.cell.bulkDelete(this.#tables.of(name), this.#tables.where(name, match));
  }

  /** Runs a statement within a transaction, without the SDK. */
  async write(db: Tx, statement: string): Promise<void> {
    await this.opened.write(db, statement);
  }

  /** Undoes a transaction without an error that the cell sees. */
  async spoil(db: Tx): Promise<void> {
    const { statement, isError } = dialects[this.target.dialect].spoil;
    const spoilt = this.opened.write(db, statement);
    await (isError ? spoilt.catch(() => {}) : spoilt);
  }

  /** Answers the rows that match, in the order of their ids. */
  async rows<N extends TableName>(
    name: N,
    column?: keyof Row<N> & string,
    value?: string,
  ): Promise<Row<N>[]> {
    const where = column === undefined ? "" : ` WHERE ${column} = ${quoted(value ?? "")}`;
    return (await this.opened.query(`SELECT * FROM ${name}${where} ORDER BY id`)) as Row<N>[];
  }

  async outstanding(): Promise<{ uuid: string; state: string }[]> {
    const saved = await this.database.list({ afterUuid: "", limit: 1_000 });
    return saved.map(({ uuid }) => ({ uuid, state: "saved" }));
  }

  async granted(): Promise<string[]> {
    return (await this.client.leases.list().all()).map(({ uuid }) => uuid);
  }

  /** Answers `value: status of cell`, or `value: free`, for each value. */
  async owners(type: Bucket["type"], ...values: string[]): Promise<string[]> {
    const results = await this.client.records.lookup(values.map((value) => ({ type, value })));
    return results.map(ownerText);
  }

  /** Makes the rows of leases older, by the database's clock. */
  async age(uuid: string, seconds: number): Promise<void> {
    await this.opened.query(dialects[this.target.dialect].age(uuid, seconds * 1_000));
  }

  #named(tx: ClaimTransaction<Tx>): TestedTransaction {
    return new TestedTransaction(tx, this.#tables);
  }
}

/** Declares the start of a coordinator with two cells, which the tests of a `describe` share. */
export function worldOf<Coordinator extends ConformanceCoordinator>(
  { afterAll, beforeAll, beforeEach }: Suites,
  target: ConformanceTarget<unknown>,
  startCoordinator: () => Promise<Coordinator>,
): World<Coordinator> {
  const world = { target } as World<Coordinator>;
  const stops: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    world.coordinator = await startCoordinator();
    stops.push(() => world.coordinator.stop());
    for (const [key, id] of [
      ["one", "1"],
      ["two", "2"],
    ] as const) {
      const opened = await target.open();
      stops.push(() => opened.stop());
      world[key] = await new ConformanceCell(id, target, world.coordinator, opened).prepare();
      stops.push(() => world[key].cell.flush());
    }
  });
  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });
  beforeEach(async () => {
    switches.usernames = true;
    for (const each of [world.one, world.two]) {
      each.network.forget();
      each.events.length = 0;
    }
  });
  return world;
}

export async function signUp(
  cell: ConformanceCell,
  username: string,
  email = `${username}@x.io`,
): Promise<number> {
  return cell.transaction(async (tx) => {
    const user = await tx.insert("users", { username });
    await tx.insert("emails", { owner: user.id, email });
    return user.id;
  });
}

/** The text as a literal of SQL. The suites write no backslashes. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export async function createTables(
  { dialect }: Pick<ConformanceTarget<unknown>, "dialect">,
  { query }: Pick<ConformanceDatabase<unknown>, "query">,
): Promise<void> {
  for (const statement of dialects[dialect].createTables) await query(statement);
}

function ownerText({ bucket, found, record }: LookupResult): string {
  return found && record !== undefined
    ? `${bucket.value}: ${record.status} of ${record.cell_id}`
    : `${bucket.value}: free`;
}
