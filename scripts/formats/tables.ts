/** The statements that make tables, and their comparison with those of a release. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { migration as mysql } from "../../src/users/cell/mysql/schema.ts";
import { migration as postgres } from "../../src/users/cell/postgres/schema.ts";
import { directorySchema } from "../../src/coordinator/kernel/directory/schema.ts";
import { FORMATS } from "../../src/coordinator/kernel/formats.ts";
import { ledgerSchema } from "../../src/coordinator/kernel/ledger/schema.ts";
import { META_TABLE } from "../../src/coordinator/kernel/meta.ts";
import { shardSchema } from "../../src/coordinator/kernel/shard/schema.ts";
import { SqliteDatabase } from "../../src/hosts/node/sqlite-database.ts";
import { PartStore } from "../../src/hosts/standalone/part-store.ts";
import type { Difference } from "./difference.ts";

export interface Tables {
  /** The steps of each object, the statements of tables without steps, and the formats. Each only grows. */
  steps: Readonly<Record<string, readonly unknown[]>>;
  /** The SHA-256 of each migration of D1, by its file. */
  migrations: Readonly<Record<string, string>>;
}

/** What has steps that a start carries out. */
const OBJECTS = ["ledger", "shard", "directory"] as const;

/**
 * Statements that take at most 0.2 s for a million rows. SQLite checks the rows of a strict table that gets a
 * column, which took 148 ms. Others write all rows or an index, such as the removal of a column.
 */
const BOUNDED =
  /^(CREATE TABLE (?!.*\bAS (SELECT|WITH)\b)|DROP TABLE |DROP INDEX |ALTER TABLE \S+ (ADD|RENAME) )/;

const migrationFolder = join(import.meta.dirname, "../../migrations");

/** Reads the tables of this code. */
export function tablesOfToday(): Tables {
  const { database: host } = new PartStore(new SqliteDatabase());
  const hosted = host
    .all<{ sql: string }>("SELECT sql FROM sqlite_schema ORDER BY rowid")
    .map(({ sql }) => sql);
  host.close();
  const steps = {
    "every format": FORMATS.map(({ release }) => release),
    ledger: ledgerSchema,
    shard: shardSchema,
    directory: directorySchema,
    "every object": [META_TABLE],
    "the host of objects": hosted,
    "a cell on PostgreSQL": postgres,
    "a cell on MySQL": mysql,
  };
  const files = readdirSync(migrationFolder).filter((file) => file.endsWith(".sql"));
  const digestOf = (file: string): string =>
    createHash("sha256")
      .update(readFileSync(join(migrationFolder, file)))
      .digest("hex");
  return {
    steps: JSON.parse(JSON.stringify(steps), (_, value: unknown) =>
      typeof value === "string" ? value.replaceAll(/\s+/g, " ").trim() : value,
    ) as Tables["steps"],
    migrations: Object.fromEntries(files.toSorted().map((file) => [file, digestOf(file)])),
  };
}

/** Returns the statements of the release that today's code no longer has in their places. */
export function tableDifferences(release: Tables, today: Tables): Difference[] {
  const steps = Object.entries(release.steps).flatMap(([what, list]) =>
    list.flatMap((step, index) =>
      stepDifference(`tables of ${what}`, index, step, today.steps[what]?.[index]),
    ),
  );
  const added = OBJECTS.flatMap((what) =>
    (today.steps[what] ?? [])
      .slice(release.steps[what]?.length ?? 0)
      .flatMap(addedStatements)
      .filter((statement) => !BOUNDED.test(statement))
      .map((statement) => ({ what: `tables of ${what}`, fault: `it slows a start down: \`${statement}\`` })),
  );
  const migrations = Object.entries(release.migrations).flatMap(([file, digest]) =>
    today.migrations[file] === digest
      ? []
      : [
          {
            what: `migrations/${file}`,
            fault: `it was ${today.migrations[file] === undefined ? "removed" : "changed"}`,
          },
        ],
  );
  return [...steps, ...added, ...migrations];
}

function stepDifference(what: string, index: number, release: unknown, today: unknown): Difference[] {
  if (JSON.stringify(release) === JSON.stringify(today)) return [];
  const place = `step ${index + 1}`;
  if (today === undefined) return [{ what, fault: `${place} was removed` }];
  const [before, after] = [statementsOf(release), statementsOf(today)];
  const at = Array.from({ length: Math.max(before.length, after.length) }, (_, n) => n).find(
    (n) => before[n] !== after[n],
  );
  const textOf = (statements: readonly string[]): string => statements[at ?? 0] ?? "nothing";
  return [{ what, fault: `${place} has changed: \`${textOf(before)}\` is now \`${textOf(after)}\`` }];
}

/** The statements of a step, or of one that waits for a format. */
const addedStatements = (step: unknown): string[] =>
  Array.isArray(step) ? (step as string[]) : (step as { statements: string[] }).statements;

const statementsOf = (step: unknown): string[] =>
  [step].flat().map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
