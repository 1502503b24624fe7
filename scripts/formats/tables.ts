/** The statements that make tables, and their comparison with those of a release. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { migration as mysql } from "../../src/users/cell/mysql/schema.ts";
import { migration as postgres } from "../../src/users/cell/postgres/schema.ts";
import { directorySchema } from "../../src/coordinator/kernel/directory/schema.ts";
import * as kinds from "../../src/coordinator/capabilities/index.ts";
import { stepsOf, type Halves } from "../../src/coordinator/kernel/half.ts";
import { FORMATS } from "../../src/coordinator/kernel/formats.ts";
import { ledgerSchema } from "../../src/coordinator/kernel/ledger/schema.ts";
import { META_TABLE } from "../../src/coordinator/kernel/meta.ts";
import { shardSchema } from "../../src/coordinator/kernel/shard/schema.ts";
import { SqliteDatabase } from "../../src/hosts/node/sqlite-database.ts";
import { PartStore } from "../../src/hosts/standalone/parts.ts";
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
    ...stepsByCapability("ledger", kinds.ledger.halves),
    ...stepsByCapability("shard", kinds.shard.halves),
    ...stepsByCapability("directory", kinds.directory.halves),
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

/** The steps of each capability, as `ledger/audit`. Their tables may exist, which is not compared. */
const stepsByCapability = (kind: string, halves: Halves<never, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(stepsOf(halves)).map(([name, steps]) => [
      `${kind}/${name}`,
      JSON.parse(JSON.stringify(steps).replaceAll(" IF NOT EXISTS", "")),
    ]),
  );

/**
 * Returns the steps of today as a release before the steps of capabilities has them: 0.2.0 made the tables of
 * an object in one step, which had all the tables that capabilities have now.
 */
function joined(release: Tables, { steps, migrations }: Tables): Tables {
  const all: Record<string, readonly unknown[]> = { ...steps };
  for (const kind of OBJECTS) {
    const made = new Set(statementsOf(release.steps[kind]?.[0]));
    const own = Object.keys(steps).filter((what) => what.startsWith(`${kind}/`));
    if (own.length === 0 || own.some((what) => what in release.steps)) continue;
    const first = new Set([kind, ...own].flatMap((what) => statementsOf(steps[what]?.[0])));
    const [kernel, ...later] = steps[kind] ?? [];
    const others = statementsOf(kernel).filter((statement) => !made.has(statement));
    all[kind] = [[...[...made].filter((statement) => first.has(statement)), ...others], ...later];
    for (const what of own)
      all[what] = (steps[what] ?? []).map((step, index) =>
        index > 0 ? step : statementsOf(step).filter((statement) => !made.has(statement)),
      );
  }
  return { steps: all, migrations };
}

/** Returns the statements of the release that today's code no longer has in their places. */
export function tableDifferences(release: Tables, now: Tables): Difference[] {
  const today = joined(release, now);
  const steps = Object.entries(release.steps).flatMap(([what, list]) =>
    list.flatMap((step, index) =>
      stepDifference(`tables of ${what}`, index, step, today.steps[what]?.[index]),
    ),
  );
  const objects = Object.keys(today.steps).filter((what) => OBJECTS.some((kind) => what.startsWith(kind)));
  const added = objects.flatMap((what) =>
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
  (step === undefined ? [] : [step].flat()).map((each) =>
    typeof each === "string" ? each : JSON.stringify(each),
  );
