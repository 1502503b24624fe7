import { and, asc, eq, getTableColumns, inArray, sql, type Column, type SQL, type Table } from "drizzle-orm";
import { inChunks } from "../chunks.ts";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { AnyRow } from "../table.ts";
import type {
  IdRange,
  InspectedRow,
  QueuePage,
  QueuedRow,
  ReadPage,
  VerificationDatabase,
} from "../verification/ports.ts";
import { sqlOrm, type Connection, type SqlOrm, type SqlParts, type SqlTable } from "./connection.ts";
import { checkExact, roundsIntegers, ROWS_PER_STATEMENT } from "./database.ts";
import { idKindOf, NO_ROW, type RowOrder } from "./row-order.ts";

/** The cell's own tables for verification, as a dialect declares them. */
interface VerificationTables {
  progress: Table & Record<"name" | "progress" | "savedAt", Column>;
  queue: Table & Record<"sourceType" | "sourceId" | "leaseUuid", Column>;
}

/** Expressions that each dialect writes in its own way. */
export interface VerificationExpressions {
  orderOf(idColumn: Column): RowOrder;
  /** The age of a time in milliseconds, by the database's clock. */
  ageMsOf(time: Column): SQL<number>;
  /** The text of a value, as the database writes it. */
  textOf(column: Column): SQL<string>;
}

/** The key of the only row in the table of verification progress. */
export const PROGRESS_NAME = "verification";

/** Names of the selected expressions next to a row's own columns. */
const AGE_COLUMN = "leaseholdAgeMs";
const ID_COLUMN = "leaseholdId";

/** How many ids a message names. */
const SHOWN_IDS = 3;

interface Query<Tx> {
  tx: Tx | undefined;
  isLocking: boolean;
  its: SqlTable;
  where: SQL | undefined;
  by: SQL;
  limit?: number;
}

/** Statements of verification that are the same in all dialects. */
export abstract class SqlVerification<Tx, Orm> implements VerificationDatabase<Tx> {
  protected readonly parts: SqlParts<Tx, Orm>;
  protected readonly connection: Connection<Tx, Orm>;
  readonly #tables: VerificationTables;
  readonly #expressions: VerificationExpressions;

  constructor(parts: SqlParts<Tx, Orm>, tables: VerificationTables, expressions: VerificationExpressions) {
    this.parts = parts;
    this.connection = parts.connection;
    this.#tables = tables;
    this.#expressions = expressions;
  }

  abstract saveProgress(text: string): Promise<void>;

  /** Throws if rows are of another table. Answers them without what tells it. */
  protected ofTable(_claimable: Claimable, rows: readonly AnyRow[]): AnyRow[] {
    return [...rows];
  }

  /** Whether the database leaves rows of a table out of what this role reads. Throws for another table. */
  protected abstract filters(tx: Tx | undefined, table: SqlTable): Promise<boolean>;

  async checkGone(tx: Tx, claimable: Claimable, ids: readonly string[], isDeleted: boolean): Promise<void> {
    if (this.parts.ownRows === undefined) return;
    const its = await this.parts.tables.of(tx, claimable);
    // The adapter's own statements may leave out rows, such as those that are marked as deleted.
    const order = this.#expressions.orderOf(its.idColumn);
    const stored = await inChunks(ids, ROWS_PER_STATEMENT, async (chunk) =>
      this.#orm(tx)
        .select<{ id: unknown }>({ id: its.idColumn })
        .from(its.table)
        .where(order.isOneOf(chunk) ?? NO_ROW),
    );
    const found = stored.map(({ id }) => String(id));
    if (found.length > 0) throw (isDeleted ? kept : unseen)(claimable, found);
  }

