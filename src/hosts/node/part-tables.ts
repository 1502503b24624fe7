import { constants, type DatabaseSync, type StatementSync } from "node:sqlite";
import type { SqlValue } from "../../coordinator/kernel/ports.ts";
import { tablesFault, upgradeFault } from "../../coordinator/kernel/tables.ts";

/** White space and comments, texts, quoted names, words, parameters, numbers, and single characters. */
const TOKEN = /\s+|--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|[A-Za-z_]\w*|\?\d*|\d[\w.]*|./gs;
const BLANK = /^(?:\s|--)/;
const NAME = /^["`A-Za-z_]/;

/** The clauses that end a list of tables, and the words that may follow a table without an alias. */
const CLAUSES = `WHERE SET GROUP ORDER LIMIT HAVING RETURNING UNION EXCEPT INTERSECT WINDOW VALUES SELECT
  DEFAULT ON`.split(/\s+/);
const JOINS = "JOIN CROSS INNER LEFT RIGHT FULL OUTER NATURAL USING INDEXED NOT".split(" ");
const CLAUSE: ReadonlySet<string> = new Set(CLAUSES);
const NO_ALIAS: ReadonlySet<string> = new Set([...CLAUSES, ...JOINS]);
/** Tables that are in no file. */
const VIRTUAL = /^(?:json_each|pragma_\w+)$/;
const DDL: ReadonlySet<string> = new Set(["CREATE", "ALTER", "DROP"]);

/** The name of a table or index of a part. */
const nameIn = (part: string, name: string): string => `"${part}/${name.replaceAll(/["`]/g, "")}"`;

/**
 * Returns the statement with the names of its tables and indexes changed to those of a part: `lease` becomes
 * `"cell-7/lease" AS lease`. So a column may still be called `lease.epochs`, or have the name of a table.
 */
export function inPart(sql: string, part: string): string {
  const all = sql.match(TOKEN) ?? [];
  const at = [...all.keys()].filter((index) => !BLANK.test(all[index] ?? ""));
  const wordAt = (n: number): string => (all[at[n] ?? -1] ?? "").toUpperCase();
  const temporary = temporaryTables(at.map((index) => all[index] ?? ""));
  const isDdl = DDL.has(wordAt(0));
  if (isDdl && /\b(?:REFERENCES|RENAME\s+TO)\b/i.test(sql))
    throw new Error("a statement of a part must not have REFERENCES or RENAME TO");
  const isIndex = isDdl && (wordAt(1) === "INDEX" || wordAt(1) === "UNIQUE");
  /** For each open parenthesis, whether a comma separates tables. */
  const lists = [false];
  let isNext = false;
  let hasAlias = false;
  for (const n of at.keys()) {
    const token = all[at[n] ?? -1] ?? "";
    const word = token.toUpperCase();
    const depth = lists.length - 1;
    if (isNext && NAME.test(token) && !["IF", "NOT", "EXISTS", "SELECT"].includes(word)) {
      isNext = false;
      const isFunction = lists[depth] && wordAt(n + 1) === "(";
      if (isFunction || VIRTUAL.test(token) || temporary.has(token)) continue;
      const next = wordAt(n + 1);
      const alias = hasAlias && (!NAME.test(next) || NO_ALIAS.has(next)) ? ` AS ${token}` : "";
      all[at[n] ?? -1] = nameIn(part, token) + alias;
      continue;
    }
    if (word === "(") {
      isNext = false;
      lists.push(false);
    } else if (word === ")") lists.pop();
    else if (word === "," && lists[depth]) [isNext, hasAlias] = [true, true];
    else if (namesTable(word, wordAt(n - 1))) {
      [isNext, hasAlias] = [true, true];
      lists[depth] = word === "FROM" || word === "JOIN";
    } else if (isNamed(word, wordAt(n - 1), isDdl) || (isIndex && depth === 0 && word === "ON"))
      [isNext, hasAlias] = [true, false];
    else if (CLAUSE.has(word)) lists[depth] &&= word === "ON";
  }
  return all.join("");
}

function namesTable(word: string, before: string): boolean {
  if (word === "FROM") return before !== "DISTINCT";
  if (word === "UPDATE") return before !== "DO";
  return word === "JOIN" || word === "INTO";
}

