import { and, asc, eq, getTableColumns, sql, type SQL } from "drizzle-orm";
import type { MySqlTable } from "drizzle-orm/mysql-core";
import { sourceOrder } from "../../core/source-order.ts";
import type { Claimable } from "../claimable.ts";
import type {
  IdRange,
  InspectedRow,
  QueuePage,
  QueuedRow,
  VerificationDatabase,
} from "../verification/ports.ts";
import {
  AGE_COLUMN,
  ANY_ROW,
  ID_COLUMN,
  PROGRESS_NAME,
  changedAtOf,
  idKindOf,
  inspectedRow,
  integerOf,
  integerOrder,
  isInRange,
  type RowOrder,
} from "../sql/row-order.ts";
import type { Orm } from "./insert.ts";
import { verificationProgress, verificationQueue } from "./schema.ts";

export class MysqlVerification<Tx> implements VerificationDatabase<Tx> {
  readonly #orm: (tx?: Tx) => Orm;

  /** `orm` answers the database, or the given transaction. */
  constructor(orm: (tx?: Tx) => Orm) {
    this.#orm = orm;
  }

  async count(claimable: Claimable, range: IdRange): Promise<number> {
    const [counted] = await this.#orm()
      .select({ rows: sql`count(*)`.mapWith(Number) })
      .from(claimable.table as MySqlTable)
      .where(isInRange(orderOf(claimable), range));
    return counted?.rows ?? 0;
  }

  async page(
    claimable: Claimable,
    { limit, ...range }: IdRange & { limit: number },
  ): Promise<InspectedRow[]> {
    const order = orderOf(claimable);
    const rows = await this.#orm()
      .select(fieldsOf(claimable))
      .from(claimable.table as MySqlTable)
      .where(isInRange(order, range))
      .orderBy(asc(order.by))
      .limit(limit);
    return rows.map((row) => inspectedRow(row));
  }

  async byIds(tx: Tx | undefined, claimable: Claimable, ids: readonly string[]): Promise<InspectedRow[]> {
    const its = isOneOf(claimable, ids);
    if (its === undefined) return [];
    const query = this.#orm(tx)
      .select(fieldsOf(claimable))
      .from(claimable.table as MySqlTable)
      .where(its)
      .orderBy(asc(claimable.idColumn))
      .$dynamic();
    const rows = await (tx === undefined ? query : query.for("update"));
    return rows.map((row) => inspectedRow(row));
  }

  async loadProgress(): Promise<{ text: string; ageMs: number } | undefined> {
    const ageMs =
      sql`TIMESTAMPDIFF(MICROSECOND, ${verificationProgress.savedAt}, UTC_TIMESTAMP(3)) / 1000`.mapWith(
        Number,
      );
    const fields = { text: verificationProgress.progress, ageMs };
    const [found] = await this.#orm()
      .select(fields)
      .from(verificationProgress)
      .where(eq(verificationProgress.name, PROGRESS_NAME));
    return found;
  }

  async saveProgress(text: string): Promise<void> {
    await this.#orm()
      .insert(verificationProgress)
      .values({ name: PROGRESS_NAME, progress: text })
      .onDuplicateKeyUpdate({ set: { progress: text, savedAt: sql`UTC_TIMESTAMP(3)` } });
  }

  async listQueue({ after, limit }: QueuePage): Promise<QueuedRow[]> {
    const { sourceType: type, sourceId: id, leaseUuid } = verificationQueue;
    const rest = after === undefined ? undefined : sql`(${type}, ${id}) > (${after.type}, ${after.id})`;
    return this.#orm()
      .select({ type, id, leaseUuid })
      .from(verificationQueue)
      .where(rest)
      .orderBy(asc(type), asc(id))
      .limit(limit);
  }

  async removeFromQueue(rows: readonly QueuedRow[]): Promise<void> {
    for (const { type, id, leaseUuid } of rows)
      await this.#orm()
        .delete(verificationQueue)
        .where(
          and(
            eq(verificationQueue.sourceType, type),
            eq(verificationQueue.sourceId, id),
            eq(verificationQueue.leaseUuid, leaseUuid),
          ),
        );
  }
}

function orderOf(claimable: Claimable): RowOrder {
  const by = sql`${claimable.idColumn}`;
  if (idKindOf(claimable) === "integer") return integerOrder(by);
  const order = textOrder(by);
  return {
    by: order,
    after: (id) => (id === "" ? ANY_ROW : sql`${order} > ${bytes(sourceOrder(id))}`),
    upTo: (id) => sql`${order} <= ${bytes(sourceOrder(id))}`,
  };
}

/**
 * The bytes in UTF-8, whatever the character set of the connection is, because collations would compare
 * letters.
 */
const bytes = (text: string): SQL => sql`CAST(CONVERT(${text} USING utf8mb4) AS BINARY)`;

const padded = (length: SQL): SQL => sql`LPAD(${length}, 3, '0')`;

/** `sourceOrder` in SQL. */
function textOrder(column: SQL): SQL {
  const id = sql`CONVERT(${column} USING utf8mb4)`;
  const digits = sql`IF(TRIM(LEADING '0' FROM ${id}) = '', '0', TRIM(LEADING '0' FROM ${id}))`;
  const zeroCount = padded(sql`LENGTH(${id}) - LENGTH(${digits})`);
  const zeros = sql`IF(LENGTH(${id}) = LENGTH(${digits}), '', ${zeroCount})`;
  const decimal = sql`CONCAT('0', ${padded(sql`LENGTH(${digits})`)}, ${digits}, ${zeros})`;
  return sql`CAST(IF(${id} REGEXP '^[0-9]+$', ${decimal}, CONCAT('1', ${id})) AS BINARY)`;
}

/** Compares text by the column's own collation, to use its index. The caller tells equal spellings apart. */
function isOneOf(claimable: Claimable, ids: readonly string[]): SQL | undefined {
  const isInteger = idKindOf(claimable) === "integer";
  const values = isInteger
    ? ids.filter((id) => integerOf(id) === id).map((id) => sql.raw(id))
    : ids.map((id) => sql`${id}`);
  return values.length === 0 ? undefined : sql`${claimable.idColumn} IN (${sql.join(values, sql`, `)})`;
}

/** A DATETIME is in UTC, as drizzle writes it. A TIMESTAMP has a time zone. */
function ageOf(claimable: Claimable): SQL<number | null> {
  const changedAt = changedAtOf(claimable);
  if (changedAt === undefined) return sql<null>`NULL`;
  const now = changedAt.getSQLType().startsWith("timestamp") ? sql`NOW(3)` : sql`UTC_TIMESTAMP(3)`;
  return sql<number | null>`TIMESTAMPDIFF(MICROSECOND, ${changedAt}, ${now}) / 1000`;
}

const idTextOf = ({ idColumn }: Claimable): SQL<string> => sql<string>`CAST(${idColumn} AS CHAR)`;

const fieldsOf = (claimable: Claimable): Record<string, never> =>
  ({
    ...getTableColumns(claimable.table),
    [AGE_COLUMN]: ageOf(claimable),
    [ID_COLUMN]: idTextOf(claimable),
  }) as never;
