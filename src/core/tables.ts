import { META_TABLE, readMeta, writeMeta } from "./meta.ts";
import type { Sql, SqlValue } from "./ports.ts";

/**
 * The steps that make the tables of an object. They are append-only. Each is carried out once, in one
 * transaction, and code that doesn't know it must be able to work with the tables afterwards.
 */
export type Steps = readonly (readonly string[])[];

/** What an object stores of its tables. */
interface StoredTables {
  /** The number of steps that were carried out. */
  steps: number;
  /** How many of them code must know to work with the tables. */
  needs: number;
}

/** This code cannot work with the tables of an object, and must not change them. */
export class UnknownTables extends Error {}

/**
 * Brings an object's tables up to date.
 *
 * @throws {UnknownTables} If this code cannot work with them. Nothing was changed.
 */
export function migrate(sql: Sql, steps: Steps): void {
  sql.all(META_TABLE);
  const fault = tablesFault((name) => readMeta(sql, name), steps);
  if (fault !== undefined) throw new UnknownTables(fault);
  const { steps: first, needs } = parsed(readMeta(sql, "tables")) ?? { steps: 0, needs: 1 };
  for (let done = first; done < steps.length; done += 1) {
    sql.transaction(["migrate"], () => {
      for (const statement of steps[done] ?? []) sql.all(statement);
      writeMeta(sql, "tables", JSON.stringify({ steps: done + 1, needs } satisfies StoredTables));
    });
  }
}

/**
 * Returns why code with these steps cannot work with the tables of an object.
 *
 * @param stored reads a value of the object's table `meta`
 */
export function tablesFault(
  stored: (name: "tables" | "schema_version") => SqlValue | undefined,
  steps: Steps,
): string | undefined {
  const tables = parsed(stored("tables"));
  if (tables !== undefined && tables.needs > steps.length)
    return (
      `its tables need a newer version of Leasehold: one that knows ${tables.needs} of their steps, where ` +
      `this one knows ${steps.length}`
    );
  // Before 0.2.0, steps could still be changed.
  if (tables === undefined && stored("schema_version") !== undefined)
    return (
      "its tables are of a version before 0.2.0, which this one cannot take over: with that version, write " +
      "all claims to a file with `leasehold backup create`, and restore it into a new deployment"
    );
  return undefined;
}

const parsed = (stored: SqlValue | undefined): StoredTables | undefined =>
  stored === undefined ? undefined : (JSON.parse(String(stored)) as StoredTables);