/** Whether a name follows that gets no alias: of an index, or of a table that is made, changed or dropped. */
const isNamed = (word: string, before: string, isDdl: boolean): boolean =>
  (word === "BY" && before === "INDEXED") || (isDdl && (word === "TABLE" || word === "INDEX"));

/** The names that `WITH` gives: `held` of `WITH held (type, name) AS (`. */
function temporaryTables(tokens: readonly string[]): Set<string> {
  const names = new Set<string>();
  for (const [n, token] of tokens.entries()) {
    if (token.toUpperCase() !== "AS" || tokens[n + 1] !== "(") continue;
    let from = n - 1;
    if (tokens[from] === ")") from = tokens.lastIndexOf("(", from) - 1;
    if (/^(?:WITH|RECURSIVE|,)$/i.test(tokens[from - 1] ?? "")) names.add(tokens[from] ?? "");
  }
  return names;
}

/** Actions of SQLite's authorizer that name a table, or an index, as their first argument. */
const OF_TABLE: ReadonlySet<number> = new Set([
  constants.SQLITE_READ,
  constants.SQLITE_INSERT,
  constants.SQLITE_UPDATE,
  constants.SQLITE_DELETE,
  constants.SQLITE_CREATE_TABLE,
  constants.SQLITE_DROP_TABLE,
]);
const OF_INDEX: ReadonlySet<number> = new Set([
  constants.SQLITE_CREATE_INDEX,
  constants.SQLITE_DROP_INDEX,
  constants.SQLITE_ALTER_TABLE,
]);

/**
 * Prepares the statements of all parts of one database. Each part has its own tables, and reaches no others:
 * SQLite asks for each table of a statement, and a table of another part fails it.
 */
export class PartTables {
  readonly #connection: DatabaseSync;
  /** Whether the statement that is being prepared now may have this table. */
  #mayHave: ((table: string) => boolean) | undefined;

  constructor(connection: DatabaseSync) {
    this.#connection = connection;
    // Node before 24.10 has no authorizer. There, only the changed names keep the parts apart.
    (connection as Partial<DatabaseSync>).setAuthorizer?.((action, first, second) =>
      this.#isAllowed(action, first, second) ? constants.SQLITE_OK : constants.SQLITE_DENY,
    );
  }

  /** @param part - its name; "" for the tables without one */
  prepare(sql: string, part: string): StatementSync {
    const tokens = (sql.match(TOKEN) ?? []).filter((token) => !BLANK.test(token));
    const temporary = temporaryTables(tokens);
    const isDdl = DDL.has((tokens[0] ?? "").toUpperCase());
    this.#mayHave = (table) => {
      if (VIRTUAL.test(table) || temporary.has(table)) return true;
      if (table.startsWith("sqlite_")) return isDdl;
      return part === "" ? !table.includes("/") : table.startsWith(`${part}/`);
    };
    try {
      return this.#connection.prepare(part === "" ? sql : inPart(sql, part));
    } finally {
      this.#mayHave = undefined;
    }
  }

  /** SQLite also asks when it prepares a statement again, which has passed before. */
  #isAllowed(action: number, first: string | null, second: string | null): boolean {
    const table = OF_TABLE.has(action) ? first : OF_INDEX.has(action) ? second : null;
    return table === null || this.#mayHave === undefined || this.#mayHave(table);
  }
}

interface Place {
  /** The attached database. */
  database?: string;
  /** What the names of the object's tables begin with. */
  prefix?: string;
  /** The directory knows the format in force. All others are told it. */
  isDirectory: boolean;
}

/** Returns why this code cannot work with the tables of an object. Changes nothing. */
export function objectTablesFault(
  connection: DatabaseSync,
  { database = "main", prefix = "", isDirectory }: Place,
): string | undefined {
  const meta = `${prefix}meta`;
  const isMade = connection.prepare(`SELECT 1 FROM ${database}.sqlite_schema WHERE name = ?`).get(meta);
  if (isMade === undefined) return undefined;
  const value = connection.prepare(`SELECT value FROM ${database}."${meta}" WHERE name = ?`);
  const read = (name: string): SqlValue | undefined => value.get(name)?.["value"] as SqlValue | undefined;
  return tablesFault(read) ?? (isDirectory ? upgradeFault(read) : undefined);
}
