import { asc, eq, getTableColumns, gt, sql } from "drizzle-orm";
import type { Cell } from "../kernel/directory/messages.ts";
import type { MintedKey } from "../capabilities/keys/messages.ts";
import type { TypeSet } from "../capabilities/types/messages.ts";
import type { GrowthCopy } from "../capabilities/growth/messages.ts";
import type { HistoryPoint } from "../kernel/messages.ts";
import type { OperationSet } from "../capabilities/operations/operations.ts";
import { ok, type Result } from "../kernel/refusal.ts";
import type { Env } from "../env.ts";
import { Database } from "./database.ts";
import { cells, growths, keys, operationSets, typeSets } from "./schema.ts";

/** The name of the directory in `seen_points`. */
export const DIRECTORY = "directory";

/** How far D1 has seen the directory. */
export interface SeenDirectory {
  /** The newest point. Undefined: none. */
  point: HistoryPoint | undefined;
  /** The position of the set of types. 0: D1 has none. */
  typesPosition: number;
  /** The position of the growth. 0: D1 has none. */
  growthPosition: number;
}

interface SeenColumns {
  incarnation: number | null;
  position: number | null;
  types_position: number | null;
  growth_position: number | null;
}

/** Reads how far D1 has seen the directory. */
export async function readSeen(database: Database): Promise<Result<SeenDirectory>> {
  const found = await database.run("read seen directory", (orm) =>
    orm.all<SeenColumns>(sql`
      SELECT seen_points.incarnation, seen_points.position,
             type_sets.position AS types_position, growths.position AS growth_position
      FROM (SELECT ${DIRECTORY} AS part) AS directory
      LEFT JOIN seen_points USING (part) LEFT JOIN type_sets USING (part) LEFT JOIN growths USING (part)`),
  );
  if (!found.ok) return found;
  const [seen] = found.value;
  const { incarnation = null, position = null } = seen ?? {};
  return ok({
    point: incarnation === null || position === null ? undefined : { incarnation, position },
    typesPosition: seen?.types_position ?? 0,
    growthPosition: seen?.growth_position ?? 0,
  });
}

/** Reads the growth that ran when D1 was told last, also if it has ended. Null: none has ever run. */
export async function readGrowthCopy(database: Database): Promise<Result<GrowthCopy | null>> {
  const { growth } = getTableColumns(growths);
  const found = await database.run("read growth", (orm) =>
    orm.select({ growth }).from(growths).where(eq(growths.part, DIRECTORY)),
  );
  return found.ok ? ok(found.value[0]?.growth ?? null) : found;
}

/**
 * The number of keys that are read at a time. All keys that `max_keys` allows are read with 200 statements,
 * of the 1,000 that D1 allows in one request.
 */
export const KEYS_PER_PAGE = 5_000;

/**
 * The copies of the directory's rows that the cron has made in D1. They are at most some minutes old if the
 * cron runs. A directory that has lost its rows is reconciled from them (H8).
 */
export class DirectoryCopies {
  readonly #database: Database;

  constructor(env: Env) {
    this.#database = new Database(env);
  }

  cells(): Promise<Result<Cell[]>> {
    const columns = getTableColumns(cells);
    const { cellId, name, address, locationHint, createdAtMs, updatedAtMs, removedAtMs } = columns;
    return this.#database.run("read cells", (orm) =>
      orm
        .select({ cell: cellId, name, address, locationHint, createdAtMs, updatedAtMs, removedAtMs })
        .from(cells)
        .orderBy(asc(cells.cellId)),
    );
  }

  async types(): Promise<Result<TypeSet | undefined>> {
    const { position, entries } = getTableColumns(typeSets);
    const found = await this.#database.run("read types", (orm) =>
      orm.select({ position, entries }).from(typeSets).where(eq(typeSets.part, DIRECTORY)),
    );
    return found.ok ? ok(found.value[0]) : found;
  }

  async operations(): Promise<Result<OperationSet | null>> {
    const { position, operations } = getTableColumns(operationSets);
    const found = await this.#database.run("read operations", (orm) =>
      orm.select({ position, operations }).from(operationSets).where(eq(operationSets.part, DIRECTORY)),
    );
    return found.ok ? ok(found.value[0] ?? null) : found;
  }

  growth(): Promise<Result<GrowthCopy | null>> {
    return readGrowthCopy(this.#database);
  }

  /** Returns the newest point of the directory that the cron has seen. */
  async point(): Promise<Result<HistoryPoint | undefined>> {
    const seen = await readSeen(this.#database);
    return seen.ok ? ok(seen.value.point) : seen;
  }

  /** Returns the next keys in the order of their ids. */
  keysAfter(keyId: string): Promise<Result<MintedKey[]>> {
    const { position: _, cellId: cell, ...columns } = getTableColumns(keys);
    return this.#database.run("read keys", (orm) =>
      orm
        .select({ ...columns, cell })
        .from(keys)
        .where(gt(keys.keyId, keyId))
        .orderBy(asc(keys.keyId))
        .limit(KEYS_PER_PAGE),
    );
  }

  async isRevoked(keyId: string): Promise<Result<boolean>> {
    const found = await this.#database.run("read key", (orm) =>
      orm.select({ revokedAtMs: keys.revokedAtMs }).from(keys).where(eq(keys.keyId, keyId)),
    );
    return found.ok ? ok(found.value.some(({ revokedAtMs }) => revokedAtMs !== null)) : found;
  }

  /**
   * Makes the cron copy all keys again. The positions of keys that a directory has changed since it went back
   * may be below those that D1 has seen.
   */
  restartKeys(): Promise<Result<unknown>> {
    return this.#database.run("restart keys", (orm) => orm.update(keys).set({ position: sql`0` }));
  }
}
