import { sql, type Column, type SQL } from "drizzle-orm";
import { sourceOrder } from "../../../common/source-order.ts";
import type { SqlParts } from "../sql/connection.ts";
import { ANY_ROW, idKindOf, integerOrder, isIn, type RowOrder } from "../sql/row-order.ts";
import { PROGRESS_NAME, SqlVerification } from "../sql/verification.ts";
import { bytes } from "./information-schema.ts";
import { verificationProgress, verificationQueue, type Orm } from "./schema.ts";

/**
 * The age of a time in milliseconds. A DATETIME is in UTC, as drizzle writes it. A TIMESTAMP has a time zone.
 */
export function ageMsOf(time: Column): SQL<number> {
  const now = time.getSQLType().startsWith("timestamp") ? sql`NOW(3)` : sql`UTC_TIMESTAMP(3)`;
  // Drivers return decimals as text.
  return sql`TIMESTAMPDIFF(MICROSECOND, ${time}, ${now}) / 1000`.mapWith(Number);
}

export class MysqlVerification<Tx> extends SqlVerification<Tx, Orm> {
  constructor(parts: SqlParts<Tx, Orm>) {
    super(
      parts,
      { progress: verificationProgress, queue: verificationQueue },
      { orderOf, ageMsOf, textOf: (column) => sql`CAST(${column} AS CHAR)` },
    );
  }

  /** MySQL has no policies. */
  protected override filters(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async saveProgress(text: string): Promise<void> {
    await this.connection
      .orm()
      .insert(verificationProgress)
      .values({ name: PROGRESS_NAME, progress: text })
      .onDuplicateKeyUpdate({ set: { progress: text, savedAt: sql`UTC_TIMESTAMP(3)` } });
  }
}

function orderOf(idColumn: Column): RowOrder {
  const column = sql`${idColumn}`;
  if (idKindOf(idColumn) === "integer") return integerOrder(column);
  const by = textOrder(column);
  return {
    by,
    after: (id) => (id === "" ? ANY_ROW : sql`${by} > ${bytes(sourceOrder(id))}`),
    upTo: (id) => sql`${by} <= ${bytes(sourceOrder(id))}`,
    // By the column's own collation, to use its index. The caller tells equal spellings apart.
    isOneOf: (ids) =>
      isIn(
        column,
        ids.map((id) => sql`${id}`),
      ),
  };
}

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
