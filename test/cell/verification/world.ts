import { sql, type SQL } from "drizzle-orm";
import { createCell, type Cell } from "../../../src/cell/cell.ts";
import type { Claimable } from "../../../src/cell/claimable.ts";
import type { CellDatabase } from "../../../src/cell/local.ts";
import type { LedgerHistoryTable } from "../../../src/cell/saved-history.ts";
import { createClient, type Client } from "../../../src/client/client.ts";
import type { Batch, Bucket, Record as ClaimRecord, Source } from "../../../src/client/api-types.ts";
import type { LedgerPoint } from "../../../src/client/ledger-history.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/testing/index.ts";
import { FaultyFetch } from "../../../src/cell/conformance/faulty-fetch.ts";
import type { Orm, Tx } from "../scenarios/dialect.ts";
import { claimablesOf, type Dialect, type Tables } from "./dialects.ts";

const HOUR_MS = 3_600_000;
const LONG_MS = 10_000;

/**
 * The table of the ledger's points, without writes after `close`. A cell saves its points up to 5 s after the
 * last answer, when the next test may already use the same database with another coordinator. The ledger of
 * that coordinator does not have these points, so it would rightly refuse every call.
 */
class ClosableHistory implements LedgerHistoryTable {
  readonly #table: LedgerHistoryTable;
  readonly #writes = new Set<Promise<void>>();
  #isClosed = false;

  constructor(table: LedgerHistoryTable) {
    this.#table = table;
  }

  load(cell: string): Promise<LedgerPoint[]> {
    return this.#table.load(cell);
  }

  save(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    return this.#write(() => this.#table.save(cell, points));
  }

  remove(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    return this.#write(() => this.#table.remove(cell, points));
  }

  /** Waits for the writes that have started, and refuses later ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#writes);
  }

  async #write(start: () => Promise<void>): Promise<void> {
    if (this.#isClosed) throw new Error("the test of this cell has ended");
    const write = start();
    this.#writes.add(write);
    try {
      await write;
    } finally {
      this.#writes.delete(write);
    }
  }
}

/** A cell with its own database, and a coordinator whose clock can be advanced. */
export class VerifiedCell {
  readonly dialect: Dialect;
  readonly coordinator: TestCoordinator;
  readonly network: FaultyFetch;
  readonly client: Client;
  readonly cell: Cell<Tx>;
  readonly orm: Orm;
  readonly #histories: ClosableHistory[] = [];

  private constructor(dialect: Dialect, coordinator: TestCoordinator, orm: Orm) {
    const id = "1";
    this.dialect = dialect;
    this.coordinator = coordinator;
    this.orm = orm;
    this.network = new FaultyFetch((url, init) => coordinator.fetch(url, init));
    const { url, keys } = coordinator;
    this.client = createClient({
      url,
      key: keys.cell(id),
      cell: id,
      fetch: this.network.fetch,
      retries: 1,
      backoffMs: 1,
      breaker: false,
    });
    this.cell = this.open(claimablesOf(dialect.tables));
  }

  /** Starts with empty tables. */
  static async start(dialect: Dialect, orm: Orm): Promise<VerifiedCell> {
    const cell = new VerifiedCell(dialect, await startTestCoordinator(), orm);
    await cell.cell.install();
    for (const statement of dialect.emptyTables) await orm.execute(sql.raw(statement));
    return cell;
  }

  get tables(): Tables {
    return this.dialect.tables;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#histories.map((history) => history.close()));
    await this.coordinator.close();
  }

  /** The database for a cell of this test. After `stop`, the cell saves no more points of its ledger. */
  database(): CellDatabase<Tx> {
    const database = this.dialect.database(this.orm);
    const history = new ClosableHistory(database.ledgerHistory);
    this.#histories.push(history);
    return Object.defineProperty(database, "ledgerHistory", { value: history });
  }

  /** The cell in another process, which may have other tables. A slow machine meets its long deadlines. */
  open(tables: readonly Claimable[], database = this.database()): Cell<Tx> {
    return createCell<Tx>({
      client: this.client,
      database,
      tables,
      beginDeadlineMs: LONG_MS,
      decideDeadlineMs: LONG_MS,
    });
  }

  /** A client of another cell. */
  other(): Client {
    const { url, keys } = this.coordinator;
    return createClient({
      url,
      key: keys.cell("2"),
      cell: "2",
      fetch: (to, init) => this.coordinator.fetch(to, init),
    });
  }

  /** Adds users with claims, both old enough to be verified. */
  async addUsers(count: number, prefix: string): Promise<void> {
    await this.cell.bulkInsert(
      this.tables.users,
      Array.from({ length: count }, (_, index) => ({ username: `${prefix}-${index + 1}` })),
    );
    await this.age();
  }

  /** Makes all rows and claims several days old. */
  async age(): Promise<void> {
    await this.orm.update(this.tables.users).set({ updatedAt: this.dialect.ago(3 * 86_400) });
    await this.coordinator.advance(48 * HOUR_MS);
  }

  async sql(statement: SQL): Promise<void> {
    await this.orm.execute(statement);
  }

  /** Changes claims without changing rows. */
  async lease(batch: Batch, client = this.client): Promise<void> {
    await client.leases.commit((await client.leases.begin(batch)).uuid);
  }

  async records(source: Source["type"]): Promise<ClaimRecord[]> {
    return this.client.records.list({ sourceType: source, pageSize: 1_000 }).all();
  }

  /** Answers `value: status of cell for row` for each value. */
  async owners(type: Bucket["type"], ...values: string[]): Promise<string[]> {
    const results = await this.client.records.lookup(values.map((value) => ({ type, value })));
    return results.map(({ bucket, record }) => {
      if (record === undefined) return `${bucket.value}: free`;
      const row = "source" in record ? ` for ${record.source.id}` : "";
      return `${bucket.value}: ${record.status} of ${record.cell_id}${row}`;
    });
  }
}