  async #checkReads(tx: Tx | undefined, its: SqlTable): Promise<void> {
    if (await this.filters(tx, its))
      throw invalidArgument(
        "tables",
        `has ${its.claimable.name}, of which row-level security hides rows from this role: verify with a ` +
          "role that has BYPASSRLS",
      );
  }

  async count(claimable: Claimable, range: IdRange): Promise<number> {
    const { table, idColumn } = await this.parts.tables.of(undefined, claimable);
    const [counted] = await this.#orm()
      .select<{ rows: number }>({ rows: sql`count(*)`.mapWith(Number).as("row_count") })
      .from(table)
      .where(isInRange(this.#expressions.orderOf(idColumn), range));
    return counted?.rows ?? 0;
  }

  page(claimable: Claimable, range: IdRange & { limit: number }): Promise<InspectedRow[]> {
    return this.#page(undefined, claimable, range);
  }

  inSnapshot<T>(work: (page: ReadPage) => Promise<T>): Promise<T> {
    return this.connection.transaction((tx) => work((claimable, range) => this.#page(tx, claimable, range)), {
      isolationLevel: "repeatable read",
    });
  }

  async #page(
    tx: Tx | undefined,
    claimable: Claimable,
    { limit, ...range }: IdRange & { limit: number },
  ): Promise<InspectedRow[]> {
    const its = await this.parts.tables.of(tx, claimable);
    await this.#checkReads(tx, its);
    const order = this.#expressions.orderOf(its.idColumn);
    const where = isInRange(order, range);
    return this.#inspect({ tx, isLocking: false, its, where, by: order.by, limit });
  }

  async byIds(tx: Tx | undefined, claimable: Claimable, ids: readonly string[]): Promise<InspectedRow[]> {
    const its = await this.parts.tables.of(tx, claimable);
    await this.#checkReads(tx, its);
    const where = this.#expressions.orderOf(its.idColumn).isOneOf(ids);
    const isLocking = tx !== undefined;
    return where === undefined ? [] : this.#inspect({ tx, isLocking, its, where, by: sql`${its.idColumn}` });
  }

  async #inspect(query: Query<Tx>): Promise<InspectedRow[]> {
    const inspected = await this.#read(query);
    const rows = inspected.map(({ row }) => row);
    await checkExact(query.its.claimable, rows, () => roundsIntegers(this.#orm(query.tx)));
    return inspected;
  }

  async #read(query: Query<Tx>): Promise<InspectedRow[]> {
    const { ownRows } = this.parts;
    const { claimable, idColumn } = query.its;
    const isIntegerId = idKindOf(idColumn) === "integer";
    if (ownRows === undefined) {
      const found = await this.#select(query, getTableColumns(query.its.table));
      return found.map((each) => ({ ...inspectedRow(each), isIntegerId }));
    }
    // Their ages are read after the rows: a row that changes in between looks young, not old.
    const ids = (await this.#select(query, { id: idColumn })).map(({ id }) => id);
    const rows = await inChunks(ids, ROWS_PER_STATEMENT, (chunk) =>
      ownRows.select(query.tx, claimable, { ids: chunk }, { isLocking: query.isLocking }),
    );
    const byId = new Map(this.ofTable(claimable, rows).map((row) => [claimable.idOf(row), row]));
    const where = inArray(idColumn, ids);
    const described = ids.length === 0 ? [] : await this.#select({ ...query, where }, { id: idColumn });
    return described.map((each) => {
      const row = byId.get(String(each["id"]));
      if (row === undefined)
        throw invalidArgument(
          "tables",
          `has ${claimable.name}, of which the adapter does not read the row ${String(each["id"])}: let it ` +
            "read every row",
        );
      return { ...inspectedRow(each), row, isIntegerId };
    });
  }

  /** Selects these columns, and the age and the spelled id of each row. */
  async #select(
    { tx, isLocking, its, where, by, limit }: Query<Tx>,
    columns: Record<string, Column>,
  ): Promise<Record<string, unknown>[]> {
    const { table, idColumn, claimable } = its;
    const { changedAt } = claimable;
    const time = changedAt === undefined ? undefined : getTableColumns(table)[changedAt];
    const age = time === undefined ? sql`NULL` : this.#expressions.ageMsOf(time);
    const query = this.#orm(tx)
      .select<Record<string, unknown>>({
        ...columns,
        [AGE_COLUMN]: age.as(AGE_COLUMN),
        [ID_COLUMN]: this.#expressions.textOf(idColumn).as(ID_COLUMN),
      })
      .from(table)
      .where(where)
      .orderBy(asc(by));
    const limited = limit === undefined ? query : query.limit(limit);
    return isLocking ? limited.for("update") : limited;
  }

  async loadProgress(): Promise<{ text: string; ageMs: number } | undefined> {
    const { progress } = this.#tables;
    const [found] = await this.#orm()
      .select<{ text: string; ageMs: number }>({
        text: progress.progress,
        ageMs: this.#expressions.ageMsOf(progress.savedAt).as(AGE_COLUMN),
      })
      .from(progress)
      .where(eq(progress.name, PROGRESS_NAME));
    return found;
  }

  async listQueue({ after, limit }: QueuePage): Promise<QueuedRow[]> {
    const { sourceType: type, sourceId: id, leaseUuid } = this.#tables.queue;
    const rest = after === undefined ? undefined : sql`(${type}, ${id}) > (${after.type}, ${after.id})`;
    return this.#orm()
      .select<QueuedRow>({ type, id, leaseUuid })
      .from(this.#tables.queue)
      .where(rest)
      .orderBy(asc(type), asc(id))
      .limit(limit);
  }

  async removeFromQueue(rows: readonly QueuedRow[]): Promise<void> {
    const { queue } = this.#tables;
    for (const { type, id, leaseUuid } of rows)
      await this.#orm()
        .delete(queue)
        .where(and(eq(queue.sourceType, type), eq(queue.sourceId, id), eq(queue.leaseUuid, leaseUuid)));
  }

  #orm(tx?: Tx): SqlOrm {
    return sqlOrm(this.connection.orm(tx));
  }
}

const shownIds = (ids: readonly string[]): string => ids.slice(0, SHOWN_IDS).join(", ");

export const unseen = ({ name }: Claimable, ids: readonly string[]): Error =>
  invalidArgument(
    "transaction",
    `does not see rows of ${name} at its end that it wrote or locked (${shownIds(ids)}): let it see them ` +
      "until its end (row-level security, plugins that leave out rows), and delete rows with `tx.delete`, " +
      "not with `tx.db`",
  );

const kept = ({ name }: Claimable, ids: readonly string[]): Error =>
  invalidArgument(
    "transaction",
    `deleted rows of ${name} that are still stored (${shownIds(ids)}), so their names cannot be released: ` +
      "delete them, or leave soft deletes out",
  );

const isInRange = (order: RowOrder, { after, upTo }: IdRange): SQL | undefined =>
  and(order.after(after), upTo === undefined ? undefined : order.upTo(upTo));

function inspectedRow(row: Record<string, unknown>): Omit<InspectedRow, "isIntegerId"> {
  const { [AGE_COLUMN]: ageMs, [ID_COLUMN]: idText, ...columns } = row;
  return { row: columns, idText: String(idText), ageMs: typeof ageMs === "number" ? ageMs : undefined };
}
