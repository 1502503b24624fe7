import { getTableName } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import type { DatabaseProblem } from "../local.ts";
import type { SqlTable } from "../sql/connection.ts";
import { columnsOfKey, columnsOfText } from "../sql/unique-keys.ts";
import type { UniqueViolation } from "./failure.ts";

/**
 * Finds the claimable table and the columns whose unique key refused a row.
 *
 * @param storedParts - Reads the parts of a key from the database. Called if the error doesn't tell them.
 */
export async function duplicateIn(
  tables: readonly SqlTable[],
  { schema, table: name, constraint, detail }: UniqueViolation,
  storedParts: (table: SqlTable, key: string) => Promise<readonly string[]>,
): Promise<DatabaseProblem | undefined> {
  const named = tables.filter(({ table }) => getTableName(table) === name);
  // A table without a schema may be in any, as the search path decides. An ORM may drop the error's schema.
  const found =
    named.find((each) => schemaOf(each) === schema) ??
    named.find((each) => schemaOf(each) === undefined) ??
    (schema === "" && named.length === 1 ? named[0] : undefined);
  if (found === undefined) return undefined;
  const { table, claimable } = found;
  const declared = getTableConfig(table as PgTable);
  const columns =
    columnsOfKey(table, declared, { name: constraint, primary: `${name}_pkey` }) ??
    // Many keys are only in the database. Its error names their columns, unless the role may not read the row
    // or the ORM drops the detail.
    (detail === "" ? await storedParts(found, constraint) : keyPartsOf(detail)).flatMap((part) =>
      columnsOfText(table, part),
    );
  return { kind: "duplicate", table: claimable, columns: [...new Set(columns)] };
}

const schemaOf = ({ table }: SqlTable): string | undefined => getTableConfig(table as PgTable).schema;

/** The parts of the key in `Key (tenant_id, lower(name))=(7, ada) already exists.`, in any language. */
export function keyPartsOf(detail: string): string[] {
  const parts: string[] = [""];
  let depth = 0;
  // Texts and names in quotes may contain parentheses and commas.
  for (const [token] of detail.slice(detail.indexOf("(")).matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[^]/g)) {
    if (token === ")" && depth === 1) return parts;
    if (token === "," && depth === 1) parts.push("");
    else if (depth > 0) parts[parts.length - 1] += token;
    depth += token === "(" ? 1 : token === ")" ? -1 : 0;
  }
  return [];
}
