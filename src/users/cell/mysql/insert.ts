import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { AnyRow } from "../table.ts";

export interface InsertHeader {
  /** The first generated id. mysql2 answers a string if a number would not be exact. */
  insertId: number | string | bigint;
}

/**
 * Inserts rows and answers their ids, because MySQL cannot return rows. It returns only the first generated
 * id of a statement. Whether the others follow it depends on the server (innodb_autoinc_lock_mode,
 * auto_increment_increment), so each row without an id gets its own statement. Rows with an id share one.
 */
export async function insertRows(
  claimable: Claimable,
  rows: readonly AnyRow[],
  statement: (rows: readonly AnyRow[]) => Promise<InsertHeader>,
): Promise<unknown[]> {
  if (rows.every((row) => hasId(claimable, row))) {
    await statement(rows);
    return rows.map((row) => row[claimable.idName]);
  }
  const ids: unknown[] = [];
  for (const row of rows) {
    const header = await statement([row]);
    ids.push(hasId(claimable, row) ? row[claimable.idName] : generatedId(claimable, header));
  }
  return ids;
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
  // MySQL generates an exact id. If no row has it, the driver may have rounded the ids of the rows.
  const isRounding = ids.some((id) => !byId.has(String(id)));
  for (const row of rows) claimable.checkExact(row, isRounding);
  return ids.map((id) => byId.get(String(id)) ?? notReadBack(claimable, id));
}

function notReadBack({ name, idName }: Claimable, id: unknown): never {
  throw invalidArgument(
    idName,
    `of ${name} was not stored as ${String(id)}, so the row cannot be claimed: use the database's spelling`,
  );
}
