import { getTableName } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import { causesOf } from "../errors.ts";
import type { DatabaseProblem } from "../local.ts";
import { asItIs, type DescribeError, type SqlTable } from "../sql/connection.ts";
import { columnsOfKey, columnsOfText } from "../sql/unique-keys.ts";

interface PgError {
  code: string;
  severity: string;
  /** All its fields, under the names that the driver gives them. */
  fields: Readonly<Record<string, unknown>>;
}

/**
 * Errors of the server have a severity. `EPIPE` looks like a SQLSTATE too, but proves nothing about a COMMIT.
 */
function pgErrorOf(error: unknown, describe: DescribeError): PgError | undefined {
  for (const cause of causesOf(error)) {
    const described = describe(cause) as { code?: unknown; severity?: unknown; message?: unknown };
    const { code, severity } = described;
    if (typeof code === "string" && /^[\dA-Z]{5}$/.test(code) && typeof severity === "string")
      return { code, severity, fields: described };
  }
  return undefined;
}

/**
 * SQLSTATE classes connection, resources, operator, system, configuration, internal. COMMIT may have
 * succeeded.
 */
const UNSURE_CLASSES: ReadonlySet<string> = new Set(["08", "53", "57", "58", "F0", "XX"]);
/** statement_completion_unknown */
const UNSURE_CODES: ReadonlySet<string> = new Set(["40003"]);

/**
 * Whether an error of COMMIT proves that nothing was saved. PostgreSQL checks deferred constraints and
 * conflicts before it writes the commit, and an ERROR there undoes everything. Any other error, above all a
 * lost connection, is an unknown outcome.
 */
export function isAbort(error: unknown, describe: DescribeError = asItIs): boolean {
  const found = pgErrorOf(error, describe);
  if (found === undefined || found.severity === "FATAL" || found.severity === "PANIC") return false;
  return !UNSURE_CLASSES.has(found.code.slice(0, 2)) && !UNSURE_CODES.has(found.code);
}

/** in_failed_sql_transaction: an earlier error has undone the transaction. */
export const isFailedTransaction = (error: unknown, describe: DescribeError): boolean =>
  pgErrorOf(error, describe)?.code === "25P02";

/** lock_not_available */
export const isLockTimeout = (error: unknown, describe: DescribeError = asItIs): boolean =>
  pgErrorOf(error, describe)?.code === "55P03";

interface UniqueViolation {
  schema: string;
  table: string;
  constraint: string;
  /** `Key (username)=(ada) already exists.`, in the language of the server. Empty if it is withheld. */
  detail: string;
}

/** unique_violation */
export function uniqueViolationOf(
  error: unknown,
  describe: DescribeError = asItIs,
): UniqueViolation | undefined {
  const found = pgErrorOf(error, describe);
  if (found?.code !== "23505") return undefined;
  // postgres-js has the names of the protocol, and the other drivers shorter ones.
  const field = (...names: string[]): string => names.map((name) => found.fields[name]).find(isText) ?? "";
  return {
    schema: field("schema", "schema_name"),
    table: field("table", "table_name"),
    constraint: field("constraint", "constraint_name"),
    detail: field("detail"),
  };
}

const isText = (value: unknown): value is string => typeof value === "string";

/** undefined_table or undefined_column */
export const isMissingColumn = (error: unknown, describe: DescribeError): boolean =>
  ["42P01", "42703"].includes(pgErrorOf(error, describe)?.code ?? "");

/** undefined_table: the message names the table. */
export function missingTableOf(error: unknown, describe: DescribeError = asItIs): string | undefined {
  const found = pgErrorOf(error, describe);
  return found?.code === "42P01" ? String(found.fields["message"]) : undefined;
}

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
