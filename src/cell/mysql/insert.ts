import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { AnyRow } from "../table.ts";
import type { DescribeError } from "../sql/describe-error.ts";
import { isDuplicateKey } from "./failure.ts";

export interface InsertHeader {
  /** The first generated id. mysql2 answers a string if a number would not be exact. */
  insertId: number | string | bigint;
}

interface InsertOptions {
  /**
   * With `skipsExisting`, a row that violates a unique key stays as it is, and the insert answers
   * `EXISTING_ID`: `ON DUPLICATE KEY UPDATE id = IF(LAST_INSERT_ID(EXISTING_ID), id, id)`.
   */
  statement: (rows: readonly AnyRow[], skipsExisting: boolean) => Promise<InsertHeader>;
  skipExisting: boolean;
  describeError: DescribeError;
}

/**
 * What an insert answers in place of a generated id if the row exists. The largest number that drivers read
 * exactly, which no AUTO_INCREMENT reaches.
 */
export const EXISTING_ID = Number.MAX_SAFE_INTEGER;

/**
 * Inserts rows and answers their ids, because MySQL cannot return rows. It returns only the first generated
 * id of a statement. Whether the others follow it depends on the server (innodb_autoinc_lock_mode,
 * auto_increment_increment), so each row without an id gets its own statement. Rows with an id share one.
 */
export async function insertRows(
  claimable: Claimable,
  rows: readonly AnyRow[],
  options: InsertOptions,
): Promise<unknown[]> {
  if (rows.every((row) => hasId(claimable, row))) return insertTogether(claimable, rows, options);
  const ids: unknown[] = [];
  for (const row of rows) ids.push(...(await insertTogether(claimable, [row], options)));
  return ids;
}

/**
 * INSERT IGNORE would swallow other errors too, and ON DUPLICATE KEY UPDATE shows only for a single row
 * whether it is new. A duplicate key undoes only its statement, so the statement is split in halves until
 * the duplicates are alone. A single row is not inserted in vain, because that locks the existing row for
 * others to read. Two transactions that then want to change it would deadlock.
 */
async function insertTogether(
  claimable: Claimable,
  rows: readonly AnyRow[],
  options: InsertOptions,
): Promise<unknown[]> {
  const { statement, skipExisting, describeError } = options;
  try {
    const header = await statement(rows, skipExisting && rows.length === 1);
    if (String(header.insertId) === String(EXISTING_ID)) return [];
    return rows.map((row) =>
      hasId(claimable, row) ? row[claimable.idName] : generatedId(claimable, header),
    );
  } catch (error) {
    if (!skipExisting || rows.length === 1 || !isDuplicateKey(error, describeError)) throw error;
  }
  const middle = Math.ceil(rows.length / 2);
  return [
    ...(await insertTogether(claimable, rows.slice(0, middle), options)),
    ...(await insertTogether(claimable, rows.slice(middle), options)),
  ];
}

const hasId = ({ idName }: Claimable, row: AnyRow): boolean =>
  row[idName] !== undefined && row[idName] !== null;

function generatedId({ name, idName }: Claimable, { insertId }: InsertHeader): number | bigint {
  if (Number(insertId) === 0)
    throw invalidArgument(
      idName,
      `of ${name} is not made by AUTO_INCREMENT, and MySQL returns no other default: give the row an id`,
    );
  return typeof insertId === "string" ? BigInt(insertId) : insertId;
}

/** Answers the rows in the order of the ids that they were inserted with. Throws if one is not among them. */
export function inOrderOfIds(
  claimable: Claimable,
  rows: readonly AnyRow[],
  ids: readonly unknown[],
): AnyRow[] {
  const byId = new Map(rows.map((row) => [claimable.idOf(row), row]));
  return ids.map((id) => byId.get(String(id)) ?? notReadBack(claimable, id));
}

function notReadBack({ name, idName }: Claimable, id: unknown): never {
  throw invalidArgument(
    idName,
    `of ${name} was not stored as ${String(id)}, so the row cannot be claimed: use the database's spelling`,
  );
}
