import { sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { createCell, type Cell, type CellEvent, type CellOptions } from "../../../src/cell/cell.ts";
import type { CellDatabase } from "../../../src/cell/local.ts";
import { createClient, type Client } from "../../../src/client/client.ts";
import type { Fetch } from "../../../src/client/connection.ts";
import type { Bucket, LookupResult } from "../../../src/client/api-types.ts";
import { claimablesOf, type Dialect, type Orm, type Tx } from "./dialect.ts";
import { FaultyFetch } from "./faulty-fetch.ts";

/** A running coordinator with cells 1 and 2. */
export interface TestedCoordinator {
  url: string;
  fetch: Fetch;
  keys: { cell(id: string): string; router: string };
  stop(): Promise<void>;
}

/** An empty database of one cell. */
export interface TestedDatabase {
  orm: Orm;
  /** Whether transactions can run at the same time. An embedded database has one connection. */
  isConcurrent: boolean;
  /** Whether the driver notices a COMMIT that was answered with ROLLBACK. */
  looksAtCommit: boolean;
  stop(): Promise<void>;
}

export interface World {
  dialect: Dialect;
  coordinator: TestedCoordinator;
  one: TestedCell;
  two: TestedCell;
}

let serial = 0;
/** A name that no other test uses, because all tests of a file share a coordinator. */
export const fresh = (name: string): string => `${name}-${(serial += 1)}`;

/** One cell with its database, its network and its events. */
export class TestedCell {
  readonly id: string;
  readonly dialect: Dialect;
  readonly orm: Orm;
  readonly network: FaultyFetch;
  readonly client: Client;
  readonly database: CellDatabase<Tx>;
  readonly cell: Cell<Tx>;
  readonly events: CellEvent[] = [];
  readonly isConcurrent: boolean;
  readonly looksAtCommit: boolean;

  constructor(
    id: string,
    dialect: Dialect,
    coordinator: TestedCoordinator,
    { orm, isConcurrent, looksAtCommit }: Omit<TestedDatabase, "stop">,
    options: Partial<CellOptions<Tx>> = {},
  ) {
    this.id = id;
    this.dialect = dialect;
    this.orm = orm;
    this.isConcurrent = isConcurrent;
    this.looksAtCommit = looksAtCommit;
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
    });
    this.database = dialect.database(orm);
    this.cell = createCell<Tx>({
      client: this.client,
      database: this.database,
      tables: claimablesOf(dialect.tables),
      // Long deadlines, so that a slow machine does not cause timeouts.
      beginDeadlineMs: 10_000,
      decideDeadlineMs: 10_000,
      onEvent: (event) => this.events.push(event),
      ...options,
    });
  }

  /** Another process of the same cell, with the same database. */
  sibling(coordinator: TestedCoordinator, options: Partial<CellOptions<Tx>>): TestedCell {
    return new TestedCell(this.id, this.dialect, coordinator, this, options);
  }

  async prepare(): Promise<this> {
    for (const statement of this.dialect.createTables) await this.orm.execute(sql.raw(statement));
    await this.cell.install();
    return this;
  }

  async rows(table: PgTable): Promise<Record<string, unknown>[]> {
    return this.orm.select().from(table);
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
    await this.orm.execute(this.dialect.age(uuid, seconds));
  }
}

function ownerText({ bucket, found, record }: LookupResult): string {
  return found && record !== undefined
    ? `${bucket.value}: ${record.status} of ${record.cell_id}`
    : `${bucket.value}: free`;
}
