import { createCell, type Cell } from "../../cell.ts";
import { claimable, type Claimable } from "../../claimable.ts";
import type { CellDatabase } from "../../local.ts";
import type { LedgerHistoryTable } from "../../saved-history.ts";
import type { NamedTable } from "../../table.ts";
import type { Cursor } from "../../verification/cursor.ts";
import type { VerificationDatabase } from "../../verification/ports.ts";
import { createClient, type Client } from "../../../client/client.ts";
import type { Batch, Bucket, ClaimRecord, Source } from "../../../client/api-types.ts";
import type { LedgerPoint } from "../../../client/ledger-history.ts";
import type { TestCoordinator } from "../../../testing/index.ts";
import { FaultyFetch } from "../faulty-fetch.ts";
import {
  patientCell,
  patientClient,
  type ConformanceDatabase,
  type ConformanceRows,
  type ConformanceTarget,
  type Suites,
  type TableName,
} from "../target.ts";
import { dialects } from "../schema.ts";
import { createTables, quoted, type Match } from "../world.ts";

const HOUR_MS = 3_600_000;

type VerifiedName = "accounts" | "emails" | "projects" | "teams";
type VerifiedTables = { [Name in VerifiedName]: NamedTable<ConformanceRows[Name], object> };

/** The whole numbers from `from` to `to`. */
export const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** SQL in the place of a value. */
class Expression {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type WrittenRow<Name extends TableName> = {
  [Column in keyof ConformanceRows[Name]]?: ConformanceRows[Name][Column] | Expression;
};
/** The claimable tables that the suite verifies. */
export const verifiedTablesOf = ({ accounts, emails, projects, teams }: VerifiedTables): Claimable[] => [
  claimable(accounts, {
    source: "RAILS_TABLE_USERS",
    subject: { type: "USER", id: "id" },
    changedAt: "updated_at",
    attributes: { id: "USER_IDS", username: { bucket: "USERNAMES", when: ({ bot }) => !bot } },
  }),
  // Has no column with the time of a change.
  claimable(emails, {
    source: "RAILS_TABLE_EMAILS",
    subject: { type: "USER", id: "owner" },
    attributes: { email: "EMAILS" },
  }),
  claimable(projects, {
    source: "RAILS_TABLE_PROJECTS",
    subject: { type: "PROJECT", id: "id" },
    attributes: { path: "ROUTES" },
  }),
  claimable(teams, {
    source: "RAILS_TABLE_ORGANIZATIONS",
    subject: { type: "ORGANIZATION", id: "id" },
    attributes: { path: "ORGANIZATION_PATH" },
  }),
];

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
  readonly target: ConformanceTarget<unknown>;
  readonly coordinator: TestCoordinator;
  readonly network: FaultyFetch;
  readonly client: Client;
  readonly claimables: readonly Claimable[];
  readonly cell: Cell<unknown>;

  readonly #opened: ConformanceDatabase<unknown>;
  readonly #histories: ClosableHistory[] = [];

