import { getTableName } from "drizzle-orm";
import { getTableConfig, type MySqlTable } from "drizzle-orm/mysql-core";
import type { DatabaseProblem } from "../local.ts";
import type { SqlTable } from "../sql/connection.ts";
import type { DescribeError } from "../sql/describe-error.ts";
import { columnsOfKey, nameInRow } from "../sql/unique-keys.ts";
import { duplicateKeyOf, statementOf } from "./failure.ts";

/**
 * Finds the claimable table and the columns whose unique key refused a row. The error names only the key, and
 * since MySQL 8.0.19 its table. MariaDB doesn't name the table, so it must be known from the write: as
 * `written`, or from the text of the statement.
 */
export function duplicateIn(
  tables: readonly SqlTable[],
  error: unknown,
  written: SqlTable | undefined,
  describe: DescribeError,
): DatabaseProblem | undefined {
  const key = duplicateKeyOf(error, describe);
  if (key === undefined) return undefined;
  const isIn = ({ table }: SqlTable): boolean => key.startsWith(`${getTableName(table)}.`);
  const target = targetOf(statementOf(error));
  const found = tables.find(isIn) ?? written ?? tables.find(({ table }) => getTableName(table) === target);
  if (found === undefined) return undefined;
  const { table, claimable } = found;
  const name = isIn(found) ? key.slice(getTableName(table).length + 1) : key;
  const columns =
    columnsOfKey(table, getTableConfig(table as MySqlTable), { name, primary: "PRIMARY" }) ??
    columnOfUnnamedKey(found, name);
  return { kind: "duplicate", table: claimable, columns };
}

/** MySQL names a key without a name after its first column: `email`, and `email_2` if that is taken. */
function columnOfUnnamedKey({ table }: SqlTable, key: string): string[] {
  const [whole] = nameInRow(table, key);
  return whole === undefined ? nameInRow(table, key.replace(/_\d+$/, "")) : [whole];
}

function targetOf(statement: string | undefined): string | undefined {
  const found = /^\s*(?:insert\s+into|update)\s+(?:(?:`[^`]+`|\w+)\.)?(?:`([^`]+)`|(\w+))/i.exec(
    statement ?? "",
  );
  return found?.[1] ?? found?.[2];
}
