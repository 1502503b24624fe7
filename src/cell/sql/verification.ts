import { and, asc, eq, getTableColumns, sql, type Column, type SQL, type Table } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";
import type {
  IdRange,
  InspectedRow,
  QueuePage,
  QueuedRow,
  VerificationDatabase,
} from "../verification/ports.ts";
import { sqlOrm, type Fields, type SqlOrm } from "./orm.ts";
import type { RowOrder } from "./row-order.ts";

/** The cell's own tables for verification, as a dialect declares them. */
interface VerificationTables {
  progress: Table & Record<"name" | "progress" | "savedAt", Column>;
  queue: Table & Record<"sourceType" | "sourceId" | "leaseUuid", Column>;
}

/** Expressions that each dialect writes in its own way. */
export interface VerificationExpressions {
  orderOf(claimable: Claimable): RowOrder;
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

/** Statements of verification that are the same in all dialects. */
export abstract class SqlVerification<Tx> implements VerificationDatabase<Tx> {
  protected readonly db: unknown;
  readonly #tables: VerificationTables;
  readonly #expressions: VerificationExpressions;

  constructor(db: unknown, tables: VerificationTables, expressions: VerificationExpressions) {
    this.db = db;
    this.#tables = tables;
    this.#expressions = expressions;
  }

  abstract saveProgress(text: string): Promise<void>;

  async count(claimable: Claimable, range: IdRange): Promise<number> {
    const [counted] = await this.#orm()
      .select<{ rows: number }>({ rows: sql`count(*)`.mapWith(Number) })
      .from(claimable.table)
      .where(isInRange(this.#expressions.orderOf(claimable), range));
    return counted?.rows ?? 0;
  }

  async page(
    claimable: Claimable,
    { limit, ...range }: IdRange & { limit: number },
  ): Promise<InspectedRow[]> {
    const order = this.#expressions.orderOf(claimable);
    const rows = await this.#orm()
      .select(this.#fieldsOf(claimable))
      .from(claimable.table)
      .where(isInRange(order, range))
      .orderBy(asc(order.by))
      .limit(limit);
    return rows.map((row) => inspectedRow(row));
  }

  async byIds(tx: Tx | undefined, claimable: Claimable, ids: readonly string[]): Promise<InspectedRow[]> {
    const its = this.#expressions.orderOf(claimable).isOneOf(ids);
    if (its === undefined) return [];
    const query = this.#orm(tx)
      .select(this.#fieldsOf(claimable))
      .from(claimable.table)
      .where(its)
      .orderBy(asc(claimable.idColumn));
    const rows = await (tx === undefined ? query : query.for("update"));
    return rows.map((row) => inspectedRow(row));
  }

  async loadProgress(): Promise<{ text: string; ageMs: number } | undefined> {
    const { progress } = this.#tables;
    const [found] = await this.#orm()
      .select<{ text: string; ageMs: number }>({
        text: progress.progress,
        ageMs: this.#expressions.ageMsOf(progress.savedAt),
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

  #fieldsOf({ table, idColumn, changedAt }: Claimable): Fields<Record<string, unknown>> {
    const columns = getTableColumns(table);
    const time = changedAt === undefined ? undefined : columns[changedAt];
    return {
      ...columns,
      [AGE_COLUMN]: time === undefined ? sql`NULL` : this.#expressions.ageMsOf(time),
      [ID_COLUMN]: this.#expressions.textOf(idColumn),
    };
  }

  /** Answers the database, or the given transaction. */
  #orm(tx?: Tx): SqlOrm {
    return sqlOrm(tx ?? this.db);
  }
}

const isInRange = (order: RowOrder, { after, upTo }: IdRange): SQL | undefined =>
  and(order.after(after), upTo === undefined ? undefined : order.upTo(upTo));

function inspectedRow(row: Record<string, unknown>): InspectedRow {
  const { [AGE_COLUMN]: ageMs, [ID_COLUMN]: idText, ...columns } = row;
  return { row: columns, idText: String(idText), ageMs: typeof ageMs === "number" ? ageMs : undefined };
}