  private constructor(
    target: ConformanceTarget<unknown>,
    opened: ConformanceDatabase<unknown>,
    coordinator: TestCoordinator,
  ) {
    const id = "1";
    this.target = target;
    this.#opened = opened;
    this.coordinator = coordinator;
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
      ...patientClient,
    });
    this.claimables = verifiedTablesOf(this.tables);
    this.cell = this.open(this.claimables);
  }

  /** Starts with empty tables. */
  static async start(
    target: ConformanceTarget<unknown>,
    opened: ConformanceDatabase<unknown>,
  ): Promise<VerifiedCell> {
    const { startTestCoordinator } = await import("../../../testing/index.ts");
    const cell = new VerifiedCell(target, opened, await startTestCoordinator());
    await cell.cell.install();
    for (const statement of dialects[target.dialect].emptyTables) await opened.query(statement);
    return cell;
  }

  /** The tables as the adapter knows them. */
  get tables(): VerifiedTables {
    return this.#opened.tables as unknown as VerifiedTables;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#histories.map((history) => history.close()));
    await this.coordinator.close();
  }

  /** The database for a cell of this test. After `stop`, the cell saves no more points of its ledger. */
  database(): CellDatabase<unknown> {
    const database = this.#opened.database();
    const history = new ClosableHistory(database.ledgerHistory);
    this.#histories.push(history);
    return Object.defineProperty(database, "ledgerHistory", { value: history });
  }

  /** What the adapter's database does for verification. */
  get verification(): VerificationDatabase<unknown> {
    return this.#opened.database().verification;
  }

  /** The adapter's condition for the rows of a table that have these values. */
  where<Name extends VerifiedName>(name: Name, match: Match<Name>): never {
    return this.#opened.where(this.#opened.tables[name], match) as never;
  }

  /** Adds rows without the SDK. */
  async insert<Name extends TableName>(name: Name, rows: readonly WrittenRow<Name>[]): Promise<void> {
    const columns = Object.keys(rows[0] ?? {});
    const values = rows.map((row) => `(${Object.values<unknown>(row).map(literal).join(", ")})`);
    await this.sql(`INSERT INTO ${name} (${columns.join(", ")}) VALUES ${values.join(", ")}`);
  }

  /** Changes rows without the SDK. */
  async update<Name extends TableName>(
    name: Name,
    set: WrittenRow<Name>,
    match: Match<Name> = {},
  ): Promise<void> {
    const values = Object.entries<unknown>(set).map(([column, value]) => `${column} = ${literal(value)}`);
    await this.sql(`UPDATE ${name} SET ${values.join(", ")}${conditionOf(match)}`);
  }

  /** Deletes rows without the SDK. */
  async delete<Name extends TableName>(name: Name, match: Match<Name> = {}): Promise<void> {
    await this.sql(`DELETE FROM ${name}${conditionOf(match)}`);
  }

  /** A time before now, by the database's clock. */
  ago(seconds: number): Expression {
    return new Expression(dialects[this.target.dialect].ago(seconds));
  }

  /** Answers where the next run continues. */
  async savedCursor(): Promise<Cursor | undefined> {
    const progress = await this.verification.loadProgress();
    return progress && (JSON.parse(progress.text) as Cursor);
  }

  async changeCursor(place: Partial<Cursor>): Promise<void> {
    await this.verification.saveProgress(JSON.stringify({ ...(await this.savedCursor()), ...place }));
  }

  /** Queues a row for the next verification, as a cell does that has lost the answer to a COMMIT. */
  async queue(id: number | string, leaseUuid = crypto.randomUUID()): Promise<void> {
    await this.sql(
      `INSERT INTO leasehold_verification_queue (source_type, source_id, lease_uuid)
        VALUES ('RAILS_TABLE_USERS', '${id}', '${leaseUuid}')`,
    );
  }

  async queuedIds(): Promise<string[]> {
    const queued = await this.verification.listQueue({ after: undefined, limit: 1_000 });
    return queued.map(({ id }) => id);
  }

  /** The cell in another process, which may have other tables. */
  open(tables: readonly Claimable[], database = this.database()): Cell<unknown> {
    return createCell({
      client: this.client,
      database,
      tables,
      ...patientCell,
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
      ...patientClient,
    });
  }

  /** Adds accounts with claims, both old enough to be verified. */
  async addAccounts(count: number, prefix: string): Promise<void> {
    await this.cell.bulkInsert(
      this.tables.accounts,
      Array.from({ length: count }, (_, index) => ({ username: `${prefix}-${index + 1}` })),
    );
    await this.age();
  }

  /** Adds emails without claims. */
  async addEmails(from: number, to: number, prefix: string): Promise<void> {
    await this.insert(
      "emails",
      numbers(from, to).map((id) => ({ owner: id, email: `${prefix}${id}@x.org` })),
    );
  }

  /** Makes all rows and claims several days old. */
  async age(): Promise<void> {
    await this.update("accounts", { updated_at: this.ago(3 * 86_400) });
    await this.coordinator.advance(48 * HOUR_MS);
  }

  /** Runs a statement without the SDK. */
  async sql(statement: string): Promise<void> {
    await this.#opened.query(statement);
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

function literal(value: unknown): string {
  if (value instanceof Expression) return value.text;
  return typeof value === "string" ? quoted(value) : String(value);
}

function conditionOf(match: object): string {
  const conditions = Object.entries(match).map(([column, value]: [string, unknown]) =>
    Array.isArray(value)
      ? `${column} IN (${value.map(literal).join(", ")})`
      : `${column} = ${literal(value)}`,
  );
  return conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
}

/** Declares tests with a new coordinator and empty tables for each of them. */
export function verifiedCellSuite(
  { describe, beforeAll, beforeEach, afterAll }: Suites,
  target: ConformanceTarget<unknown>,
  name: string,
  body: (current: () => VerifiedCell) => void,
): void {
  describe(name, () => {
    let opened: ConformanceDatabase<unknown>;
    let one: VerifiedCell | undefined;
    beforeAll(async () => {
      opened = await target.open();
      await createTables(target, opened);
    });
    // The suites get no `afterEach`, so each test stops the cell of the test before it.
    const stopLast = async (): Promise<void> => {
      const last = one;
      // A test that cannot start its cell must not stop this one again.
      one = undefined;
      await last?.stop();
    };
    beforeEach(async () => {
      await stopLast();
      one = await VerifiedCell.start(target, opened);
    });
    afterAll(async () => {
      await stopLast();
      await opened.stop();
    });
    body(() => one as VerifiedCell);
  });
}
